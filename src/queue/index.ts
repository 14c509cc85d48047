/** What `import … from "hyperscale/queue"` offers. */

export type { Placement } from "../core/queue/placement.ts";
export { defaultSettings, type QueueSettings, type Role } from "../core/queue/settings.ts";
export type { EventType, TaskState } from "../core/queue/states.ts";
export {
  type FollowMessage,
  QueueClient,
  type QueueClientOptions,
  type SubmitOutcome,
  type TaskListFilter,
} from "./client.ts";
export { type ErrorCode, QueueError } from "./errors.ts";
export {
  defineExecutors,
  type ExecutionContext,
  type Executor,
  type Executors,
  NotRetryable,
} from "./executor.ts";
export { type BuiltinOptions, builtinExecutors } from "./executors/builtin.ts";
export { type Log, openLog, silentLog } from "./log.ts";
export { type NodeOptions, QueueNode } from "./node.ts";
export type { SubmitRequest } from "./submit-request.ts";
export type { ClusterStatus, LeaderInfo, NodeInfo, Schedule, Task, TaskEvent } from "./types.ts";
