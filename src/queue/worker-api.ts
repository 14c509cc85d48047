/** Methods for workers in other processes, in TypeScript or any other language. */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { encodePayload } from "../core/queue/payload.ts";
import type { TokenScope } from "../core/queue/permissions.ts";
import type { AuditRequester } from "../host/ports/audit.ts";
import { backoffSchema, parseParams, runAfter, taskId } from "./api/submit-request.ts";
import type { Grant, Report } from "./api/types.ts";
import type { Leader } from "./leader/leader.ts";

export interface CallContext {
  /** The caller: a client, or the node that forwards the call. */
  readonly requester: AuditRequester;
  /** Scope of the caller's token; null for full access. */
  readonly scope: TokenScope | null;
  /** The call was forwarded by another node and must not be forwarded again. */
  readonly forwarded: boolean;
  /** Whether the caller has disconnected: leases granted meanwhile go back. */
  readonly gone: () => boolean;
  /** Called when the caller disconnects before its answer. */
  readonly onGone: (listener: () => void) => void;
}

export type LeaderMethod = (
  leader: Leader,
  params: unknown,
  context: CallContext,
) => Promise<unknown>;

/** Limit for the stack and the causes of a failure, each. */
const FAILURE_CHARACTERS_MAX = 8_192;
/** Limit of one attempt: the range of the column. */
const LINES_MAX = 2 ** 31 - 1;
const nodeId = z.string().min(1).max(QUEUE_LIMITS.executorLengthMax);
const NO_RUN = "00000000-0000-0000-0000-000000000000";
const run = z.uuid().default(NO_RUN);
/** A worker acts for its own process only: others do not know its run id. */
function requireRun(
  node: { readonly node_id: string; readonly run: string },
  { scope }: CallContext,
): void {
  if (scope !== "worker" || node.run !== NO_RUN) return;
  const problem = `the token is for workers: give the run that ${node.node_id} has registered with`;
  throw new QueueError("FORBIDDEN", problem);
}

const wait = z.number().min(0).max(QUEUE_LIMITS.claimWaitMsMax).default(0);
const limit = (most: number, usual: number) => z.int().min(1).max(most).default(usual);
const lease = z.object({ task_id: z.coerce.string().regex(/^\d{1,15}$/), lease_token: z.uuid() });
const leases = z
  .object({
    node_id: nodeId.default("unknown"),
    leases: z.array(lease).max(QUEUE_LIMITS.claimTasksMax).optional(),
  })
  .and(lease.partial())
  .transform((params, context) => {
    const { task_id, lease_token } = params;
    const single =
      task_id !== undefined && lease_token !== undefined ? [{ task_id, lease_token }] : undefined;
    const list = params.leases ?? single;
    if (list === undefined)
      context.addIssue({
        code: "custom",
        message: "task_id and lease_token, or leases, are missing",
      });
    return { node_id: params.node_id, leases: list ?? [], single: params.leases === undefined };
  });
const held = z.object({
  question: z.int().min(1),
  tokens: z.array(z.uuid()).max(QUEUE_LIMITS.heldNamedMax),
});
const failure = z.union([
  z.string().transform((message) => ({ message })),
  z.looseObject({
    message: z.string(),
    name: z.string().optional(),
    retryable: z.boolean().optional(),
    again: runAfter.optional(),
  }),
]);
const report = lease.extend({
  attempt_id: z.int().min(1).default(1),
  status: z.enum(["completed", "failed"]).optional(),
  result: z.unknown().optional(),
  result_json: z.string().nullish(),
  error: failure.nullish(),
  backoff: backoffSchema.nullish(),
  elapsed_ms: z.number().min(0).default(0),
  start_noted: z.boolean().default(false),
});

export const workerMethods: Readonly<Record<string, LeaderMethod>> = {
  async register_node(leader, params) {
    const schema = z.object({
      node_id: nodeId,
      run,
      role: z.string().max(32).default("worker"),
      url: z.string().max(2_048).nullable().default(null),
      executor_types: z.array(nodeId).max(1_000),
      capabilities: z.record(z.string(), z.unknown()).default({}),
      max_parallel: z.int().min(0).max(QUEUE_LIMITS.maxParallelMax).default(1),
    });
    const node = parseParams(schema, params);
    await leader.register(node);
    return { node_id: node.node_id, epoch: leader.epoch };
  },
  async heartbeat(leader, params) {
    const node = parseParams(z.object({ node_id: nodeId, run }), params);
    return { known: await leader.heartbeat(node.node_id, node.run) };
  },
  async drain_node(leader, params, context) {
    const node = parseParams(z.object({ node_id: nodeId, run }), params);
    requireRun(node, context);
    await leader.drain(node.node_id, node.run);
    return { node_id: node.node_id };
  },
  async deregister_node(leader, params, context) {
    const node = parseParams(z.object({ node_id: nodeId, run }), params);
    requireRun(node, context);
    await leader.deregister(node.node_id, node.run);
    return { node_id: node.node_id };
  },
  async find_executable_tasks(leader, params) {
    const ask = parseParams(
      z.object({ node_id: nodeId, run, limit: limit(QUEUE_LIMITS.claimTasksMax, 10) }),
      params,
    );
    return { task_ids: leader.findExecutable(ask.node_id, ask.run, ask.limit) };
  },
  async acquire_lease(leader, params, context) {
    const schema = z.object({
      node_id: nodeId,
      run,
      task_id: taskId.optional(),
      max: z.int().min(0).max(QUEUE_LIMITS.claimTasksMax).default(1),
      wait_ms: wait,
      held: held.optional(),
      raw: z.boolean().default(false),
    });
    const ask = parseParams(schema, params);
    context.onGone(() => leader.disconnected(ask.node_id, ask.run));
    const grants =
      ask.task_id === undefined
        ? await leader.acquire({
            nodeId: ask.node_id,
            run: ask.run,
            max: ask.max,
            waitMs: ask.wait_ms,
            held: ask.held,
          })
        : await leader.acquireTask(ask.node_id, ask.run, ask.task_id);
    if (context.gone() && grants.length > 0) {
      await leader.release(ask.node_id, grants, "undelivered");
      return { leases: [] };
    }
    return { leases: ask.raw ? grants : grants.map(withInput) };
  },
  async watch_leases(leader, params, context) {
    const {
      node_id,
      run: of,
      wait_ms,
    } = parseParams(z.object({ node_id: nodeId, run, wait_ms: wait }), params);
    context.onGone(() => leader.disconnected(node_id, of));
    return { revoked: await leader.watch(node_id, of, wait_ms) };
  },
  async report_started(leader, params) {
    const { node_id, leases: list } = parseParams(leases, params);
    await leader.started(node_id, list);
    return {};
  },
  async renew_lease(leader, params) {
    const { node_id, leases: list, single } = parseParams(leases, params);
    const lost = await leader.renew(node_id, list);
    if (single && lost.length > 0) throw refused("renewed", list[0]?.task_id);
    return { lost };
  },
  async release_lease(leader, params) {
    const { node_id, leases: list } = parseParams(leases, params);
    await leader.release(node_id, list);
    return {};
  },
  async report_completion(leader, params) {
    const many = z.object({
      node_id: nodeId.default("unknown"),
      reports: z.array(report).max(QUEUE_LIMITS.claimTasksMax),
    });
    const isMany = params !== null && typeof params === "object" && "reports" in params;
    const list = isMany
      ? parseParams(many, params)
      : { node_id: nodeOf(params), reports: [parseParams(report, params)] };
    const lost = await leader.report(list.node_id, list.reports.map(asReport));
    if (!isMany && lost.length > 0) throw refused("reported on", list.reports[0]?.task_id);
    return { refused: lost };
  },
  async report_progress(leader, params) {
    const message = lease.extend({
      kind: z.enum(["progress", "log"]),
      message: z.unknown(),
      line: z.int().min(1).max(LINES_MAX).optional(),
    });
    const schema = z.object({
      node_id: nodeId,
      messages: z.array(message).max(QUEUE_LIMITS.claimTasksMax),
    });
    const { node_id, messages } = parseParams(schema, params);
    await leader.progress(node_id, messages);
    return {};
  },
  async execution_history(leader, params) {
    return leader.history(parseParams(lease, params));
  },
  async recover_stale_leases(leader) {
    return { recovered: (await leader.recoverStaleLeases()).map(String) };
  },
};

function withInput({ input, dependencies, ...grant }: Grant): unknown {
  const handed = dependencies === undefined ? {} : { dependencies: JSON.parse(dependencies) };
  return { ...grant, input: JSON.parse(input), ...handed };
}

function nodeOf(params: unknown): string {
  return parseParams(z.object({ node_id: nodeId.default("unknown") }), params).node_id;
}

function asReport(value: z.output<typeof report>): Report {
  const { result, result_json, error, ...rest } = value;
  const status = value.status ?? (error === undefined || error === null ? "completed" : "failed");
  const payload = encodePayload(
    result_json === undefined ? result : JSON.parse(result_json ?? "null"),
    "result",
  );
  if (!payload.ok) throw new QueueError("INVALID_PARAMS", payload.problem);
  return {
    ...rest,
    status,
    result: status === "completed" ? payload.text : null,
    error: asFailure(error),
  };
}

function asFailure(error: z.output<typeof failure> | null | undefined): Report["error"] {
  if (error === null || error === undefined) return null;
  const { message } = error;
  const name = "name" in error && typeof error.name === "string" ? { name: error.name } : {};
  const retryable =
    "retryable" in error && typeof error.retryable === "boolean"
      ? { retryable: error.retryable }
      : {};
  const text = (field: "stack" | "cause"): object =>
    field in error && typeof error[field as never] === "string"
      ? { [field]: String(error[field as never]).slice(0, FAILURE_CHARACTERS_MAX) }
      : {};
  const again =
    "again" in error && error.again !== undefined ? { again: error.again as string | number } : {};
  return { message, ...name, ...text("stack"), ...text("cause"), ...retryable, ...again };
}

function refused(what: string, id: string | undefined): QueueError {
  return new QueueError(
    "LEASE_REFUSED",
    `task ${id} cannot be ${what}: this lease is not the current one`,
  );
}
