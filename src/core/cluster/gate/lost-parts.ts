/**
 * What the gate that led a job to its end knew of datacenters that left no result: the last figures that they told.
 * It stands in the job's log with the reason of its end, so that every gate tells it alike.
 */

import { encodePlain } from "../../base/plain-value.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { AGGREGATE_METRICS_BYTES_MAX } from "../../ledger/job/limits.ts";
import type { WorkflowSummary } from "../../load/results/model.ts";
import { decodeShape, isFiniteNumber, isText, isWhole, listOf, record } from "../manager/shapes.ts";

export interface LastFigures {
  readonly datacenter: string;
  /** At work there. */
  readonly users: number;
  /** How much of each of its workflows was measured there, in milliseconds. */
  readonly measured: readonly { readonly workflow: string; readonly ms: number }[];
}

const isLast = record({
  ...{ datacenter: isText, users: isWhole },
  measured: listOf(record({ workflow: isText, ms: isFiniteNumber })),
});
const isEnd = record({ lost: listOf(isLast) });

/** What a job's log says of its end; `reasonOf` finds the reason again. What is too long for it is left out. */
export function encodeEnd(reason: string | null, lost: readonly LastFigures[]): Uint8Array {
  const whole = encodePlain({ reason, lost });
  return whole.length <= AGGREGATE_METRICS_BYTES_MAX ? whole : encodePlain({ reason });
}

/** Null: nobody knows. A job that was cancelled has no more in its log than that. */
export function lastFiguresOf({ end }: JobState, datacenter: string): LastFigures | null {
  if (end?.kind !== "completed") return null;
  const told = decodeShape<{ readonly lost: readonly LastFigures[] }>(end.aggregateMetrics, isEnd);
  return told?.lost.find((one) => one.datacenter === datacenter) ?? null;
}

/** From what was told last to the end of the load, of all its workflows; what runs side by side counts once. */
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
