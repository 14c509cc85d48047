/** The state of one job, folded from its events by `fold.ts`. */

import type { Hlc } from "../../base/hlc.ts";
import type { EventId, Share } from "./events.ts";
import type { JobId } from "./job-id.ts";
import { EMPTY_TRAIL, type Trail } from "./trail.ts";

/** All there are, by the numbers they have on disk and on the wire: only ever appended to. */
export const JOB_STATUSES = [
  "ABSENT",
  "CREATED",
  "ACCEPTED",
  "CANCELLING",
  "COMPLETED",
  "FAILED",
  "TIMED_OUT",
  "CANCELLED",
  "QUEUED",
  "DISPATCHED",
  "RUNNING",
  "PAUSED",
] as const;

export type JobStatus = (typeof JOB_STATUSES)[number];

export interface AcceptedDc {
  readonly dcId: string;
  readonly workerCount: number;
  readonly fenceToken: number;
  readonly hlc: Hlc;
}

/** Fence and time of a write. Of two writes, the higher fence wins, then the later time. */
interface Written {
  readonly fenceToken: number;
  readonly hlc: Hlc;
}

export interface DispatchedDc extends Written {
  readonly dcId: string;
  readonly cores: number;
  readonly attempt: number;
  readonly digest: Uint8Array;
}

export interface DcResult extends Written {
  readonly dcId: string;
  readonly finalStatus: string;
  readonly digest: Uint8Array;
  readonly bytes: number;
  readonly completed: number;
  readonly failed: number;
}

export interface Started {
  readonly startAtMs: number;
  readonly planDigest: Uint8Array;
  readonly shares: readonly Share[];
}

export interface SetUp {
  readonly workflow: string;
  readonly value: Uint8Array;
}

/** How a job is run. */
export interface RunState {
  /** Datacenters asked since the job was last queued. */
  readonly dispatched: readonly DispatchedDc[];
  /** Null before the start; it never changes after. */
  readonly started: Started | null;
  /** Load in permille of the plan: 1,000 is as planned. */
  readonly permille: number;
  readonly setUps: readonly SetUp[];
  readonly results: readonly DcResult[];
  /** The cancellation is without grace. */
  readonly aborted: boolean;
}

export const NO_RUN: RunState = {
  dispatched: [],
  started: null,
  permille: 1_000,
  setUps: [],
  results: [],
  aborted: false,
};

export interface Cancellation {
  readonly eventId: EventId;
  readonly reason: string;
  readonly requestor: string;
  readonly ackedDcs: readonly string[];
  readonly workflowsCancelled: number;
}

export type JobEnd =
  | {
      readonly kind: "completed";
      readonly finalStatus: string;
      readonly aggregateMetrics: Uint8Array;
    }
  | { readonly kind: "failed"; readonly error: string; readonly failedDc: string }
  | {
      readonly kind: "timedOut";
      readonly timeoutType: string;
      readonly lastProgressHlc: Hlc | null;
    }
  /** Datacenters that had not acked: empty unless a timeout ended the wait. */
  | { readonly kind: "cancelled"; readonly unackedDcs: readonly string[] };

export interface JobState {
  readonly jobId: JobId;
  readonly status: JobStatus;
  readonly spec: Uint8Array;
  readonly assignedDcs: readonly string[];
  readonly accepted: readonly AcceptedDc[];
  readonly run: RunState;
  readonly cancellation: Cancellation | null;
  readonly end: JobEnd | null;
  /** When the job finished; null before. */
  readonly endedAt: Hlc | null;
  /** The highest token of any committed event. */
  readonly fenceToken: number;
  /** The newest time of any committed event; null before the first. */
  readonly hlc: Hlc | null;
  /** The last place of the log that is folded in; -1 before the first. */
  readonly appliedSeq: number;
  /** The last index whose event changed something here; -1 before the first. */
  readonly changedSeq: number;
  readonly chain: Uint8Array;
  readonly trail: Trail;
}

export const CHAIN_BYTES = 32;

export function initialState(jobId: JobId): JobState {
  return {
    jobId,
    status: "ABSENT",
    spec: new Uint8Array(0),
    assignedDcs: [],
    accepted: [],
    run: NO_RUN,
    cancellation: null,
    end: null,
    endedAt: null,
    fenceToken: 0,
    hlc: null,
    appliedSeq: -1,
    changedSeq: -1,
    chain: new Uint8Array(CHAIN_BYTES),
    trail: EMPTY_TRAIL,
  };
}

export function isTerminal(status: JobStatus): boolean {
  return TERMINAL.has(status);
}

const TERMINAL: ReadonlySet<JobStatus> = new Set<JobStatus>([
  "COMPLETED",
  "FAILED",
  "TIMED_OUT",
  "CANCELLED",
]);
