/** Live metrics of a load test in one line: of this process, or reported by another one as `--ui json`. */

import {
  formatClock,
  formatCompactPercent,
  formatMs,
  formatRate,
  virtualUsers,
} from "../core/load/results/format.ts";
import type { LiveRun, LiveStep, LiveWorkflow } from "../core/load/results/live.ts";

export interface Figures
  extends Pick<
    LiveRun,
    "phase" | "elapsedSeconds" | "totalSeconds" | "ratePerSecond" | "failedPerSecond"
  > {
  readonly workflows: readonly Pick<LiveWorkflow, "activeVus" | "steps">[];
}

/** "00:15   50 %  1,031/s  p95 12.3 ms  p99 48.1 ms  failed 0.5/s  64 VUs" */
export function figuresLine(figures: Figures): string {
  const failed = `failed ${formatRate(figures.failedPerSecond)}`;
  const parts = [...pace(figures), ...percentiles(figures), failed, users(figures)];
  if (figures.phase !== "running") parts.push(figures.phase);
  return parts.join("  ");
}

/** Whether a received value has everything that the line shows. */
export function areFigures(value: unknown): value is Figures {
  const { phase, elapsedSeconds, totalSeconds, workflows, ...rates } = fieldsOf(value);
  return (
    typeof phase === "string" &&
    areNumbers([elapsedSeconds, rates["ratePerSecond"], rates["failedPerSecond"]]) &&
    (totalSeconds === null || areNumbers([totalSeconds])) &&
    Array.isArray(workflows) &&
    workflows.every((workflow) => {
      const { activeVus, steps } = fieldsOf(workflow);
      return areNumbers([activeVus]) && Array.isArray(steps) && steps.every(isStep);
    })
  );
}

function isStep(value: unknown): value is LiveStep {
  const { name, ratePerSecond, p95, p99 } = fieldsOf(value);
  return typeof name === "string" && areNumbers([ratePerSecond, p95, p99]);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value) as Readonly<Record<string, unknown>>;
}

function areNumbers(values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === "number");
}

/** Elapsed time, progress and rate. */
export function pace({ elapsedSeconds, totalSeconds, ratePerSecond }: Figures): string[] {
  const parts = [formatClock(elapsedSeconds)];
  if (totalSeconds !== null && totalSeconds > 0)
    parts.push(formatCompactPercent(Math.min(1, elapsedSeconds / totalSeconds)).padStart(5));
  return [...parts, formatRate(ratePerSecond)];
}

/** Percentiles of different steps cannot be added up: shows the slowest step, by name. */
export function percentiles({ workflows }: Figures): string[] {
  const [slowest, ...others] = workflows
    .flatMap(({ steps }) => steps)
    .filter(({ ratePerSecond }) => ratePerSecond > 0)
    .sort((a, b) => b.p99 - a.p99);
  if (slowest === undefined) return [];
  const whose = others.length > 0 ? ` (${slowest.name})` : "";
  return [`p95 ${formatMs(slowest.p95)}`, `p99 ${formatMs(slowest.p99)}${whose}`];
}

export function users({ workflows }: Figures): string {
  return virtualUsers(workflows.reduce((sum, { activeVus }) => sum + activeVus, 0));
}
