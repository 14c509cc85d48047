/** Messages between clients, nodes and the leader. Field names are those of the API. */

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
  /** Not a failure: the task is to be run again at this time, or after this many seconds. */
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
  /** Attempts that do not count: returned by a stopping node, made before a requeue, or ended with a snooze. */
  readonly attempts_forgiven: number;
  /** Backoff after a failure, if the task defines one. */
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
  /** When it is cancelled unless it has finished. */
  readonly deadline: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** Only for a queued task requested by id: why it has not started. */
  readonly waiting_reason?: string;
  /** In a list: fields that are too large to be listed and therefore null; get_task has them. */
  readonly omitted?: readonly ("input" | "result")[];
  /** Unfinished tasks that this one depends on. */
  readonly waits_for?: readonly string[];
  /** Ids of all its dependencies, by the names under which it gets their results. */
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

/** One execution of a task, with its latest progress and number of log lines. */
export interface TaskAttempt extends Attempt {
  readonly error: TaskFailure | null;
  /** Last progress value; null for none. */
  readonly progress: unknown;
  /** Number of log lines kept: the last ones. */
  readonly log_lines: number;
}

/** A line that an execution logged. A gap in the numbers means dropped lines. */
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
  /** Counted from when the database stores it: its clock is the only one. */
  readonly delayMs: number | undefined;
  /** Time limit of one execution. */
  readonly attemptTimeoutMs: number | undefined;
  /** From submission to the end, including all waiting. */
  readonly timeoutMs: number | undefined;
  readonly dependsOn: readonly number[];
}

/** Tasks to be stored together, or not at all. */
export interface NewGraph {
  readonly tasks: readonly NewTask[];
  /** One for each of the tasks. */
  readonly names: readonly string[];
  /** Dependencies inside the graph: for each task, indices into `tasks`, in addition to its own `dependsOn`. */
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
  /** False when the key led to an existing task. */
  readonly created: boolean;
}

/** Work assigned to a worker under a lease. */
export interface Grant {
  readonly task_id: string;
  readonly executor: string;
  readonly attempt_id: number;
  readonly lease_token: string;
  /** The same for every attempt, as recorded in the database. */
  readonly idempotency_key: string;
  /** Time limit of the execution; null for none. */
  readonly timeout_ms: number | null;
  /** JSON text. */
  readonly input: string;
  /** Results of dependencies as JSON text, by name, and why some are missing. */
  readonly dependencies?: string;
  readonly dependencies_missing?: Readonly<Record<string, string>>;
}

/** History before an execution. */
export interface ExecutionHistory {
  /** When its task was submitted, by the clock of the database. */
  readonly submitted_at: string;
  /** Progress value of the previous attempt; null for none. */
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
  /** Backoff of its executor, when that has one and the attempt failed. */
  readonly backoff?: Backoff | null | undefined;
  readonly elapsed_ms: number;
  /** The start was already reported to the leader. */
  readonly start_noted: boolean;
}

export interface Progress extends LeaseRef {
  readonly kind: "progress" | "log";
  readonly message: unknown;
  /** Line number of a log in the attempt. Assigned by the leader when the worker does not count. */
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

/** File operations of the leader: in this process or over the network. Data is base64. */
export interface FilePort {
  /** Null when there is no such file. */
  useFile(hash: string): Promise<StoredFile | null>;
  putChunk(hash: string, chunk: number, data: string): Promise<void>;
  /** Completes a file; rejected when its chunks do not match its hash. */
  putFile(hash: string, chunks: number): Promise<void>;
  getChunk(hash: string, chunk: number): Promise<string>;
}

/** A stored file that an execution attaches to its task. */
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
  /** Leased tasks by node, including nodes that are gone; from the database, so every node reports the same. */
  readonly leases: Readonly<Record<string, number>>;
}

export interface QueueLimitsInfo {
  readonly paused: boolean;
  /** Tasks that may run at once over all nodes. */
  readonly concurrency: number | null;
  readonly rate: { readonly count: number; readonly seconds: number } | null;
  /** Backoff of failed tasks, unless they or their executors define one. */
  readonly backoff: Backoff | null;
}

export interface QueueInfo extends QueueLimitsInfo {
  readonly queue: string;
  /** Unfinished tasks of it. */
  readonly queued: number;
  readonly running: number;
}

/** Activity of the leader over the last hour or day; windows are missing where it did not lead. */
export interface QueueActivity {
  readonly node_id: string;
  readonly windows: readonly ActivityWindow[];
}

export interface Schedule {
  readonly schedule_id: string;
  readonly cron: string;
  /** Name in the IANA database. */
  readonly time_zone: string;
  readonly paused: boolean;
  /** Policy for missed ticks, and the limit on them. */
  readonly catch_up: CatchUp;
  readonly catch_up_max: number;
  readonly task: unknown;
  readonly next_tick: string;
  readonly last_tick: string | null;
  readonly last_task: string | null;
}

/** Messages to followers: transitions from the leader's commits, and logs and progress from the executor. */
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
  /** Sequence number of the worker process's requests: an earlier one that arrives late is ignored. */
  readonly question: number;
  readonly tokens: readonly string[];
}

/** A worker's request for work. */
export interface AcquireAsk {
  readonly nodeId: string;
  readonly run: string;
  /** Zero: it only reports its leases. */
  readonly max: number;
  readonly waitMs: number;
  /**
   * Every lease it knows of, sent after an unanswered request: what was granted then and never arrived goes back to the
   * queue and costs no attempt.
   */
  readonly held?: HeldLeases | undefined;
}

/** The leader, as a worker sees it: in the same process or over the network. */
export interface LeaderPort {
  register(node: NodeRegistration): Promise<void>;
  heartbeat(nodeId: string, run: string): Promise<boolean>;
  /** The node is about to stop: answers its open requests with nothing. */
  drain(nodeId: string, run: string): Promise<void>;
  deregister(nodeId: string, run: string): Promise<void>;
  /** Waits for work up to `waitMs`; an empty answer means none came. */
  acquire(ask: AcquireAsk): Promise<readonly Grant[]>;
  /** Waits up to `waitMs` for revoked leases of this node. */
  watch(nodeId: string, run: string, waitMs: number): Promise<readonly string[]>;
  started(nodeId: string, leases: readonly LeaseRef[]): Promise<void>;
  /** Returns the tokens whose report was rejected. */
  report(nodeId: string, reports: readonly Report[]): Promise<readonly string[]>;
  /** Returns the tokens that are lost. */
  renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]>;
  release(nodeId: string, leases: readonly LeaseRef[]): Promise<void>;
  progress(nodeId: string, messages: readonly Progress[]): Promise<void>;
  history(lease: LeaseRef): Promise<ExecutionHistory>;
  readonly files: FilePort & { attach(lease: LeaseRef, file: Attachment): Promise<void> };
}
