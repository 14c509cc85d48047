/**
 * Runs a load test with the `run` command of this very program, or on a cluster with `submit`, as a child
 * process, so that its load never shares an event loop with the queue. Figures are told while it runs;
 * summary and report are left with the task.
 *
 * It runs what was sent with the task, or a URL. Files of the node's disk are the operator's choice: those
 * of one folder, or none.
 */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { errorText } from "../../core/base/error-text.ts";
import { type ExecutionContext, type Executor, NotRetryable } from "../worker/executor.ts";
import { runProgram } from "./command.ts";
import { parseInput } from "./input.ts";

export interface LoadtestPolicy {
  /** Where load tests keep their results. */
  readonly resultsDirectory: string;
  /** The folder whose workflow files may run; undefined allows none. */
  readonly workflows: string | undefined;
  /** Whether files that come with a task may run: whoever may submit runs code here. */
  readonly bundles: boolean;
  /** How the cluster is reached, as arguments of `hyperscale submit`; undefined knows none. */
  readonly cluster?: readonly string[] | undefined;
}

const VARIABLES_MAX = 100;

const schema = z
  .strictObject({
    /** A workflow file in the node's folder of workflows, or a URL to load. */
    file: z.string().min(1).max(2_048).optional(),
    /** Instead: a workflow as one module, stored under its SHA-256. */
    bundle: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    /** What the bundle was made from, for people. */
    name: z
      .string()
      .regex(/^[\w.-]{1,100}$/)
      .default("workflow"),
    /** On the cluster that the node knows, instead of on the node. */
    cluster: z.boolean().default(false),
    /** Further arguments of `hyperscale run`, e.g. ["--vus", "50"]. */
    args: z
      .array(z.string().max(64 * 1024))
      .max(100)
      .default([]),
    /**
     * Environment variables for the code of the file. They reach it after its processes have started,
     * so that a task cannot change which code a node runs.
     */
    env: z
      .record(
        z
          .string()
          .regex(/^[^=\s]+$/)
          .max(256),
        z.string().max(64 * 1024),
      )
      .refine((env) => Object.keys(env).length <= VARIABLES_MAX, `at most ${VARIABLES_MAX}`)
      .default({}),
    /** What a failed threshold makes of the task. */
    on_failed_threshold: z.enum(["fail", "succeed"]).default("fail"),
  })
  .refine(
    ({ file, bundle }) => (file === undefined) !== (bundle === undefined),
    "give file or bundle",
  );
type LoadtestInput = z.output<typeof schema>;

const EXIT = { passed: 0, thresholdFailed: 99, wrongInput: 2, interrupted: 130 } as const;
/** Room for the rest of the result within the limit on payloads. */
const SUMMARY_CHARACTERS_MAX = 768 * 1024;

/** Load and judgement, each with its number of values; where results go is not the task's choice. */
const ARGUMENTS: Readonly<Record<string, 0 | 1>> = {
  "--vus": 1,
  "--duration": 1,
  "--rate": 1,
  "--max-vus": 1,
  "--max-rate": 1,
  "--iterations": 1,
  "--warmup": 1,
  "--graceful-stop": 1,
  "--call-timeout": 1,
  "--timeout": 1,
  "--abort-on-fail": 0,
  "--insecure": 0,
  "--traceparent": 0,
  "--cores": 1,
  "--method": 1,
  "--header": 1,
  "--body": 1,
  "--threshold": 1,
  "--only": 1,
  "--seed": 1,
  "--csv": 0,
};

/** Works from src/ and from dist/ alike: both are two levels below the package. */
const program = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

const PARENT = "HYPERSCALE_LOADTEST_PARENT";
/** Loaded into the child before anything else: a test whose node was killed must not load on. */
const endWithParent = new URL("../../../bin/end-with-parent.mjs", import.meta.url).href;

export function loadtestExecutor(policy: LoadtestPolicy): Executor {
  return async (value, context) => {
    const input = parseInput(schema, value);
    checkArguments(input.args);
    const place = placeOf(input, policy, context);
    const name = `task-${context.taskId}-attempt-${context.attempt}`;
    const out = resolve(policy.resultsDirectory, name);
    mkdirSync(out, { recursive: true, mode: 0o700 });
    const target = await targetOf(input, policy, { context, folder: `${out}-bundle` });
    const variables = Object.entries(input.env).map(([key, value]) => `--env=${key}=${value}`);
    const run = [...place, ...input.args, ...variables, "--ui", "json", "--out", out, "--", target];
    const args = ["--import", endWithParent, program, ...run];
    const outcome = await runProgram(process.execPath, args, {
      signal: context.signal,
      environment: environmentOf(process.env),
      onLine: (line) => tell(line, context),
    }).finally(() => rmSync(`${out}-bundle`, { recursive: true, force: true }));
    checkExit(outcome);
    const passed = outcome.code === EXIT.passed;
    const summary = readSummary(out);
    const files = await leaveFiles(out, context);
    if (!passed && input.on_failed_threshold === "fail")
      throw new NotRetryable(`the load test failed: ${reasonsOf(summary)}`);
    const verdict = passed ? "passed" : "failed";
    return { verdict, exit_code: outcome.code, ...files, ...bounded(summary) };
  };
}

/** Where it runs: here, or as a job of the cluster, which takes one attempt of a task once. */
function placeOf(
  { cluster }: LoadtestInput,
  policy: LoadtestPolicy,
  { idempotencyKey, attempt }: ExecutionContext,
): readonly string[] {
  if (!cluster) return ["run"];
  if (policy.cluster === undefined)
    throw new NotRetryable("this node knows no cluster: start it with --gate or --manager");
  return ["submit", ...policy.cluster, "--idempotency-key", `${idempotencyKey}-${attempt}`];
}

/** Lines of `--ui json`: figures are progress, the rest are words. */
function tell(line: string, context: ExecutionContext): void {
  let told: { readonly event?: unknown; readonly text?: unknown } = {};
  try {
    told = Object(JSON.parse(line)) as typeof told;
  } catch {
    // Not one of them: a warning of the process itself.
  }
  const { event, ...figures } = told;
  if (event === "figures") context.progress(figures);
  else if (event === "message") context.log(String(told.text));
  else if (event !== "end") context.log(line);
}

function checkExit({ code, signal, stdout, stderr }: Awaited<ReturnType<typeof runProgram>>): void {
  const words = (stderr || stdout).trim().slice(-2_000);
  switch (code) {
    case EXIT.passed:
    case EXIT.thresholdFailed:
      return;
    case EXIT.wrongInput:
      throw new NotRetryable(`the load test was refused: ${words}`);
    case EXIT.interrupted:
      throw new Error("the load test was interrupted");
    default:
      throw new Error(`the load test ended with ${code ?? signal}: ${words}`);
  }
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".json": "application/json",
  ".html": "text/html; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".xml": "application/xml",
};

/** What the run wrote goes with the task; a file that is too large stays on this node, and is named. */
async function leaveFiles(
  out: string,
  context: ExecutionContext,
): Promise<{ readonly files: readonly string[]; readonly left_on_node?: readonly string[] }> {
  const files: string[] = [];
  const left: string[] = [];
  for (const { name } of readdirSync(out, { withFileTypes: true }).filter((one) => one.isFile())) {
    try {
      const type = MEDIA_TYPES[extname(name)];
      await context.attach(name, readFileSync(join(out, name)), type);
      files.push(name);
    } catch (error) {
      context.signal.throwIfAborted();
      context.log(`${join(out, name)} could not be stored: ${errorText(error)}`);
      left.push(join(out, name));
    }
  }
  if (left.length > 0) return { files, left_on_node: left };
  rmSync(out, { recursive: true, force: true });
  return { files };
}

interface BundlePlace {
  readonly context: ExecutionContext;
  readonly folder: string;
}

async function targetOf(
  { file, bundle, name }: LoadtestInput,
  { bundles, workflows }: LoadtestPolicy,
  { context, folder }: BundlePlace,
): Promise<string> {
  if (bundle === undefined) return namedTarget(file ?? "", workflows);
  if (!bundles) {
    const cure = "it has no token, or was started with --no-bundles";
    throw new NotRetryable(`this node runs no files that come with tasks: ${cure}`);
  }
  const content = await context.file(bundle);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${name.replace(/\.[cm]?[jt]sx?$/, "")}.mjs`);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

function namedTarget(file: string, workflows: string | undefined): string {
  if (/^https?:\/\//i.test(file)) {
    if (URL.canParse(file)) return file;
    throw new NotRetryable(`"${file.slice(0, 200)}" is not a URL`);
  }
  if (workflows === undefined) {
    const cure = "send the file with the task, or start the node with --workflows DIR";
    throw new NotRetryable(`this node runs no workflow files: ${cure}`);
  }
  const folder = realpathSync(workflows);
  const path = resolve(folder, file);
  // Where links lead counts, not how the path is written.
  const real = existsSync(path) ? realpathSync(path) : path;
  if (!real.startsWith(folder + sep) || !existsSync(real) || !statSync(real).isFile()) {
    throw new NotRetryable(`"${file.slice(0, 200)}" is not a file of this node's workflow folder`);
  }
  return real;
}

function checkArguments(args: readonly string[]): void {
  for (let at = 0; at < args.length; ) {
    const [name = "", value] = splitFlag(args[at] ?? "");
    const values = Object.hasOwn(ARGUMENTS, name) ? ARGUMENTS[name] : undefined;
    if (values === undefined) {
      const known = Object.keys(ARGUMENTS).join(" ");
      throw new NotRetryable(`input.args: "${name.slice(0, 100)}" is not taken here; use ${known}`);
    }
    const separate = values === 1 && value === undefined;
    if (separate && at + 1 >= args.length)
      throw new NotRetryable(`input.args: ${name} needs a value`);
    at += separate ? 2 : 1;
  }
}

function splitFlag(text: string): readonly [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 || !text.startsWith("--")
    ? [text, undefined]
    : [text.slice(0, at), text.slice(at + 1)];
}

/** Workflows may need the operator's variables; what belongs to the queue itself is not theirs. */
function environmentOf(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(own).filter(([name]) => !/^(HYPERSCALE_|PG[A-Z])/.test(name));
  return { ...Object.fromEntries(kept), [PARENT]: String(process.pid) };
}

type Summary = Readonly<Record<string, unknown>>;

/** A run without a summary was no run, whatever its exit code says. */
function readSummary(directory: string): Summary {
  const file = join(directory, "summary.json");
  if (!existsSync(file)) throw new NotRetryable("the load test ended without a summary");
  const summary: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (summary === null || typeof summary !== "object")
    throw new NotRetryable("the summary of the load test is not an object");
  return summary as Summary;
}

function reasonsOf(summary: Summary): string {
  const reasons = summary["reasons"];
  const text = Array.isArray(reasons) ? reasons.map(String).join("; ") : "";
  return (text === "" ? "a threshold or check failed" : text).slice(0, 2_000);
}

/** The whole summary where it can be stored; else its parts from small to large, and which are missing. */
function bounded(summary: Summary): { summary: Summary; omitted: readonly string[] } {
  const parts = Object.entries(summary)
    .map(([name, part]) => ({ name, part, size: JSON.stringify(part)?.length ?? 0 }))
    .sort((a, b) => a.size - b.size);
  let size = 0;
  const kept = new Set<string>();
  for (const part of parts) {
    size += part.size + part.name.length;
    if (size <= SUMMARY_CHARACTERS_MAX) kept.add(part.name);
  }
  return {
    summary: Object.fromEntries(Object.entries(summary).filter(([name]) => kept.has(name))),
    omitted: parts.filter(({ name }) => !kept.has(name)).map(({ name }) => name),
  };
}
