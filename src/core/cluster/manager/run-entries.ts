/**
 * Log entries of a job. (`run/ID`)
 *
 * Every decision carries its leader's view: an entry that a deposed leader left behind and the ledger passed on is
 * rejected, because the successor has decided for itself. It also carries the time of the run, so that a replay takes
 * every decision at the same time.
 */

import { encodePlain } from "../../base/plain-value.ts";
import type { AgreedStep, PhaseStep } from "../../load/execution/phase-types.ts";
import type { LossFigures } from "../../load/results/loss-figures.ts";
import { isScaleFactor } from "../../load/results/scale-factor.ts";
import { OVERDUE_CAUSES } from "../gate-messages.ts";
import { type BlobHash, type Control, JOB_STATUSES, type JobStatus } from "../messages.ts";
import type { TrackingChange } from "../overload/job-timeout.ts";
import type { Grant } from "./datacenter-state.ts";
import { type CallCounts, isCallCounts } from "./run-result.ts";
import {
  decodeShape,
  isAnything,
  isBoolean,
  isBytes,
  isNumber,
  isText,
  isWhole,
  listOf,
  oneOf,
  optional,
  orNull,
  record,
  variant,
} from "./shapes.ts";

/** Maximum size of one entry: a value that a workflow provides, or a submission. */
export const RUN_ENTRY_BYTES_MAX = 524_288;

/** An executor core of the job, numbered over all its workers. */
export interface RunCore {
  readonly core: number;
  readonly worker: string;
  readonly incarnation: number;
  /** The lost core that it is to replace; absent for the initial cores. */
  readonly joins?: number;
}

/** Author and time of a decision. */
interface Led {
  /** View of the leader. */
  readonly view: number;
  /** Milliseconds since the job's group began, by the clock of its leader. */
  readonly at: number;
}

export interface RunEnd {
  readonly status: JobStatus;
  readonly reason: string | null;
  readonly summary: BlobHash | null;
  /** Calls counted by the summary, for job lists. */
  readonly calls?: CallCounts;
}

export type RunEntry =
  | {
      readonly kind: "begin";
      /** Wall-clock milliseconds of the manager that accepted the submission. */
      readonly createdAt: number;
      /** How long the job had waited for cores. */
      readonly waitedMs: number;
      readonly submission: Uint8Array;
      readonly grants: readonly Grant[];
    }
  | LedEntry
  /** Requested by a user; applied by the current leader. */
  | {
      readonly kind: "control";
      readonly at: number;
      readonly control: Control;
      readonly by: string;
    };

/** Decided by the leader. */
type LedEntry = Led &
  /** `by`: the manager that leads from now on. */
  (
    | { readonly kind: "adopt"; readonly by?: string }
    | { readonly kind: "open"; readonly cores: readonly RunCore[] }
    /** Every core has loaded the job: its executions begin. */
    | { readonly kind: "start" }
    | { readonly kind: "step"; readonly step: PhaseStep }
    | CoreChange
    | { readonly kind: "timeouts"; readonly change: TrackingChange }
    | ({ readonly kind: "end" } & RunEnd)
  );

/** One change of leader. */
export interface Adoption {
  readonly at: number;
  readonly view: number;
  readonly by: string;
}

/** An entry before its leader adds view and time. */
export type Decided<Entry = LedEntry> = Entry extends LedEntry ? Omit<Entry, keyof Led> : never;

/** Decisions that a new leader replays, in order. */
export type Decision = { readonly at: number } & (
  | { readonly kind: "start" }
  | { readonly kind: "step"; readonly step: AgreedStep }
  | CoreChange
  | { readonly kind: "control"; readonly control: Control; readonly by: string }
);

/** Loss of a core, possibly followed by a replacement. */
type CoreChange =
  | {
      readonly kind: "coreLost";
      readonly core: number;
      readonly what: string;
      /** Another core may replace it: its share is kept until one has, or none does. */
      readonly awaited: boolean;
      /** Known metrics of its share; null when the leader knew none. */
      readonly figures: LossFigures | null;
    }
  | { readonly kind: "coreJoined"; readonly core: number; readonly instead: number }
  | { readonly kind: "coreForgone"; readonly core: number };

export const isCore = record({
  ...{ core: isWhole, worker: isText, incarnation: isWhole },
  joins: optional(isWhole),
});
export const isGrant = record({
  worker: isText,
  incarnation: isWhole,
  capacity: isWhole,
  cores: isWhole,
});
export const isAdoption = record({ at: isWhole, view: isWhole, by: isText });
export const isEnd = {
  status: oneOf(...JOB_STATUSES),
  reason: orNull(isText),
  summary: orNull(isText),
  calls: optional(isCallCounts),
};

const ofWorkflow = { workflow: isText };
const onCore = { ...ofWorkflow, core: isWhole };
const fault = { gate: isText, text: isText, count: isNumber };
const probe = record({
  ...{ load: isNumber, held: isBoolean, reason: orNull(isText) },
  ...{ fromMs: isNumber, toMs: isNumber },
});
const isStep = variant({
  place: record({ ...ofWorkflow, cores: listOf(isWhole) }),
  deal: record({ ...onCore, instead: isWhole }),
  setup: record(onCore),
  setupDone: record({ ...ofWorkflow, value: isAnything }),
  teardown: record(onCore),
  finished: record({
    ...onCore,
    finished: record({ provided: record({}), notes: listOf(isText) }),
  }),
  report: record({ ...ofWorkflow, error: orNull(isText), faults: listOf(record(fault)) }),
  stop: record({
    workflow: orNull(isText),
    fault: orNull(record(fault)),
  }),
  level: record({ ...ofWorkflow, load: isNumber, probe }),
  finish: record({ ...ofWorkflow, probe }),
  grant: record({
    ...{ ...onCore, execution: isWhole, request: isWhole },
    ...{ name: isText, size: isNumber },
  }),
  numbers: record({ core: isWhole, id: isWhole, name: isText, count: isNumber }),
  queue: record({ name: isText }),
});
const isControl = variant({
  cancel: record({ reason: isText }),
  pause: record({}),
  resume: record({}),
  scale: record({ factor: (value) => isScaleFactor(Number(value)) }),
  start: record({ atMs: isWhole }),
  begin: record({ workflow: isText, atMs: isWhole, value: isAnything }),
  over: record({ workflow: isText, error: orNull(isText) }),
  timeOut: record({ reason: isText, view: isWhole, extendedMs: isNumber }),
});

const overdue = { cause: oneOf(...OVERDUE_CAUSES), reason: isText };
const isTrackingChange = variant({
  progress: record({ progressAt: isNumber, advance: isNumber }),
  extended: record({ worker: isText, ms: isNumber }),
  recovered: record({ worker: isText }),
  overdue: record(overdue),
});
export const isTracking = record({
  ...{ progressAt: isNumber, advance: isNumber, extendedMs: isNumber, extensionMsMax: isNumber },
  ...{ extendedAt: orNull(isNumber), extended: listOf(isText) },
  overdue: orNull(record({ ...overdue, at: isNumber })),
});

const figures = record({
  ...{ workflow: orNull(isText), users: isNumber, measuredMs: isNumber },
  ...{ requestsCounted: isNumber, requestsUnseen: isNumber },
  ...{ requestsPerSecondMax: optional(isNumber), noticedMs: optional(isNumber) },
  isUnbounded: optional(isBoolean),
});
const coreLost = { core: isWhole, what: isText, awaited: isBoolean, figures: orNull(figures) };
const coreJoined = { core: isWhole, instead: isWhole };
const coreForgone = { core: isWhole };
const control = { control: isControl, by: isText };
const led = { view: isWhole, at: isWhole };

const isEntry = variant({
  begin: record({
    ...{ createdAt: isWhole, waitedMs: isWhole },
    ...{ submission: isBytes, grants: listOf(isGrant) },
  }),
  adopt: record({ ...led, by: optional(isText) }),
  open: record({ ...led, cores: listOf(isCore) }),
  start: record(led),
  step: record({ ...led, step: isStep }),
  coreLost: record({ ...led, ...coreLost }),
  coreJoined: record({ ...led, ...coreJoined }),
  coreForgone: record({ ...led, ...coreForgone }),
  control: record({ at: isWhole, ...control }),
  timeouts: record({ ...led, change: isTrackingChange }),
  end: record({ ...led, ...isEnd }),
});

export const isDecision = variant({
  start: record({ at: isWhole }),
  step: record({ at: isWhole, step: isStep }),
  coreLost: record({ at: isWhole, ...coreLost }),
  coreJoined: record({ at: isWhole, ...coreJoined }),
  coreForgone: record({ at: isWhole, ...coreForgone }),
  control: record({ at: isWhole, ...control }),
});

export function encodeRunEntry(entry: RunEntry): Uint8Array {
  return encodePlain(entry);
}

export function decodeRunEntry(data: Uint8Array): RunEntry | null {
  return decodeShape<RunEntry>(data, isEntry);
}
