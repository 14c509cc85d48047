/** Exports of `hyperscalejs/queue`. */

export { type ErrorCode, QueueError } from "../core/queue/errors.ts";
export type { Placement } from "../core/queue/placement.ts";
export type { Backoff } from "../core/queue/retry.ts";
export { defaultSettings, type QueueSettings, type Role } from "../core/queue/settings.ts";
export type { EventType, TaskState } from "../core/queue/states.ts";
export { openLog } from "../host/control/json-log.ts";
export { type Log, silentLog } from "../host/ports/log.ts";
export {
  type BulkFilter,
  type FollowMessage,
  QueueClient,
  type QueueClientOptions,
  type ScheduleOptions,
  type SubmitOutcome,
  type TaskListFilter,
} from "./api/client.ts";
export type {
  Definition,
  Definitions,
  TaskReference,
  TypedGraph,
  TypedGraphSubmit,
  TypedSubmit,
  TypedTask,
} from "./api/definitions.ts";
export type { GraphSubmit } from "./api/graph-request.ts";
export type { StandardSchema } from "./api/standard-schema.ts";
export type { SubmitRequest } from "./api/submit-request.ts";
export {
  submitInTransaction,
  type TransactionClient,
  type TransactionSubmit,
} from "./api/transaction.ts";
export type {
  ClusterStatus,
  LeaderInfo,
  LogLine,
  NodeInfo,
  QueueInfo,
  Schedule,
  Task,
  TaskAttempt,
  TaskEvent,
  TaskFile,
} from "./api/types.ts";
export { type BuiltinOptions, builtinExecutors } from "./executors/builtin.ts";
export {
  type IsolatedExecutors,
  type IsolationOptions,
  isolateExecutors,
} from "./isolation/isolate.ts";
export { type NodeOptions, QueueNode } from "./node.ts";
export { type LoadtestOptions, loadtestRequest, submitLoadtest } from "./submit-loadtest.ts";
export {
  defineExecutor,
  type ExecutorDefinition,
  type TypedExecutor,
} from "./worker/definition.ts";
export {
  defineExecutors,
  type ExecutionContext,
  type Executor,
  type Executors,
  NotRetryable,
  Snooze,
} from "./worker/executor.ts";
