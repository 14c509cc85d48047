/** `hyperscale run FILE|URL`: the main command. Reads flags, runs, writes files, sets the exit code. */

import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { type Command, Option } from "commander";
import { assertNever } from "../../core/base/assert.ts";
import { parseDuration } from "../../core/base/duration.ts";
import { maskedCommand } from "../../core/base/mask-credentials.ts";
import { parseShare } from "../../core/base/share.ts";
import { isRejected, withTrustRequired } from "../../core/load/results/doubt.ts";
import type { RunControl, RunView } from "../../core/load/results/live.ts";
import type { RunSummary } from "../../core/load/results/model.ts";
import { parseThreshold } from "../../core/load/results/thresholds.ts";
import { JsonLog } from "../../host/control/json-log.ts";
import type { LineWriter } from "../../host/control/line-writer.ts";
import {
  EXIT_FAILURE,
  EXIT_INTERRUPTED,
  EXIT_PASSED,
  EXIT_UNTRUSTED,
  EXIT_USAGE,
  EXIT_VERDICT_FAILED,
} from "../../host/exit-codes.ts";
import { OutputError, probeOutputs, writeOutputs } from "../../reporters/file/output.ts";
import { type Run, run } from "../../runner/api.ts";
import { RunError } from "../../runner/errors.ts";
import { overridesOf, type RunOptions } from "../../runner/run-options.ts";
import { traceRun } from "../../runner/trace.ts";
import { URL_METHODS } from "../../runner/url-workflow.ts";
import type { ReportOpening } from "../../ui/ports.ts";
import { createView, inCi } from "../../ui/view.ts";
import { openPage, reportOpening } from "../open-page.ts";
import { repeated, variables } from "../option-values.ts";
import { complain } from "../print.ts";
import { type LogFlags, logFileOf, openLogLines, withLogFile } from "./log-options.ts";
import { LoggedView } from "./run-log.ts";

export interface RunFlags extends LogFlags {
  readonly vus?: number;
  readonly duration?: number;
  readonly rate?: number;
  readonly maxVus?: number;
  readonly maxRate?: number;
  readonly iterations?: number;
  readonly warmup?: number;
  readonly gracefulStop?: number;
  readonly maxUnanswered?: number;
  readonly callTimeout?: number;
  readonly timeout?: number;
  /** Milliseconds; true without a time. */
  readonly abortOnFail?: number | true;
  readonly insecure?: true;
  /** True without a share. */
  readonly traceparent?: number | true;
  readonly cores?: number;
  readonly method: string;
  readonly header: readonly string[];
  readonly body?: string;
  readonly threshold: readonly string[];
  readonly title?: string;
  readonly tag: readonly string[];
  readonly report: readonly string[];
  readonly metrics?: string;
  readonly samples?: string;
  readonly ui: UiMode;
  readonly out?: string;
  readonly csv?: true;
  readonly requireTrusted?: boolean;
  readonly open?: true;
  readonly inspect?: true;
  readonly trace?: true;
  readonly only: readonly string[];
  readonly seed?: string;
  readonly env: readonly (readonly [string, string])[];
}

const UI_MODES = ["auto", "full", "ci", "json", "none"] as const;
export type UiMode = (typeof UI_MODES)[number];

export function uiOption(): Option {
  return new Option("--ui <mode>", "progress display").choices(UI_MODES).default("auto");
}
const CORES_MAX = 1_024;
/**
 * Raises V8's threshold for optimising a function to thirty times the default: this process adds and draws a few times
 * per second, and most of its CPU went to that compiler. Until V8 12 (Node 20) it counts bytes of byte code, then
 * calls.
 */
const COMPILE_LATE =
  Number.parseInt(process.versions.v8, 10) < 12
    ? ["--interrupt-budget=4000000"]
    : ["--invocation-count-for-maglev=12000", "--invocation-count-for-turbofan=90000"];
/** Time for the last lines of the log. */
const LAST_LINES_MS_MAX = 1_000;

export function registerRun(program: Command): void {
  const command = program
    .command("run")
    .summary("run a workflow file, or load a URL")
    .description(
      "Runs a workflow file (.ts, .mts, .js, .mjs) or loads one URL on this machine, at full speed.",
    );
  withRunFlags(command);
  for (const option of localFlags()) command.addOption(option);
  withLogFile(command)
    .addHelpText("after", EXAMPLES)
    .action(async (target: string, flags: RunFlags) => {
      for (const flag of COMPILE_LATE) setFlagsFromString(flag);
      process.exitCode = await runCommand(target, flags);
    });
}

const RUN_CORES = "CPU cores to plan for (default: the physical cores of this machine)";

/** Flags shared by `run` and `submit`. `cores` describes --cores. */
export function withRunFlags(command: Command, cores = RUN_CORES): Command {
  command
    .argument("<file|url>", "workflow file, or http(s) URL")
    .optionsGroup("Load (overrides what the file says):")
    .option("--vus <n>", "virtual users", whole("--vus"))
    .option("--duration <time>", "how long, for example 30s or 5m", duration("--duration"))
    .option("--rate <n>", "iterations begun per second (open model)", number("--rate"))
    .option("--max-vus <n>", "maximum users with --rate", whole("--max-vus"))
    .option("--max-rate <n>", "at most so many iterations begun per second", number("--max-rate"))
    .option("--iterations <n>", "iterations in all, shared by the users", whole("--iterations"))
    .option("--warmup <time>", "load before measuring begins", duration("--warmup"))
    .option(
      "--graceful-stop <time>",
      "time for work in flight at the end",
      duration("--graceful-stop"),
    )
    .option(
      "--max-unanswered <share>",
      "calls without an answer at the end, default 1%",
      unanswered,
    )
    .option("--call-timeout <time>", "for each call", duration("--call-timeout"))
    .option("--timeout <time>", "for the whole run", duration("--timeout"))
    .option("--insecure", "accept any TLS certificate")
    .option("--traceparent [share]", "send W3C trace headers, in a share of iterations", share)
    .option("--cores <n>", cores, whole("--cores"))
    .optionsGroup("Selection and parameters:")
    .option("--only <name>", "only this flow, mix or workflow; repeatable", repeated, [])
    .option("--seed <text>", "what chance, pick and pause of flows draw from")
    .option(
      "-e, --env <name=value>",
      "set an environment variable of the file's code; repeatable",
      variables,
      [],
    )
    .optionsGroup("URL mode:")
    .addOption(new Option("--method <name>", "HTTP method").choices(URL_METHODS).default("GET"))
    .option("--header <name: value>", "add a header; repeatable", repeated, [])
    .option("--body <text>", "request body")
    .optionsGroup("Judging and output:")
    .option("--threshold <text>", 'for example "latency.p99<200ms"; repeatable', repeated, [])
    .option(
      "--abort-on-fail [time]",
      "stop when a threshold fails, but not before TIME has been measured",
      duration("--abort-on-fail"),
    )
    .addOption(uiOption())
    .option("--title <text>", "what to call this run in its results")
    .option("--tag <name=value>", "a tag of the results; repeatable", repeated, [])
    .option("--out <dir>", "folder for the results (default: a new one in hyperscale-results)")
    .option(
      "--report <name=target>",
      "also send the results there (hyperscale reporters lists where); repeatable",
      repeated,
      [],
    )
    .option("--metrics <host:port>", "let Prometheus scrape the run there, at /metrics")
    .option("--open", "show the report in the browser when the run is over")
    .option("--csv", "also write steps.csv and series.csv");
  return withTrustFlags(command);
}

/** `--require-trusted`, `--no-require-trusted`: undefined when neither was given. */
export function withTrustFlags(command: Command): Command {
  return command
    .option(
      "--require-trusted",
      "exit code 98 when the result is not to be trusted (default where CI is set)",
    )
    .option("--no-require-trusted", "judge the thresholds alone, also where CI is set");
}

/** Flags that only apply on this machine; `submit` knows the names to reject them. */
export function localFlags(): readonly Option[] {
  return [
    new Option("--samples <file>", "single calls as lines of JSON, one of a hundred"),
    new Option("--trace", "no load: show one iteration of each flow, call by call, secrets masked"),
    new Option("--inspect", "open a debugger port in each executor core"),
  ];
}

const EXAMPLES = `
Examples:
  hyperscale run http://127.0.0.1:8089/ --vus 64 --duration 10s
  hyperscale run http://127.0.0.1:8089/ --rate 1000 --threshold "latency.p99<200ms"
  hyperscale run flow.ts --duration 1m --out results

Thresholds: latency.p99<200ms, errors.rate<1%, requests.rate>1000/s, checks.rate>=99%,
  latency{step=login}.p95<1s, errors.rate over 10s < 5%. See docs/guide/thresholds.md.

Exit codes: 0 passed, 99 a threshold or check failed, 2 wrong workflow or arguments,
  130 interrupted (results are written), 1 anything else.`;

async function runCommand(target: string, flags: RunFlags): Promise<number> {
  let view: RunView | undefined;
  let logLines: LineWriter | undefined;
  try {
    checkFlags(flags);
    await probeOutputs(flags.out);
    logLines = await openLogLines(logFileOf(flags));
    if (flags.trace === true) return await trace(target, flags);
    const opening = reportOpening(flags.open);
    const { env, stdin, stdout } = process;
    view = createView({ mode: flags.ui, stdout, stdin, env, report: opening });
    if (logLines !== undefined) {
      view = new LoggedView(new JsonLog("info", { run: target, pid: process.pid }, logLines), view);
    }
    const running = run(target, optionsOf(flags));
    const summary = await withSignals(running, () =>
      show(running, view, flags.ui !== "none" || logLines !== undefined),
    );
    return await finish(summary, { ...flags, opening }, view);
  } catch (error) {
    view?.finish(undefined);
    return explain(error);
  } finally {
    await logLines?.drained(LAST_LINES_MS_MAX);
  }
}

async function trace(target: string, flags: RunFlags): Promise<number> {
  const { bundleWorkflow } = await import("../../runner/bundle.ts");
  const bundle = await bundleWorkflow(target);
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    const overrides = overridesOf(optionsOf(flags));
    const completed = await traceRun({ bundle, overrides, inspect: flags.inspect === true, say });
    return completed ? EXIT_PASSED : EXIT_VERDICT_FAILED;
  } finally {
    await bundle.remove();
  }
}

/** Passes events on until the run is over. Live metrics cost time: only computed for a view. */
async function show(running: Run, view: RunView | undefined, live: boolean): Promise<RunSummary> {
  const control = (command: RunControl): void => steer(running, command);
  for await (const event of live ? running : running.quiet()) {
    if (event.kind === "started") view?.start(control);
    else if (event.kind === "live") view?.update(event.live);
    else view?.message(event.line);
  }
  return running.summary;
}

function steer(running: Run, command: RunControl): void {
  if (command.kind === "scale") running.scale(command.factor);
  else running[command.kind]();
}

/** Ctrl-C ends gracefully, the second time at once. */
async function withSignals<Value>(running: Run, work: () => Promise<Value>): Promise<Value> {
  let stopped = false;
  const stop = (): void => {
    stopped = true;
    running.stop();
  };
  // A closed terminal may send it more than once: that does not mean to end without results.
  const hangUp = (): void => {
    if (!stopped) stop();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  process.on("SIGHUP", hangUp);
  try {
    return await work();
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    process.off("SIGHUP", hangUp);
  }
}

function tagOf(text: string): [string, string] {
  const [, name, value] = /^([^=\s]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new RunError(`--tag "${text}" is not name=value, for example --tag branch=main`, 2);
  return [name, value];
}

/** `--metrics` and `--samples` are reporters like any other. */
export function reportsOf({
  metrics,
  report,
  samples,
}: Pick<RunFlags, "metrics" | "report" | "samples">): string[] {
  const others = { metrics, samples };
  const named = Object.entries(others).filter(([, target]) => target !== undefined);
  return [...report, ...named.map((pair) => pair.join("="))];
}

export function optionsOf(flags: RunFlags): RunOptions {
  const { abortOnFail, body, callTimeout, cores, duration, gracefulStop, insecure, iterations } =
    flags;
  const { maxRate, maxVus, rate, timeout, traceparent, vus, warmup } = flags;
  const load = { duration, gracefulStop, iterations, maxRate, maxVus, rate, vus, warmup };
  return {
    ...load,
    maxUnanswered: flags.maxUnanswered,
    callTimeout,
    timeout,
    insecure,
    traceparent,
    cores,
    thresholds: flags.threshold,
    title: flags.title,
    tags: Object.fromEntries(flags.tag.map(tagOf)),
    report: reportsOf(flags),
    abortOnFail,
    body,
    // Defaults of flags are not choices of the user.
    method: flags.method === "GET" ? undefined : flags.method,
    headers: flags.header.length === 0 ? undefined : Object.fromEntries(flags.header.map(headerOf)),
    inspect: flags.inspect,
    only: flags.only.length === 0 ? undefined : flags.only,
    seed: flags.seed,
    env: flags.env.length === 0 ? undefined : Object.fromEntries(flags.env),
    command: `hyperscale ${maskedCommand(process.argv.slice(2))}`,
  };
}

export interface FinishOptions extends Pick<RunFlags, "out" | "csv" | "requireTrusted"> {
  readonly opening: ReportOpening;
}

export async function finish(
  finished: RunSummary,
  { csv, out, requireTrusted, opening }: FinishOptions,
  view: RunView,
): Promise<number> {
  const summary = asRequired(finished, requireTrusted);
  let files: readonly string[] = [];
  let problem: string | undefined;
  try {
    files = await writeOutputs(summary, { folder: out, csv });
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    problem = error.message;
  }
  const report = files.find((file) => basename(file) === "report.html");
  // The report comes first.
  const ordered = [...(report === undefined ? [] : [report]), ...files.filter((f) => f !== report)];
  const reportUrl = report === undefined ? undefined : pathToFileURL(report).href;
  view.finish({ summary, files: ordered, reportUrl });
  if (opening.isWanted && report !== undefined) await openPage(report);
  if (problem !== undefined) {
    complain(`hyperscale: ${problem}`);
    return EXIT_FAILURE;
  }
  return verdictCode(summary);
}

/** In continuous integration nobody reads a note: there trust is required unless the flag says otherwise. */
export function asRequired(summary: RunSummary, requireTrusted: boolean | undefined): RunSummary {
  const isRequired = requireTrusted ?? inCi(process.env["CI"]);
  return isRequired ? withTrustRequired(summary) : summary;
}

export function verdictCode(summary: RunSummary): number {
  switch (summary.verdict) {
    case "passed":
      return isRejected(summary) ? EXIT_UNTRUSTED : EXIT_PASSED;
    case "interrupted":
      return EXIT_INTERRUPTED;
    case "failed":
      // A failed workflow is no verdict on the target's speed.
      return summary.workflows.some((workflow) => workflow.status === "failed")
        ? EXIT_FAILURE
        : EXIT_VERDICT_FAILED;
    default:
      return assertNever(summary.verdict);
  }
}

export function explain(error: unknown): number {
  if (error instanceof OutputError) {
    complain(`hyperscale: ${error.message}`);
    return EXIT_USAGE;
  }
  if (!(error instanceof RunError)) throw error;
  complain(`hyperscale: ${error.message}`);
  if (error.hint !== null) complain(`  ${error.hint}`);
  return error.exitCode;
}

/** Checks with the names of the flags; the rest is checked for every run alike. */
export function checkFlags(flags: RunFlags): void {
  if (flags.rate !== undefined && flags.vus !== undefined) {
    throw new RunError(
      "--rate and --vus exclude each other; with --rate, --max-vus bounds the users",
      2,
    );
  }
  if (flags.iterations !== undefined && flags.rate !== undefined) {
    throw new RunError("--iterations and --rate exclude each other", 2);
  }
  for (const text of flags.threshold) {
    const parsed = parseThreshold(text);
    if (!parsed.ok) throw new RunError(`--threshold "${text}": ${parsed.problem}`, 2);
  }
}

function headerOf(text: string): [string, string] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new RunError(`--header "${text}": write it as "Name: value"`, 2);
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function whole(flag: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const most = flag === "--cores" ? CORES_MAX : Number.MAX_SAFE_INTEGER;
    if (!Number.isInteger(value) || value < 1 || value > most) {
      throw new RunError(`${flag} is "${text}"; it must be a whole number of at least 1`, 2);
    }
    return value;
  };
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0 && value <= 1) return value;
  throw new RunError(`--traceparent is "${text}"; it must be a share from 0 to 1, such as 0.1`, 2);
}

function unanswered(text: string): number {
  const value = parseShare(text);
  if (value !== null) return value;
  throw new RunError(`--max-unanswered is "${text}"; it must be a share such as 5% or 0.05`, 2);
}

function number(flag: string): (text: string) => number {
  return (text) => {
    const value = Number(text.replace(/\/s$/, ""));
    if (!Number.isFinite(value) || value <= 0)
      throw new RunError(`${flag} is "${text}"; it must be a number above 0`, 2);
    return value;
  };
}

function duration(flag: string): (text: string) => number {
  return (text) => {
    const parsed = parseDuration(text);
    if (!parsed.ok) throw new RunError(`${flag}: ${parsed.problem}`, 2);
    if (parsed.ms <= 0 && flag !== "--warmup" && flag !== "--graceful-stop") {
      throw new RunError(`${flag} must be more than zero`, 2);
    }
    return parsed.ms;
  };
}
