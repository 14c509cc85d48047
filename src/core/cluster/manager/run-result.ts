/**
 * Result of a job in its datacenter, as bytes: its summary and, for a part of a larger job, the metrics needed to merge
 * the parts. Encodes the same metrics while the job runs.
 */

import { encodePlain } from "../../base/plain-value.ts";
import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { ToldEnd, ToldRun } from "../../load/execution/told-run.ts";
import type { RunSummary } from "../../load/results/model.ts";
import type { Submission } from "../messages.ts";
import {
  decodeShape,
  isAnything,
  isBoolean,
  isBytes,
  isFiniteNumber,
  isNumber,
  isText,
  isWhole,
  listOf,
  oneOf,
  optional,
  orNull,
  record,
} from "./shapes.ts";

interface RunResult {
  readonly summary: RunSummary;
  /** Null: the job was not a part of a larger one. */
  readonly told: ToldEnd | null;
}

/** Calls counted by a summary. */
export interface CallCounts {
  readonly requests: number;
  readonly failed: number;
}

export const isCallCounts = record({ requests: isWhole, failed: isWhole });

const fault = record({ gate: isText, text: isText, count: isNumber });
const workflow = record({
  ...{ name: isText, error: orNull(isText), frame: isBytes },
  status: oneOf("waiting", "running", "completed", "failed", "interrupted", "not run"),
  vitals: record({ cpu: isNumber, residentBytes: isNumber, activeUsers: isNumber }),
  startedAtMs: orNull(isFiniteNumber),
  hasLostLoad: optional(isBoolean),
  timing: record({
    pauses: listOf(record({ atMs: isNumber, ms: isNumber })),
    factors: listOf(record({ fromMs: isNumber, factor: isNumber })),
  }),
});
const told = {
  workflows: listOf(workflow),
  waits: listOf(record({ workflow: isText, for: oneOf("begin", "over"), value: isAnything })),
};
const toldEnd = record({
  ...told,
  remarks: record({
    notes: listOf(isText),
    counted: listOf(record({ workflow: isText, topic: isText, name: isText, count: isWhole })),
    faults: listOf(record({ workflow: orNull(isText), fault })),
  }),
});

export function encodeTold(run: ToldRun): Uint8Array {
  return encodePlain(run);
}

/** Null for bytes of another kind or version. */
export function decodeTold(bytes: Uint8Array): ToldRun | null {
  return decodeShape<ToldRun>(bytes, record(told));
}

/** Encodes a summary alone in its original form; a part of a larger job adds its metrics. */
export function resultBytes(
  summary: RunSummary,
  machine: RunMachine | null,
  submission: Submission | null,
  { now, wall }: { readonly now: number; readonly wall: number },
): Uint8Array {
  const isPart = submission?.manifests.some(({ joint }) => joint !== undefined) === true;
  if (machine === null || !isPart) return encodePlain(summary);
  return encodePlain({ ...summary, told: machine.tellEnd(now, wall) });
}

export function decodeResult(bytes: Uint8Array): RunResult | null {
  const isResult = record({ workflows: listOf(isAnything), told: optional(toldEnd) });
  const found = decodeShape<RunSummary & { readonly told?: ToldEnd }>(bytes, isResult);
  if (found === null) return null;
  const { told: end = null, ...summary } = found;
  return { summary, told: end };
}
