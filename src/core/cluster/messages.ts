/**
 * Messages between managers, workers and clients of one datacenter, as plain data.
 *
 *     client ── requests ──▶ any manager             answers, or a redirect to the leader of the job
 *     worker ── heartbeat ──▶ every manager
 *     manager ── orders ───▶ worker                  accepted in order, or refused with the reason
 *     worker ── events ────▶ the manager that leads the job
 *
 * Orders and events are two numbered streams of the same kind, one pair per job and view: the sender repeats
 * from the first unacknowledged number, the receiver accepts each number once and in order. So a
 * broken connection loses and duplicates nothing. Numbers start at 0 with each view of the job.
 *
 * A frame is an event of one core, or merged from all cores of a worker. A frame that is still queued is replaced
 * by the next of the same core, attempt and part, because each is a delta to the last acknowledged one.
 *
 * The execution in commands to cores and in their events is the token of the attempt: an execution is
 * (job, token, core). Messages from other processes are validated when they are decoded.
 */

import type { CoreCommand, CoreEvent, MergedFigures } from "../load/job/core-messages.ts";
import type { LoadOverrides } from "../load/job/load-overrides.ts";
import type { WorkflowManifest } from "../load/job/manifest.ts";
import type { LiveRun } from "../load/results/live.ts";
import type { RunSummary } from "../load/results/model.ts";
import type {
  DatacenterView,
  JobCodeRights,
  JobEventView,
  JobStatus,
  JobView,
  NodeView,
} from "./views.ts";

export {
  type AttemptView,
  CIRCUIT_STATES,
  type CircuitState,
  type DatacenterView,
  ENDED_STATUSES,
  JOB_STATUSES,
  type JobDatacenterView,
  type JobEventView,
  type JobStatus,
  type JobView,
  type NodeView,
  PART_STATUSES,
  type WorkflowView,
} from "./views.ts";

/** SHA-256 of the whole content, as 64 lower-case hexadecimal digits. */
export type BlobHash = string;

/** Maximum number of files per job. */
export const JOB_FILES_MAX = 4_096;

/** File of a job. */
export interface Artifact {
  /** Path relative to the job folder on the worker, with forward slashes. */
  readonly path: string;
  readonly hash: BlobHash;
  readonly bytes: number;
}

// ---- worker and manager

/**
 * Sent to every manager on connect and then every `HEARTBEAT_MS`; the first one registers the worker. A restarted
 * worker has a new incarnation, and nothing of the previous one is running any more.
 */
export interface WorkerHeartbeat {
  readonly kind: "heartbeat";
  readonly worker: string;
  readonly incarnation: number;
  /** Number of executor cores that can run at once. */
  readonly cores: number;
  readonly version: string;
  /** The worker accepts no new cores. */
  readonly draining: boolean;
  /** Boot id of the process, in the first heartbeat of a connection. Distinguishes two workers with the same name. */
  readonly boot?: string;
  /** Executions generating load now. */
  readonly running?: number;
  /** Progress counter: increases while executions advance, comparable only with itself. (AD-19.13) */
  readonly advance?: number;
  /** Queued requests, cores to open, and unacknowledged events. (BP-4) */
  readonly queued?: number;
  /** False if the worker itself is too slow to accept more. (BP-6) */
  readonly accepting?: boolean;
  /** User whose permissions job code runs with: the worker's own, or `executorUser`; empty if not reported. */
  readonly jobCodeRights?: JobCodeRights;
  readonly executorUser?: string;
  /** Reason why the disk recently failed to store a file; empty if it works. */
  readonly diskProblem?: string;
}

/** Length limit of the disk problem text. */
export const DISK_PROBLEM_CHARACTERS_MAX = 200;

export const HEARTBEAT_MS = 500;

/**
 * Sent by a new leader of the job to every worker it knows. The worker durably promises to refuse lower views of this
 * job, and reports what it runs of it. From now on it sends its events to this manager, starting with the
 * unacknowledged ones.
 */
export interface Announce {
  readonly kind: "announce";
  readonly job: string;
  readonly view: number;
}

export interface Announced {
  readonly kind: "announced";
  readonly cores: readonly RunningCore[];
  /** Events queued for this leader: those of finished shares and all unacknowledged ones. */
  readonly events: number;
}

/** Core that a worker has opened for a job. */
export interface RunningCore {
  readonly core: number;
  /** Last attempt assigned to the core; null if it has only loaded the job. */
  readonly token: number | null;
}

/** Tells the worker to accept no new cores. Answered by `Taken`. */
export interface Drain {
  readonly kind: "drain";
}

/** Orders from the job's leader to one worker, in order. Answered by `Taken` or a `Refusal`. */
export interface Orders {
  readonly kind: "orders";
  readonly job: string;
  readonly view: number;
  /** Incarnation of the worker at placement. A restarted worker refuses the orders. */
  readonly incarnation: number;
  /** Number of the first order. */
  readonly first: number;
  readonly orders: readonly Order[];
}

export type Order =
  /**
   * Starts executor cores for the job, each a process of its own with the files of the job in its folder. The leader
   * numbers cores across all workers of the job. Each core answers `loaded` or `loadFailed`.
   */
  | {
      readonly kind: "open";
      readonly cores: readonly number[];
      /** Path of the file to import. */
      readonly entry: string;
      readonly files: readonly Artifact[];
      readonly overrides: LoadOverrides;
    }
  /** Relays a command of `core-messages.ts` to a core; `token` is set where the command belongs to an attempt. */
  | {
      readonly kind: "command";
      readonly core: number;
      readonly token: number | null;
      readonly command: RelayedCommand;
    }
  /** Stops these cores and frees them. No `coreLost` follows. */
  | { readonly kind: "release"; readonly cores: readonly number[] }
  /** Kills an unresponsive core. A `coreLost` follows. */
  | { readonly kind: "kill"; readonly core: number };

/** Events of one worker's cores of a job, in order. Answered by `Taken` or a `Refusal`. */
export interface Events {
  readonly kind: "events";
  readonly worker: string;
  readonly incarnation: number;
  readonly job: string;
  readonly view: number;
  readonly first: number;
  readonly events: readonly WorkerEvent[];
  /** Asks for the retained merged frames in the answer instead of in a separate order. */
  readonly wantsHeld?: boolean;
}

export type WorkerEvent =
  | { readonly kind: "core"; readonly core: number; readonly event: RelayedEvent }
  /** The core is gone without having been released. `complete`: everything it measured was reported before. */
  | {
      readonly kind: "coreLost";
      readonly core: number;
      readonly what: string;
      readonly complete: boolean;
    }
  /**
   * Frames of all cores of one execution, merged. Sent to leaders that support it; others get the frames of each core.
   */
  | ({ readonly kind: "figures" } & MergedFigures);

/** Excludes loading and stopping a core, which the worker does itself, and reports, which only clients use. (C30-18) */
export type RelayedCommand = Exclude<
  CoreCommand,
  { kind: "load" | "sampleCalls" | "trace" | "exit" }
>;
export type RelayedEvent = Exclude<CoreEvent, { kind: "calls" | "traced" | "declared" }>;

/** Acknowledges everything before `next`. */
export interface Taken {
  readonly kind: "taken";
  readonly next: number;
  /** Overload level of the receiver; omitted where the sender does not throttle on it. (AD-37.3) */
  readonly level?: number;
  /** Retained merged frames, if the sender asked for them. */
  readonly held?: readonly HeldFigures[];
}

/** Last retained frame of merged metrics; 0 for none. */
export interface HeldFigures {
  readonly execution: number;
  readonly part: string | null;
  readonly frame: number;
}

export interface Refusal {
  readonly kind: "refused";
  readonly reason: RefusalReason;
  /** Human-readable explanation. */
  readonly message: string;
  /** Address to ask instead; null or omitted if unknown. */
  readonly address?: string | null;
  /** Earliest useful retry; null or omitted if unknown. (AD-22.8, AD-24.1) */
  readonly retryAfterMs?: number | null;
}

export function refusal(reason: RefusalReason, message: string): Refusal {
  return { kind: "refused", reason, message };
}

export const REFUSAL_REASONS = [
  /** A leader with a higher view exists for this job. */
  "staleView",
  /** The core was already assigned a higher token. */
  "staleToken",
  /** The worker has restarted since. */
  "wrongIncarnation",
  /** More cores than the worker has. */
  "noCapacity",
  "draining",
  /** The job has finished or never existed. */
  "unknownJob",
  /** Ask at `address`, or any other manager. */
  "notLeader",
  "unknownBlob",
  /** Too large, malformed, or against the rules. Retrying is pointless. */
  "invalid",
  /** The idempotency key was already used for a different submission. */
  "keyReused",
  /** Nothing was decided. Retry. */
  "retry",
  /** Too overloaded for requests of this kind; nothing was started. Retry after `retryAfterMs`. */
  "overloaded",
  /** The caller exceeds its rate limit; nothing was started. Retry after `retryAfterMs`. */
  "rateLimited",
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];

// ---- blobs: between any two of client, manager and worker, over the bulk connection

export const BLOB_CHUNK_BYTES_MAX = 262_144;
/** Size limit of one blob: a bundle with its packages, a feed, a result. */
export const BLOB_BYTES_MAX = 256 * 1_048_576;

export interface BlobGet {
  readonly kind: "blobGet";
  readonly hash: BlobHash;
  readonly offset: number;
}

/** Answers `BlobGet` with at most `BLOB_CHUNK_BYTES_MAX` bytes from the offset. */
export interface BlobChunk {
  readonly kind: "blobChunk";
  readonly total: number;
  readonly bytes: Uint8Array;
}

/** Answered by `BlobHeld`. The last chunk is acknowledged only if the whole content has this hash. */
export interface BlobPut {
  readonly kind: "blobPut";
  readonly hash: BlobHash;
  readonly offset: number;
  readonly total: number;
  readonly bytes: Uint8Array;
}

export interface BlobHeld {
  readonly kind: "blobHeld";
  /** Bytes stored so far, which is the offset of the next chunk. */
  readonly bytes: number;
}

// ---- client and manager

export type ClientRequest =
  | Submit
  | { readonly kind: "status"; readonly job: string }
  | Watch
  | {
      readonly kind: "control";
      readonly job: string;
      readonly by: string;
      readonly control: Control;
      /**
       * Idempotency key: the control is applied once, no matter how often and to which node it is sent. Without one,
       * each request is applied.
       */
      readonly wish?: string | undefined;
    }
  /** Lists jobs in order of creation, after this one; null starts with the first. */
  | { readonly kind: "jobs"; readonly after: JobPlace | null }
  /** Events of a job, starting with this number. */
  | { readonly kind: "events"; readonly job: string; readonly from: number }
  | { readonly kind: "nodes" }
  /** Stops accepting new work: a worker finishes what it has, a gate or manager hands over leadership. */
  | { readonly kind: "drain"; readonly node: string }
  /** Removes a dead worker from the list of nodes. */
  | { readonly kind: "removeNode"; readonly node: string }
  | { readonly kind: "datacenters" };

/** Position of a job in the order of creation. */
export interface JobPlace {
  readonly createdAt: number;
  readonly id: string;
}

/** Maximum number of jobs per answer. */
export const JOBS_PAGE_MAX = 500;
/** Maximum number of events per answer: more than the log of a job in one datacenter can hold. */
export const EVENTS_PAGE_MAX = 12_000;

export type ClientAnswer =
  | { readonly kind: "accepted"; readonly job: string; readonly duplicate: boolean }
  /** Blobs to upload before the submission is accepted. */
  | { readonly kind: "missing"; readonly hashes: readonly BlobHash[] }
  | { readonly kind: "job"; readonly job: JobView }
  | Progress
  /** The control is committed, or the node has received it. */
  | { readonly kind: "controlled" }
  /** `more` is set if further jobs follow. */
  | { readonly kind: "jobs"; readonly jobs: readonly JobView[]; readonly more: boolean }
  | { readonly kind: "events"; readonly events: readonly JobEventView[]; readonly more: boolean }
  | { readonly kind: "nodes"; readonly nodes: readonly NodeView[] }
  | { readonly kind: "datacenters"; readonly datacenters: readonly DatacenterView[] }
  | Refusal;

/** Submits a job. Accepted once per key; an accepted job is stored on a quorum of managers. */
export interface Submit {
  readonly kind: "submit";
  /** Idempotency key of 1 to 128 characters. */
  readonly key: string;
  readonly submission: Submission;
  /** Where to run the job; used by gates only. */
  readonly routing: Routing;
}

/** Datacenters that run a job, and the part of its plan that each one runs. */
export interface Routing {
  /** Exactly these datacenters; empty lets the gate choose. */
  readonly datacenters: readonly string[];
  /** Number of datacenters if the gate chooses. */
  readonly count: number;
  /** Preferred datacenters, in order. */
  readonly prefer: readonly string[];
  /** Restricts the choice to `prefer`. */
  readonly strict: boolean;
  /** Relative weight of each datacenter's part of the plan; empty splits by free cores. */
  readonly weights: readonly { readonly datacenter: string; readonly weight: number }[];
  /** Runs the whole plan in each datacenter instead of splitting it. */
  readonly each: boolean;
}

/** Runs in one datacenter, the best available. */
export const ANYWHERE: Routing = {
  datacenters: [],
  count: 1,
  prefer: [],
  strict: false,
  weights: [],
  each: false,
};

/**
 * A job as its client describes it. The client loads the workflows to read their manifests, as `run` does, so mistakes
 * surface before anything is sent; managers never load them.
 */
export interface Submission {
  /** File or URL, as the user named it. */
  readonly name: string;
  readonly title: string | null;
  readonly tags: Readonly<Record<string, string>>;
  /** Manifests with overrides applied. */
  readonly manifests: readonly WorkflowManifest[];
  readonly entry: string;
  readonly files: readonly Artifact[];
  readonly overrides: LoadOverrides;
  /** Thresholds of the whole run, in addition to those of the workflows. */
  readonly thresholds: readonly string[];
  readonly abortAfterMs: number | null;
  /** Time limit from acceptance; null for none. */
  readonly timeoutMs: number | null;
  /** CPU cores required; null for as many free cores as the plan can use. */
  readonly cores: number | null;
  /** Tenant for fair queueing; null or omitted for the shared default tenant. */
  readonly tenant?: string | null;
  /** Loads its cores and waits for a `start`, so that a gate can start several datacenters at once. */
  readonly held: boolean;
  /** Command line as typed. */
  readonly command: string;
  /** Version of the client. */
  readonly version: string;
}

export type Control =
  | { readonly kind: "cancel"; readonly reason: string }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** Scales the plan by this factor; 1 is as planned. */
  | { readonly kind: "scale"; readonly factor: number }
  /** Starts a waiting job at this wall-clock time in milliseconds. */
  | { readonly kind: "start"; readonly atMs: number }
  /** Starts a workflow that spans datacenters at this time, with the result of its set-up. */
  | {
      readonly kind: "begin";
      readonly workflow: string;
      readonly atMs: number;
      readonly value: unknown;
    }
  /** Ends a workflow that has finished in the other datacenters or will never start; then `error` is the reason. */
  | { readonly kind: "over"; readonly workflow: string; readonly error: string | null }
  /**
   * Times out a job that took too long or made no progress. Sent only by gates and managers, based on the state that
   * the leader of this view reported with this much time granted. Refused if the job has moved on since. (AD-34.24)
   */
  | {
      readonly kind: "timeOut";
      readonly reason: string;
      readonly view: number;
      readonly extendedMs: number;
    };

/** Polls progress. Each poll passes the `nextLine` of the last answer, so no line is missed or repeated. */
export interface Watch {
  readonly kind: "watch";
  readonly job: string;
  /** Number of the first log line to return. */
  readonly line: number;
  /** Requests live metrics, which are costly to compute. */
  readonly live: boolean;
  /** Adds latencies so far to the live metrics, for reporters. */
  readonly latencies: boolean;
}

export interface Progress {
  readonly kind: "progress";
  readonly status: JobStatus;
  /** Reason why the job is waiting, failed or finished. */
  readonly reason: string | null;
  /** Set while the job runs. */
  readonly live: LiveRun | null;
  /** Log lines of the run and of user code. */
  readonly lines: readonly string[];
  /** Line number to request next. */
  readonly nextLine: number;
  /** Set once the job has finished with a result. */
  readonly summary: RunSummary | null;
}
