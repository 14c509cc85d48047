/**
 * Calls of a queue node that go into its audit log: those that control it. Recorded by the node that received the call,
 * with the requester; the leader that it is forwarded to records that node. (AD-20.6)
 */

import { QueueError } from "../core/queue/errors.ts";
import { carriesCode } from "../core/queue/permissions.ts";
import type { AuditDetail, AuditEvent, AuditKind, AuditRequester } from "../host/ports/audit.ts";
import type { RpcCall } from "./api/rpc.ts";

interface Steering {
  readonly kind: AuditKind;
  /** Parameters that name the subject; the first one present. */
  readonly subject: readonly string[];
  readonly detail: readonly string[];
}

/** Filters of a call on many tasks. */
const BULK = ["state", "executor", "node", "schedule", "queue", "search", "before"];

const STEERING: ReadonlyMap<string, Steering> = new Map([
  ["cancel_task", { kind: "queue.cancelled", subject: ["id", "task_id"], detail: ["reason"] }],
  ["requeue_task", { kind: "queue.retried", subject: ["id", "task_id"], detail: [] }],
  ["cancel_tasks", { kind: "queue.cancelled", subject: [], detail: BULK }],
  ["requeue_tasks", { kind: "queue.retried", subject: [], detail: BULK }],
  ["delete_tasks", { kind: "queue.deleted", subject: [], detail: BULK }],
  ["submit_task", { kind: "queue.submitted", subject: ["executor"], detail: ["key"] }],
  ["submit_tasks", { kind: "queue.submitted", subject: ["executor"], detail: [] }],
  ["submit_graph", { kind: "queue.submitted", subject: ["key"], detail: [] }],
  ["put_file", { kind: "queue.stored", subject: ["hash"], detail: ["chunks"] }],
  ["deregister_node", { kind: "node.removed", subject: ["node_id"], detail: [] }],
  ["drain_node", { kind: "node.drained", subject: ["node_id"], detail: [] }],
  ["put_queue", { kind: "queue.limited", subject: ["queue"], detail: ["paused", "concurrency"] }],
  ["set_role", { kind: "queue.role", subject: [], detail: ["role"] }],
  ["put_schedule", { kind: "schedule.put", subject: ["schedule_id"], detail: ["cron"] }],
  ["pause_schedule", { kind: "schedule.paused", subject: ["schedule_id"], detail: ["paused"] }],
  ["run_schedule", { kind: "schedule.run", subject: ["schedule_id"], detail: [] }],
  ["remove_schedule", { kind: "schedule.removed", subject: ["schedule_id"], detail: [] }],
]);

/**
 * Plain submits are many, and the history of each task has the submitter: only those with code or files are recorded.
 */
export function isSteering({ method, params }: RpcCall): boolean {
  return STEERING.has(method) && (method.startsWith("submit_task") ? carriesCode(params) : true);
}

/** The entry of an answered call; null when it controls nothing. The parameters are unchecked. */
export function steeringEntry(
  { method, params }: RpcCall,
  requester: AuditRequester,
  { node, error }: { readonly node: string; readonly error: unknown },
): AuditEvent | null {
  const steering = STEERING.get(method);
  if (steering === undefined) return null;
  const { kind, subject, detail } = steering;
  const given = (name: string): string | undefined => textOf(params, name);
  const named: Record<string, AuditDetail[string]> = {};
  for (const name of detail) named[name] = given(name) ?? null;
  return {
    kind,
    subject: subject.map(given).find((name) => name !== undefined) ?? node,
    requester,
    detail: { ...named, outcome: outcomeOf(error) },
  };
}

function outcomeOf(error: unknown): string {
  if (error === null) return "done";
  return error instanceof QueueError ? error.code : "INTERNAL";
}

function textOf(params: unknown, name: string): string | undefined {
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, name)) return;
  const value: unknown = Reflect.get(params, name);
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}
