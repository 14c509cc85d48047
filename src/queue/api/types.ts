/** What travels between clients, nodes and the leader. Field names are those of the API. */

import type { ActivityWindow } from "../../core/queue/activity.ts";
import type { Attempt } from "../../core/queue/attempts.ts";
import type { CatchUp } from "../../core/queue/catch-up.ts";
import type { Placement } from "../../core/queue/placement.ts";
import type { Backoff } from "../../core/queue/retry.ts";
import type { EventType, TaskState } from "../../core/queue/states.ts";

export interface TaskFailure {
  readonly message: string;
  readonly name?: string;
  readonly stack?: string;
  /** The errors behind it, outermost first. */
  readonly cause?: string;
  readonly retryable?: boolean;
  /** It is no failure: the task is to be run again then, or after so many seconds. */
  readonly again?: string | number;
}

/** A task as clients see it. Times are ISO 8601 in UTC. */
export interface Task {
  readonly id: string;
  readonly executor: string;
  readonly queue: string;
  readonly state: TaskState;
  readonly attempt_id: number;
  readonly max_attempts: number;
  /** Attempts that do not count: handed back by a stopping node, or before a requeue, or ended with a snooze. */
  readonly attempts_forgiven: number;
  /** How long it waits after a failure, if it says so itself. */
  readonly backoff: Backoff | null;
  readonly priority: number;
  readonly input: unknown;
  readonly result: unknown;
  readonly error: TaskFailure | null;
  readonly idempotency_key: string | null;
  readonly unique_key: string | null;
  readonly schedule_id: string | null;
  readonly placement_constraints: Placement | null;
  readonly waiting_on: number;
  readonly last_assigned_node: string | null;
  readonly lease_id: string | null;
  readonly lease_expires_at: string | null;
  readonly run_after: string | null;
  readonly attempt_timeout_ms: number | null;
  /** When it is cancelled unless it has ended. */
  readonly deadline: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** Only for a queued task that was asked for by id: why it has not started. */
  readonly waiting_reason?: string;
  /** In a list: what is too large to be listed and null therefore; get_task has it. */
  readonly omitted?: readonly ("input" | "result")[];
  /** Tasks this one depends on that have not ended. */
  readonly waits_for?: readonly string[];
  /** Ids of all that it depends on, by the names under which it gets their results. */
  readonly depends_on?: Readonly<Record<string, string>>;
  /** In the answer to a submit: false when its key belongs to this earlier task. */
  readonly created?: boolean;
}

export interface TaskEvent {
  readonly event_id: number;
  readonly task_id: string;
  readonly event_type: EventType;
  readonly old_state: TaskState | null;
  readonly new_state: TaskState | null;
  readonly node_id: string | null;
  readonly attempt_id: number | null;
  readonly epoch: number;
  readonly timestamp: string;
  readonly details: unknown;
}

/** One execution of a task, with what is kept of its words. */
export interface TaskAttempt extends Attempt {
  readonly error: TaskFailure | null;
  /** The last value it told; null for none. */
  readonly progress: unknown;
  /** How many lines of its log are kept: the last ones. */
  readonly log_lines: number;
}

/** A line that an execution logged. A gap in the numbers is what was not kept. */
export interface LogLine {
  readonly attempt_id: number;
  /** Counted from 1 in each attempt. */
  readonly line: number;
  readonly timestamp: string;
  readonly text: string;
}

/** A submit after validation; payloads are JSON text. */
export interface NewTask {
  readonly executor: string;
  readonly queue: string;
  readonly lane: string;
  readonly input: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly backoff: Backoff | null;
  readonly idempotencyKey: string | undefined;
  readonly contentHash: string | undefined;
  readonly uniqueKey: string | undefined;
  readonly placement: Placement | null;
  readonly runAfter: string | undefined;
  /** From when the database takes it: its clock is the only one. */
  readonly delayMs: number | undefined;
  /** Of one execution. */
  readonly attemptTimeoutMs: number | undefined;
  /** From submission to the end, with all waiting. */
  readonly timeoutMs: number | undefined;
  readonly dependsOn: readonly number[];
}

/** Tasks to be stored together, or none of them. */
export interface NewGraph {
  readonly tasks: readonly NewTask[];
  /** One for each of the tasks. */
  readonly names: readonly string[];
  /** Of each task, the places in `tasks` of those that it waits for, beside its own `dependsOn`. */
  readonly after: readonly (readonly number[])[];
  readonly idempotencyKey: string | undefined;
  readonly contentHash: string;
}

export interface SubmittedGraph {
  readonly ids: ReadonlyMap<string, number>;
  readonly created: boolean;
}

export interface Submitted {
  readonly id: number;
  /** False when the key led to a task that was there already. */
  readonly created: boolean;
}

/** Work handed to a worker under a lease. */
export interface Grant {
  readonly task_id: string;
  readonly executor: string;
  readonly attempt_id: number;
  readonly lease_token: string;
  /** The same for every attempt, as on record in the database. */
  readonly idempotency_key: string;
  /** How long the execution may take; null for ever. */
  readonly timeout_ms: number | null;
  /** JSON text. */
  readonly input: string;
  /** Of a task that depended on others: JSON text of their results by name, and why some are not among them. */
  readonly dependencies?: string;
  readonly dependencies_missing?: Readonly<Record<string, string>>;
}

/** What was before an execution. */
export interface ExecutionHistory {
  /** When its task was submitted, by the clock of the database. */
  readonly submitted_at: string;
  /** What the last attempt before this one told by `progress`; null for nothing. */
  readonly progress: unknown;
}

export interface LeaseRef {
  readonly task_id: string;
  readonly lease_token: string;
}

export interface Report extends LeaseRef {
  readonly attempt_id: number;
  readonly status: "completed" | "failed";
  /** JSON text of the result. */
  readonly result: string | null;
  readonly error: TaskFailure | null;
  /** Of its executor, when that has one and the attempt failed. */
  readonly backoff?: Backoff | null | undefined;
  readonly elapsed_ms: number;
  /** The leader has already been told that it started. */
  readonly start_noted: boolean;
}

export interface Progress extends LeaseRef {
  readonly kind: "progress" | "log";
  readonly message: unknown;
  /** Of a log: its number in the attempt. Numbered by the leader when the worker does not count. */
  readonly line?: number | undefined;
}

export interface StoredFile {
  readonly hash: string;
  readonly bytes: number;
  readonly chunks: number;
}

/** A file that belongs to a task. */
export interface TaskFile extends StoredFile {
  readonly name: string;
  readonly attempt_id: number;
  readonly media_type: string;
}

/** The leader, as far as files go: in this process or over the network. Data is base64. */
export interface FilePort {
  /** Null when there is no such file. */
  useFile(hash: string): Promise<StoredFile | null>;
  putChunk(hash: string, chunk: number, data: string): Promise<void>;
  /** Says that all chunks are there; refused when they are not what the name says. */
  putFile(hash: string, chunks: number): Promise<void>;
  getChunk(hash: string, chunk: number): Promise<string>;
}

/** A stored file that an execution leaves with its task. */
export interface Attachment {
  readonly name: string;
  readonly hash: string;
  readonly media_type: string;
}

export interface NodeRegistration {
  readonly node_id: string;
  readonly run: string;
  readonly role: string;
  readonly url: string | null;
  readonly executor_types: readonly string[];
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly max_parallel: number;
}

export interface NodeInfo extends NodeRegistration {
  readonly status: "healthy" | "stale" | "dead";
  readonly heartbeat_at: string;
  readonly registered_at: string;
}

export interface LeaderInfo {
  readonly node_id: string;
  readonly epoch: number;
  readonly expires_at: string;
  readonly url: string | null;
}

export type TaskCounts = Record<TaskState, number>;

export interface ClusterStatus {
  readonly leader: LeaderInfo | null;
  readonly nodes: readonly NodeInfo[];
  readonly counts: TaskCounts;
  /** Tasks that each node holds leased, also one that is gone; from the database, so every node tells the same. */
  readonly leases: Readonly<Record<string, number>>;
}

export interface QueueLimitsInfo {
  readonly paused: boolean;
  /** Tasks that may run at once over all nodes. */
  readonly concurrency: number | null;
  readonly rate: { readonly count: number; readonly seconds: number } | null;
  /** How long failed tasks wait, unless they or their executors say so. */
  readonly backoff: Backoff | null;
}

export interface QueueInfo extends QueueLimitsInfo {
  readonly queue: string;
  /** Tasks of it that have not ended. */
  readonly queued: number;
  readonly running: number;
}

/** What the leader did over the last hour or day; windows are missing where it did not lead. */
export interface QueueActivity {
  readonly node_id: string;
  readonly windows: readonly ActivityWindow[];
}

export interface Schedule {
  readonly schedule_id: string;
  readonly cron: string;
  /** Of the IANA database. */
  readonly time_zone: string;
  readonly paused: boolean;
  /** What happens to ticks that were missed, and to how many at most. */
  readonly catch_up: CatchUp;
  readonly catch_up_max: number;
  readonly task: unknown;
  readonly next_tick: string;
  readonly last_tick: string | null;
  readonly last_task: string | null;
}

/** What followers receive: transitions from the leader's commits, and words from the executor. */
export type FeedMessage =
  | {
      readonly kind: "transition";
      readonly task_id: string;
      readonly event_type: EventType;
      readonly old_state: TaskState | null;
      readonly new_state: TaskState;
      readonly node_id: string | null;
      readonly attempt_id: number;
    }
  | { readonly kind: "progress"; readonly task_id: string; readonly message: unknown }
  | {
      readonly kind: "log";
      readonly task_id: string;
      readonly attempt_id: number;
      readonly line: number;
      readonly message: string;
    };

export interface HeldLeases {
  /** Counts the questions of the worker's process: an earlier one that comes late says nothing any more. */
  readonly question: number;
  readonly tokens: readonly string[];
}

/** A worker's question for work. */
export interface AcquireAsk {
  readonly nodeId: string;
  readonly run: string;
  /** Zero: it only tells what it holds. */
  readonly max: number;
  readonly waitMs: number;
  /**
   * Every lease it knows of, told after a question that got no answer: what it was granted then and never
   * heard of goes back to the queue and costs no attempt.
   */
  readonly held?: HeldLeases | undefined;
}

/** The leader, as a worker sees it: in the same process or over the network. */
export interface LeaderPort {
  register(node: NodeRegistration): Promise<void>;
  heartbeat(nodeId: string, run: string): Promise<boolean>;
  /** The node is about to stop: its open questions are answered with nothing. */
  drain(nodeId: string, run: string): Promise<void>;
  deregister(nodeId: string, run: string): Promise<void>;
  /** Waits for work up to `waitMs`; an empty answer means none came. */
  acquire(ask: AcquireAsk): Promise<readonly Grant[]>;
  /** Waits up to `waitMs` for leases of this node that were taken away. */
  watch(nodeId: string, run: string, waitMs: number): Promise<readonly string[]>;
  started(nodeId: string, leases: readonly LeaseRef[]): Promise<void>;
  /** Returns the tokens whose report was refused. */
  report(nodeId: string, reports: readonly Report[]): Promise<readonly string[]>;
  /** Returns the tokens that are lost. */
  renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]>;
  release(nodeId: string, leases: readonly LeaseRef[]): Promise<void>;
  progress(nodeId: string, messages: readonly Progress[]): Promise<void>;
  history(lease: LeaseRef): Promise<ExecutionHistory>;
  readonly files: FilePort & { attach(lease: LeaseRef, file: Attachment): Promise<void> };
}
