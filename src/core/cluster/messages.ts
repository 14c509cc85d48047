/**
 * What managers, workers and clients of one datacenter say to each other, as plain data.
 *
 *     client ── requests ──▶ any manager             answers; who leads a job is told, not guessed
 *     worker ── heartbeat ──▶ every manager
 *     manager ── orders ───▶ worker                  taken in order, or refused with the reason
 *     worker ── events ────▶ the manager whose orders it takes
 *
 * Orders and events are two numbered rows of the same kind, one pair per job and view: the sender repeats
 * from the first number that was not confirmed, the receiver takes each number once and in order. So a
 * broken connection loses nothing and repeats nothing. Numbers begin at 0 with each view of the job.
 *
 * A frame is an event like any other, of one core or merged of those of a worker; one that still waits is replaced
 * by the next of the same core, attempt and part, since each is written against the last that was acknowledged.
 *
 * The execution in commands to cores and in their events is the token of the attempt: an execution is
 * (job, token, core). What crosses a process border is checked where it is decoded.
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

/** Of its whole content, sha-256 in 64 lower-case hexadecimal digits. */
export type BlobHash = string;

/** Files of one job. */
export const JOB_FILES_MAX = 4_096;

/** A file of a job. */
export interface Artifact {
  /** Relative, with forward slashes, below the folder that workers make for the job. */
  readonly path: string;
  readonly hash: BlobHash;
  readonly bytes: number;
}

// ---- worker and manager

/**
 * To every manager at once, when connected and then every `HEARTBEAT_MS`: the first is the registration.
 * A worker that starts again has another incarnation, and nothing of the one before runs any more.
 */
export interface WorkerHeartbeat {
  readonly kind: "heartbeat";
  readonly worker: string;
  readonly incarnation: number;
  /** How many jobs' cores it can run at once. */
  readonly cores: number;
  readonly version: string;
  /** It takes no new cores any more. */
  readonly draining: boolean;
  /** In the first one of a connection: of its process, so that two with one name are told apart. */
  readonly boot?: string;
  /** Executions that make load now. */
  readonly running?: number;
  /** Rises as they advance, and is compared with nothing but itself. (AD-19.13) */
  readonly advance?: number;
  /** What waits there: requests, cores to open, and news that no manager has confirmed. (BP-4) */
  readonly queued?: number;
  /** False: it is too slow itself to take more. (BP-6) */
  readonly accepting?: boolean;
  /** Whose rights job code has: those of the worker itself, or of `executorUser`; empty: not reported. */
  readonly jobCodeRights?: JobCodeRights;
  readonly executorUser?: string;
  /** Why its disk stored no file of late; empty: it does. */
  readonly diskProblem?: string;
}

/** Of the text that says why a disk stores no files. */
export const DISK_PROBLEM_CHARACTERS_MAX = 200;

export const HEARTBEAT_MS = 500;

/**
 * Who leads the job from now on, from the new leader to every worker it knows. The worker promises, durably,
 * to refuse lower views of this job, and says what it runs of it. Its events go to this manager from now on,
 * beginning with those that nobody has confirmed.
 */
export interface Announce {
  readonly kind: "announce";
  readonly job: string;
  readonly view: number;
}

export interface Announced {
  readonly kind: "announced";
  readonly cores: readonly RunningCore[];
  /** How many events it has for this leader now: those of shares that have ended, and what nobody has confirmed. */
  readonly events: number;
}

/** What is open at a worker for a job. */
export interface RunningCore {
  readonly core: number;
  /** The attempt that it was last given; null when it only has loaded the job. */
  readonly token: number | null;
}

/** It takes no new cores any more; the answer is `Taken`. */
export interface Drain {
  readonly kind: "drain";
}

/** Orders of the job's leader to one worker, in order. The answer is `Taken` or a `Refusal`. */
export interface Orders {
  readonly kind: "orders";
  readonly job: string;
  readonly view: number;
  /** Of the worker as the placement knew it: a restarted worker refuses them. */
  readonly incarnation: number;
  /** Number of the first. */
  readonly first: number;
  readonly orders: readonly Order[];
}

export type Order =
  /**
   * Starts executor cores for the job, each an own process with the files of the job in its folder. Cores
   * are numbered by the leader, over all workers of the job. Each says `loaded` or `loadFailed`.
   */
  | {
      readonly kind: "open";
      readonly cores: readonly number[];
      /** The path among the files that is imported. */
      readonly entry: string;
      readonly files: readonly Artifact[];
      readonly overrides: LoadOverrides;
    }
  /** One of the commands of `core-messages.ts`; the token is the attempt's where the command has one. */
  | {
      readonly kind: "command";
      readonly core: number;
      readonly token: number | null;
      readonly command: RelayedCommand;
    }
  /** Ends these cores and gives them back; without a word of loss. */
  | { readonly kind: "release"; readonly cores: readonly number[] }
  /** Ends a core that does not answer: its loss is told as `coreLost`. */
  | { readonly kind: "kill"; readonly core: number };

/** Events of one worker's cores of a job, in order. The answer is `Taken` or a `Refusal`. */
export interface Events {
  readonly kind: "events";
  readonly worker: string;
  readonly incarnation: number;
  readonly job: string;
  readonly view: number;
  readonly first: number;
  readonly events: readonly WorkerEvent[];
  /** What is held of merged figures is heard with the answer; else it is an order of its own. */
  readonly wantsHeld?: boolean;
}

export type WorkerEvent =
  | { readonly kind: "core"; readonly core: number; readonly event: RelayedEvent }
  /** It is gone without having been released; `complete`: all that it measured was told before. */
  | {
      readonly kind: "coreLost";
      readonly core: number;
      readonly what: string;
      readonly complete: boolean;
    }
  /** Its cores' frames of one execution, merged: to leaders that take them so, else each core's frames go up. */
  | ({ readonly kind: "figures" } & MergedFigures);

/** Loading and ending a core are the worker's own affair, and reports are the client's. (C30-18) */
export type RelayedCommand = Exclude<
  CoreCommand,
  { kind: "load" | "sampleCalls" | "trace" | "exit" }
>;
export type RelayedEvent = Exclude<CoreEvent, { kind: "calls" | "traced" | "declared" }>;

/** Everything before this number was taken. */
export interface Taken {
  readonly kind: "taken";
  readonly next: number;
  /** How hard-pressed who took it is: left out where nobody slows down for it. (AD-37.3) */
  readonly level?: number;
  /** Of merged figures, for whoever wants it with the answer. */
  readonly held?: readonly HeldFigures[];
}

/** The last frame of merged figures that is held; 0: none. */
export interface HeldFigures {
  readonly execution: number;
  readonly part: string | null;
  readonly frame: number;
}

export interface Refusal {
  readonly kind: "refused";
  readonly reason: RefusalReason;
  /** For people. */
  readonly message: string;
  /** Where to ask instead; null or left out when nobody knows. */
  readonly address?: string | null;
  /** Asking again before that is of no use; null or left out when nobody knows. (AD-22.8, AD-24.1) */
  readonly retryAfterMs?: number | null;
}

export function refusal(reason: RefusalReason, message: string): Refusal {
  return { kind: "refused", reason, message };
}

export const REFUSAL_REASONS = [
  /** Somebody with a higher view leads this job. */
  "staleView",
  /** A higher token was given to this core. */
  "staleToken",
  /** The worker has started again since. */
  "wrongIncarnation",
  /** More cores than it has. */
  "noCapacity",
  "draining",
  /** The job is over, or never was. */
  "unknownJob",
  /** Ask at `address`, or any other. */
  "notLeader",
  "unknownBlob",
  /** Too large, malformed, or against the rules; sending it again changes nothing. */
  "invalid",
  /** The same idempotency key came with another submission. */
  "keyReused",
  /** Nothing was decided: ask again. */
  "retry",
  /** It has too much to do for requests of this kind; nothing was begun. Ask again after `retryAfterMs`. */
  "overloaded",
  /** This caller asks more often than it may; nothing was begun. Ask again after `retryAfterMs`. */
  "rateLimited",
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];

// ---- blobs: between any two of client, manager and worker, over the bulk connection

export const BLOB_CHUNK_BYTES_MAX = 262_144;
/** Of one blob: a bundle with its packages, a feed, a result. */
export const BLOB_BYTES_MAX = 256 * 1_048_576;

export interface BlobGet {
  readonly kind: "blobGet";
  readonly hash: BlobHash;
  readonly offset: number;
}

/** The answer to `BlobGet`: at most `BLOB_CHUNK_BYTES_MAX` from the offset. */
export interface BlobChunk {
  readonly kind: "blobChunk";
  readonly total: number;
  readonly bytes: Uint8Array;
}

/** The answer is `BlobHeld`; the last chunk is only confirmed when the whole has this hash. */
export interface BlobPut {
  readonly kind: "blobPut";
  readonly hash: BlobHash;
  readonly offset: number;
  readonly total: number;
  readonly bytes: Uint8Array;
}

export interface BlobHeld {
  readonly kind: "blobHeld";
  /** Up to where it is there: where the next chunk begins, or the whole. */
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
      /** However often and of whomever it is asked again, it is done once; without one, each time. */
      readonly wish?: string | undefined;
    }
  /** In the order of their creation, beginning after this one; null: with the first. */
  | { readonly kind: "jobs"; readonly after: JobPlace | null }
  /** What happened to a job, from this number on. */
  | { readonly kind: "events"; readonly job: string; readonly from: number }
  | { readonly kind: "nodes" }
  /** It takes no new work from now on: a worker finishes what it has, a gate or manager lets others lead. */
  | { readonly kind: "drain"; readonly node: string }
  /** A worker that is gone for good is shown no more. */
  | { readonly kind: "removeNode"; readonly node: string }
  | { readonly kind: "datacenters" };

/** Where a job stands among all of them. */
export interface JobPlace {
  readonly createdAt: number;
  readonly id: string;
}

/** Jobs that one answer has room for. */
export const JOBS_PAGE_MAX = 500;
/** Events of a job that one answer has room for: more than the log of a job in one datacenter holds. */
export const EVENTS_PAGE_MAX = 12_000;

export type ClientAnswer =
  | { readonly kind: "accepted"; readonly job: string; readonly duplicate: boolean }
  /** These blobs must be put first. */
  | { readonly kind: "missing"; readonly hashes: readonly BlobHash[] }
  | { readonly kind: "job"; readonly job: JobView }
  | Progress
  /** The control is committed, or the node has heard it. */
  | { readonly kind: "controlled" }
  /** `more`: there are others after these. */
  | { readonly kind: "jobs"; readonly jobs: readonly JobView[]; readonly more: boolean }
  | { readonly kind: "events"; readonly events: readonly JobEventView[]; readonly more: boolean }
  | { readonly kind: "nodes"; readonly nodes: readonly NodeView[] }
  | { readonly kind: "datacenters"; readonly datacenters: readonly DatacenterView[] }
  | Refusal;

/** Accepted once per key, however often it is sent: it is on a quorum of managers when it is accepted. */
export interface Submit {
  readonly kind: "submit";
  /** 1 to 128 characters. */
  readonly key: string;
  readonly submission: Submission;
  /** Where it is to run; only gates choose. */
  readonly routing: Routing;
}

/** In which datacenters a job runs, and which part of its plan in each. */
export interface Routing {
  /** These and no others; empty: the gate chooses. */
  readonly datacenters: readonly string[];
  /** How many, when the gate chooses. */
  readonly count: number;
  /** First choice, in order. */
  readonly prefer: readonly string[];
  /** None but those of `prefer`. */
  readonly strict: boolean;
  /** Parts of the plan by datacenter, in any unit; empty: by free cores. */
  readonly weights: readonly { readonly datacenter: string; readonly weight: number }[];
  /** The whole plan in each instead of a part. */
  readonly each: boolean;
}

/** One datacenter, the best one. */
export const ANYWHERE: Routing = {
  datacenters: [],
  count: 1,
  prefer: [],
  strict: false,
  weights: [],
  each: false,
};

/**
 * A job as its client describes it. The client has loaded the workflows to know their manifests, as `run`
 * does, so that mistakes are told before anything is sent; managers never load them.
 */
export interface Submission {
  /** File or URL, as the user named it. */
  readonly name: string;
  readonly title: string | null;
  readonly tags: Readonly<Record<string, string>>;
  /** With the overrides in place. */
  readonly manifests: readonly WorkflowManifest[];
  readonly entry: string;
  readonly files: readonly Artifact[];
  readonly overrides: LoadOverrides;
  /** Of the whole run, besides those of the workflows. */
  readonly thresholds: readonly string[];
  readonly abortAfterMs: number | null;
  /** From acceptance; null for no limit. */
  readonly timeoutMs: number | null;
  /** CPU cores that it needs; null: as many as are free and of use. */
  readonly cores: number | null;
  /** Whose turn it takes in the queue; null or left out: that of all who name none. */
  readonly tenant?: string | null;
  /** It loads its cores and waits for a `start`: a gate begins it in several datacenters at once. */
  readonly held: boolean;
  /** As it was typed. */
  readonly command: string;
  /** Of the client. */
  readonly version: string;
}

export type Control =
  | { readonly kind: "cancel"; readonly reason: string }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** Of the plan: 1 is as planned. */
  | { readonly kind: "scale"; readonly factor: number }
  /** A job that is held begins at this moment of the wall clock, in milliseconds. */
  | { readonly kind: "start"; readonly atMs: number }
  /** A workflow of several datacenters begins at this moment, with what its set-up came to. */
  | {
      readonly kind: "begin";
      readonly workflow: string;
      readonly atMs: number;
      readonly value: unknown;
    }
  /** It is over in the other datacenters, or never begins: then the error says why. */
  | { readonly kind: "over"; readonly workflow: string; readonly error: string | null }
  /**
   * It has taken too long, or does not advance. Only gates and managers say so, about what they were told by the
   * leader of this view with so much more time granted: whoever knows more refuses. (AD-34.24)
   */
  | {
      readonly kind: "timeOut";
      readonly reason: string;
      readonly view: number;
      readonly extendedMs: number;
    };

/** Asked again and again with the number that the last answer gave: nothing is missed or told twice. */
export interface Watch {
  readonly kind: "watch";
  readonly job: string;
  /** Lines from this number on. */
  readonly line: number;
  /** Whether the live figures are wanted, which cost something to work out. */
  readonly live: boolean;
  /** With them the latencies so far, for reporters. */
  readonly latencies: boolean;
}

export interface Progress {
  readonly kind: "progress";
  readonly status: JobStatus;
  /** Why it waits, failed or ended. */
  readonly reason: string | null;
  /** While it runs. */
  readonly live: LiveRun | null;
  /** What was said, by the run and by user code. */
  readonly lines: readonly string[];
  /** The number to ask for next. */
  readonly nextLine: number;
  /** When it has ended and left a result. */
  readonly summary: RunSummary | null;
}
