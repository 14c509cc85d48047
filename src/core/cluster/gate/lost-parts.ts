/**
 * Last metrics of datacenters that left no result, as known to the gate that led the job to its end. Stored in the
 * job's log with the reason of its end, so that every gate shows the same.
 */

import { encodePlain } from "../../base/plain-value.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { AGGREGATE_METRICS_BYTES_MAX } from "../../ledger/job/limits.ts";
import type { WorkflowSummary } from "../../load/results/model.ts";
import { decodeShape, isFiniteNumber, isText, isWhole, listOf, record } from "../manager/shapes.ts";

export interface LastFigures {
  readonly datacenter: string;
  /** Active users there. */
  readonly users: number;
  /** Measured time of each workflow there, in milliseconds. */
  readonly measured: readonly { readonly workflow: string; readonly ms: number }[];
}

const isLast = record({
  ...{ datacenter: isText, users: isWhole },
  measured: listOf(record({ workflow: isText, ms: isFiniteNumber })),
});
const isEnd = record({ lost: listOf(isLast) });

/** Encodes the end of a job for its log; `reasonOf` decodes the reason. Omits `lost` if it is too long. */
export function encodeEnd(reason: string | null, lost: readonly LastFigures[]): Uint8Array {
  const whole = encodePlain({ reason, lost });
  return whole.length <= AGGREGATE_METRICS_BYTES_MAX ? whole : encodePlain({ reason });
}

/** Null if unknown. The log of a cancelled job has no such entry. */
export function lastFiguresOf({ end }: JobState, datacenter: string): LastFigures | null {
  if (end?.kind !== "completed") return null;
  const decoded = decodeShape<{ readonly lost: readonly LastFigures[] }>(
    end.aggregateMetrics,
    isEnd,
  );
  return decoded?.lost.find((one) => one.datacenter === datacenter) ?? null;
}

/** Time from the last report to the end of the load, over all workflows; overlaps count once. */
export function missingMsOf(
  { measured }: LastFigures,
  workflows: readonly Pick<WorkflowSummary, "elapsedSeconds" | "name" | "startedAtSeconds">[],
): number {
  const gaps = measured.flatMap(({ ms, workflow }) => {
    const found = workflows.find(({ name }) => name === workflow);
    const { elapsedSeconds = 0, startedAtSeconds = 0 } = found ?? {};
    const startedAtMs = 1_000 * startedAtSeconds;
    return [{ from: startedAtMs + ms, to: startedAtMs + 1_000 * elapsedSeconds }];
  });
  let missingMs = 0;
  let until = 0;
  for (const { from, to } of gaps.toSorted((a, b) => a.from - b.from)) {
    missingMs += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return Math.round(missingMs);
}
