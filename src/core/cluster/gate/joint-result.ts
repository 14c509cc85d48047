/** Result of a job over several datacenters, merged from their results. */

import { isoText } from "../../base/civil.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import type { ToldEnd } from "../../load/execution/told-run.ts";
import type {
  CoreHealth,
  GeneratorHealth,
  Loss,
  RunSummary,
  ThresholdOutcome,
  TimelineEvent,
  WorkflowSummary,
} from "../../load/results/model.ts";
import { type JobPart, partsOf } from "./job-parts.ts";
import { lastFiguresOf, missingMsOf } from "./lost-parts.ts";
import { MergedRun } from "./merged-run.ts";
import type { JobSpec } from "./spec.ts";
import { createdAtOf, isThresholdAbort, LOST, reasonOf } from "./status.ts";

/** Result of one datacenter. */
interface PartResult {
  readonly datacenter: string;
  readonly summary: RunSummary;
  readonly told: ToldEnd | null;
}

interface Merging {
  readonly state: JobState;
  readonly spec: JobSpec;
  readonly errorKinds: readonly string[];
  readonly version: string;
}

export function mergedResult(
  { errorKinds, spec, state, version }: Merging,
  results: readonly PartResult[],
): { readonly summary: RunSummary; readonly startSkewMs: number } {
  const parts = partsOf(spec.submission, spec.routing, state.run.dispatched);
  const startAtMs = state.run.started?.startAtMs ?? createdAtOf(state);
  const run = new MergedRun({
    ...{ job: state.jobId, submission: spec.submission, errorKinds, version, parts, startAtMs },
  });
  const seconds = Math.max(0, ...results.map(({ summary }) => summary.durationSeconds));
  run.setTime(startAtMs + seconds * 1_000);
  for (const { datacenter, told } of results) {
    if (told === null) continue;
    run.take(datacenter, told);
    run.remark(told.remarks);
  }
  for (const { datacenter } of parts) run.close(datacenter);
  const isCancelled = state.cancellation !== null && !isThresholdAbort(state);
  const merged = run.summary(isCancelled);
  const summary = withParts(
    merged,
    results.map((one) => one.summary),
    seconds,
  );
  return {
    summary: withLosses(withAbort(summary, state), state, parts),
    startSkewMs: run.startSkewMs,
  };
}

/** Adds what metrics do not contain: cores, losses and events of the parts. */
function withParts(
  merged: RunSummary,
  parts: readonly RunSummary[],
  durationSeconds: number,
): RunSummary {
  const [first] = parts;
  const total = (value: (one: RunSummary) => number): number =>
    parts.reduce((sum, one) => sum + value(one), 0);
  return {
    ...merged,
    durationSeconds,
    generator: generatorOf(parts),
    lost: lossesOf(parts),
    events: eventsOf(merged, parts),
    workflows: merged.workflows.map((one) => withCores(one, parts)),
    environment: {
      ...(first?.environment ?? merged.environment),
      cpus: total(({ environment }) => environment.cpus),
      cores: total(({ environment }) => environment.cores),
    },
  };
}

function withCores(workflow: WorkflowSummary, parts: readonly RunSummary[]): WorkflowSummary {
  const own = parts.flatMap(({ workflows }) =>
    workflows.filter(({ name }) => name === workflow.name),
  );
  return { ...workflow, cores: own.reduce((sum, { cores }) => sum + cores, 0) };
}

/** First core number of each part: cores are numbered over all datacenters. */
function firstCores(parts: readonly RunSummary[]): readonly number[] {
  return parts.map((_, at) =>
    parts.slice(0, at).reduce((sum, { environment }) => sum + environment.cores, 0),
  );
}

function generatorOf(parts: readonly RunSummary[]): GeneratorHealth {
  const firsts = firstCores(parts);
  const all = parts.map(({ generator }) => generator);
  const cores = all.flatMap((one, at): readonly CoreHealth[] =>
    one.cores.map((core) => ({ ...core, core: core.core + (firsts[at] ?? 0) })),
  );
  const disturbed = all.find((one) => one.limited) ?? all.find((one) => one.reason !== null);
  return {
    cpu: Math.max(0, ...all.map(({ cpu }) => cpu)),
    lagMsP99: Math.max(0, ...all.map(({ lagMsP99 }) => lagMsP99)),
    limited: disturbed?.limited ?? false,
    cause: disturbed?.cause ?? null,
    reason: disturbed?.reason ?? null,
    cores,
  };
}

function lossesOf(parts: readonly RunSummary[]): readonly Loss[] {
  const firsts = firstCores(parts);
  return parts.flatMap(({ lost }, at) =>
    lost.map((loss) => ({ ...loss, core: loss.core + (firsts[at] ?? 0) })),
  );
}

/** Thresholds apply to the whole run; user actions happened everywhere at once, and are listed once. */
function eventsOf(merged: RunSummary, parts: readonly RunSummary[]): readonly TimelineEvent[] {
  const judged = (merged.events ?? []).filter(({ kind }) => kind === "threshold crossed");
  const rest = parts.flatMap(({ events = [] }, at) =>
    events.filter(({ kind }) => at === 0 || kind === "core lost" || kind === "stall"),
  );
  return [...judged, ...rest].toSorted((a, b) => a.atSeconds - b.atSeconds);
}

/** Marks the threshold that aborted the job as failed, whatever its final value. */
function withAbort(summary: RunSummary, state: JobState): RunSummary {
  const reason = state.cancellation?.reason ?? "";
  if (!isThresholdAbort(state)) return summary;
  const ended = (one: ThresholdOutcome): boolean => reason.startsWith(one.expression);
  const thresholds = summary.thresholds.map((one) =>
    ended(one) ? { ...one, passed: false, aborted: true } : one,
  );
  return {
    ...summary,
    ...{ thresholds, verdict: "failed" },
    reasons: [
      `${reason}, and ended the run`,
      ...summary.reasons.filter((one) => !one.startsWith(reason)),
    ],
  };
}

/** A datacenter without a result is a loss, and no run passes with one. */
function withLosses(summary: RunSummary, state: JobState, parts: readonly JobPart[]): RunSummary {
  const { run } = state;
  const gone = run.results.filter(({ bytes }) => bytes === 0);
  if (gone.length === 0) return summary;
  const why = reasonOf(state);
  const lost = gone.map(({ dcId, finalStatus, hlc }): Loss => {
    const share = parts.find(({ datacenter }) => datacenter === dcId)?.share ?? 0;
    const what =
      finalStatus === LOST ? `datacenter ${dcId} was lost` : `datacenter ${dcId} left no result`;
    const cost = `${Math.round(share * 100)} % of the plan, of which no figure is known`;
    const last = lastFiguresOf(state, dcId);
    return {
      ...{ core: summary.environment.cores, atSeconds: summary.durationSeconds, what, cost },
      // The number of its requests is unknown.
      ...{ at: isoText(hlc.wallMs), worker: null, requestsNotCounted: null },
      ...{ exact: false, dealtAgainTo: null },
      users: last?.users ?? null,
      missingMs: last === null ? null : missingMsOf(last, summary.workflows),
    };
  });
  return {
    ...summary,
    verdict: summary.verdict === "interrupted" ? "interrupted" : "failed",
    reasons: [
      `the result is of a part of the load only${why === null ? "" : `: ${why}`}`,
      ...summary.reasons,
    ],
    lost: [...summary.lost, ...lost],
  };
}
