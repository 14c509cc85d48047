/** The last results of one workflow side by side: one point per run, oldest first. */

import { doubtOf } from "../../core/load/results/doubt.ts";
import { formatNumber } from "../../core/load/results/format.ts";
import type { RunSummary, Verdict } from "../../core/load/results/model.ts";

export interface TrendPoint {
  /** Folder of the run, as it was found. */
  readonly folder: string;
  readonly startedAt: string;
  readonly title: string | null;
  readonly verdict: Verdict;
  /** Reason to doubt its results. */
  readonly doubt: string | null;
  /** The answer of a search; null for runs that searched for nothing. */
  readonly breakpoint: TrendBreakpoint | null;
  readonly requests: number;
  readonly ratePerSecond: number;
  /** Share of all requests, 0 … 1. */
  readonly failed: number;
  /** Milliseconds; null when nothing finished, or in results of earlier versions. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly steps: readonly TrendStep[];
}

interface TrendBreakpoint {
  readonly of: "rate" | "vus";
  readonly held: number | null;
  readonly broke: number | null;
}

interface TrendStep {
  readonly name: string;
  readonly p95: number | null;
}

export interface Trends {
  /** File or URL that was run. */
  readonly name: string;
  readonly points: readonly TrendPoint[];
}

export function trendPoint(folder: string, summary: RunSummary): TrendPoint {
  const steps = summary.workflows.flatMap((workflow) =>
    workflow.steps.map((step) => ({ workflow, step })),
  );
  const requests = steps.reduce((sum, { step }) => sum + step.requests, 0);
  const failed = steps.reduce((sum, { step }) => sum + step.failed, 0);
  const rate = steps.reduce((sum, { step }) => sum + step.ratePerSecond, 0);
  const latency = summary.totals?.latencyMs;
  const measured = latency !== undefined && latency.count > 0 ? latency : null;
  return {
    folder,
    startedAt: summary.startedAt,
    title: summary.title ?? null,
    verdict: summary.verdict,
    doubt: doubtOf(summary),
    breakpoint: breakpointOf(summary),
    requests,
    ratePerSecond: summary.totals?.ratePerSecond ?? rate,
    failed: requests === 0 ? 0 : failed / requests,
    p50: measured?.p50 ?? null,
    p95: measured?.p95 ?? null,
    p99: measured?.p99 ?? null,
    steps: steps.map(({ step, workflow }) => ({
      name: summary.workflows.length > 1 ? `${workflow.name} / ${step.name}` : step.name,
      p95: step.latencyMs.count === 0 ? null : step.latencyMs.p95,
    })),
  };
}

/** Takes the first workflow that has one: as a rule a run has a single search. */
function breakpointOf({ workflows }: RunSummary): TrendBreakpoint | null {
  const found = workflows.find(({ breakpoint }) => breakpoint !== undefined)?.breakpoint;
  return found === undefined ? null : { of: found.of, held: found.held, broke: found.broke };
}

/** "120/s held, 130/s broke", without the reason; empty without a search. */
export function breakpointText({ breakpoint }: TrendPoint): string {
  if (breakpoint === null) return "";
  const { broke, held, of } = breakpoint;
  const amount = (load: number) => `${formatNumber(load)}${of === "rate" ? "/s" : " users"}`;
  const parts = [
    held === null ? "nothing held" : `${amount(held)} held`,
    broke === null ? "nothing broke" : `${amount(broke)} broke`,
  ];
  return parts.join(", ");
}

/** Relative change from the previous run; null where either has no value. */
export function changeOf(points: readonly TrendPoint[], at: number): number | null {
  const [before, now] = [points[at - 1]?.p95 ?? null, points[at]?.p95 ?? null];
  return before === null || now === null || before === 0 ? null : now / before - 1;
}
