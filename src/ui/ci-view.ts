/**
 * `--ui ci`: plain lines for logs. A line when a phase begins, a heartbeat every few seconds, messages as they arrive,
 * the end result; no escape codes. Under GitHub Actions failed thresholds also become annotations, which the run's page
 * shows at the top.
 */

import { clean } from "../core/base/terminal-text.ts";
import {
  formatClock,
  formatCount,
  formatNumber,
  formatPercent,
} from "../core/load/results/format.ts";
import { generatorTitle } from "../core/load/results/generator-health.ts";
import type { LiveRun, RunControl, RunEnd, RunPhase, RunView } from "../core/load/results/live.ts";
import type { RunSummary } from "../core/load/results/model.ts";
import { endLines } from "./end.ts";
import { pace, percentiles, users } from "./figures-line.ts";
import { linesToText } from "./lines.ts";
import { type Host, nodeHost, type ViewOptions } from "./ports.ts";

export const HEARTBEAT_MS = 5_000;
/** Logs have no width; this reads well on a build page. */
const LOG_COLUMNS = 120;

export class CiView implements RunView {
  readonly #options: ViewOptions;
  readonly #host: Host;
  #phase: RunPhase | null = null;
  #beatAt = -Infinity;
  #broken = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#host = options.host ?? nodeHost;
  }

  start(_control: (command: RunControl) => void): void {
    this.#beatAt = this.#host.now();
    // A closed reader (`| head`) must not end the run: its results are still to be written.
    this.#options.stdout.on("error", () => {
      this.#broken = true;
    });
  }

  update(live: LiveRun): void {
    const now = this.#host.now();
    if (live.phase !== this.#phase) {
      if (this.#phase === null) this.#print(...introduction(live.summary));
      this.#phase = live.phase;
      this.#print(`${formatClock(live.elapsedSeconds)}  ${live.phase}`);
    }
    if (now - this.#beatAt < HEARTBEAT_MS) return;
    this.#beatAt = now;
    this.#print(heartbeat(live));
  }

  message(line: string): void {
    this.#print(...line.split(/\r?\n/));
  }

  finish(end: RunEnd | undefined): void {
    if (end === undefined || this.#broken) return;
    const { stdout, env } = this.#options;
    // Messages were printed as they arrived.
    stdout.write(
      linesToText(endLines(end, stdout.columns || LOG_COLUMNS, { lines: [], dropped: 0 }), null),
    );
    if (env["GITHUB_ACTIONS"] === "true")
      for (const text of annotations(end.summary)) stdout.write(`${text}\n`);
  }

  #print(...lines: readonly string[]): void {
    if (this.#broken) return;
    this.#options.stdout.write(lines.map((line) => `${clean(line).trimEnd()}\n`).join(""));
  }
}

function introduction(summary: RunSummary): string[] {
  return [
    `hyperscale ${summary.environment.hyperscale}  ${summary.name}`,
    ...summary.workflows.map(({ name, load, steps }) => {
      // The steps of a flow are known once they occur.
      if (steps.length === 0) return `  ${name}: ${load}`;
      return `  ${name}: ${load}, ${steps.length} ${steps.length === 1 ? "step" : "steps"}`;
    }),
  ];
}

/** "00:15   50 %  1,031/s  target 1,000 arrivals/s  p95 12.3 ms  p99 48.1 ms  failed 3 (0.02 %)  64 VUs" */
export function heartbeat(live: LiveRun): string {
  const running = live.workflows.filter(({ status }) => status === "running");
  const targets = running.flatMap(({ targetPerSecond }) => targetPerSecond ?? []);
  const parts = pace(live);
  const target = targets.reduce((sum, rate) => sum + rate, 0);
  if (targets.length > 0) parts.push(`target ${formatNumber(target)} arrivals/s`);
  parts.push(...percentiles(live), failures(live), users(live));
  if (live.phase !== "running") parts.push(live.phase);
  for (const { doing, name } of live.workflows)
    if (doing !== null) parts.push(`"${name}" is ${doing}`);
  parts.push(...running.flatMap(({ search }) => search ?? []));
  const failing = live.summary.thresholds.filter(
    ({ passed, actual }) => !passed && actual !== null,
  );
  for (const { expression, actualText } of failing) parts.push(`✗ ${expression} (${actualText})`);
  const { cause, limited } = live.summary.generator;
  if (limited) parts.push("! the generator is the limit");
  else if (cause === "noisy") parts.push("! other programs disturb the generator");
  return parts.join("  ");
}

function failures({ summary }: LiveRun): string {
  const steps = summary.workflows.flatMap(({ steps }) => steps);
  const failed = steps.reduce((sum, step) => sum + step.failed, 0);
  if (failed === 0) return "failed 0";
  const requests = steps.reduce((sum, step) => sum + step.requests, 0);
  return `failed ${formatCount(failed)} (${formatPercent(failed / requests)})`;
}

/** https://docs.github.com/actions workflow commands: data escapes %, CR and LF. */
function annotations({ thresholds, reasons, verdict, generator }: RunSummary): string[] {
  const failed = thresholds.filter(({ passed }) => !passed);
  const lines = failed.map(({ expression, actualText, workflow }) => {
    const where = workflow === null ? "" : ` in ${workflow}`;
    return `::error title=Threshold failed::${data(`${expression}${where}: actual ${actualText}`)}`;
  });
  if (verdict === "failed" && failed.length === 0) {
    for (const reason of reasons) lines.push(`::error title=Load test failed::${data(reason)}`);
  }
  const title = generatorTitle(generator);
  if (title !== null) {
    const reason = generator.reason ?? "the load generator was saturated";
    lines.push(`::warning title=${title}::${data(reason)}`);
  }
  return lines;
}

function data(text: string): string {
  return clean(text).replaceAll("%", "%25");
}
