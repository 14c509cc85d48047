/** JSON-RPC 2.0: requests, notifications and batches in; responses out. Independent of the transport. */

import { errorText } from "../../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { DatabaseUnavailable, ERROR_CODES, QueueError } from "../../core/queue/errors.ts";
import { checkBatch, runBatch } from "./batch.ts";

type RpcId = string | number | null;

export interface RpcCall {
  readonly method: string;
  readonly params: unknown;
}

interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export type RpcResponse =
  | { readonly jsonrpc: "2.0"; readonly id: RpcId; readonly result: unknown }
  | { readonly jsonrpc: "2.0"; readonly id: RpcId; readonly error: RpcErrorBody };

type Handler = (call: RpcCall) => Promise<unknown>;

/** Returns undefined when nothing is to be answered: notifications only. */
export async function answerRpc(
  text: string,
  handler: Handler,
): Promise<RpcResponse | readonly RpcResponse[] | undefined> {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch (error) {
    const reason = errorText(error);
    return failure(null, new QueueError("PARSE_ERROR", `the body is not JSON: ${reason}`));
  }
  if (!Array.isArray(message)) return answerOne(message, handler);
  if (message.length === 0)
    return failure(null, new QueueError("INVALID_REQUEST", "a batch holds at least one call"));
  if (message.length > QUEUE_LIMITS.batchCallsMax) {
    const problem = `a batch holds at most ${QUEUE_LIMITS.batchCallsMax} calls, this one ${message.length}`;
    return failure(null, new QueueError("INVALID_REQUEST", problem));
  }
  try {
    checkBatch(message);
  } catch (error) {
    return failure(null, error);
  }
  const answers = await runBatch(
    message,
    (one) => answerOne(one, handler),
    (one, error) => failure(idOf(one), error),
  );
  const responses = answers.filter((answer) => answer !== undefined);
  return responses.length === 0 ? undefined : responses;
}

/** The id of a call whose method is known. */
function idOf(message: unknown): RpcId {
  const { id } = Object(message) as { readonly id?: unknown };
  return typeof id === "string" || typeof id === "number" ? id : null;
}

async function answerOne(message: unknown, handler: Handler): Promise<RpcResponse | undefined> {
  if (message === null || typeof message !== "object" || Array.isArray(message)) {
    return failure(null, new QueueError("INVALID_REQUEST", "a call is an object"));
  }
  const { jsonrpc, id, method, params } = message as Readonly<Record<string, unknown>>;
  const validId =
    id === undefined || id === null || typeof id === "string" || typeof id === "number";
  const answerId: RpcId = validId && id !== undefined ? (id as RpcId) : null;
  if (jsonrpc !== "2.0" || typeof method !== "string" || !validId) {
    const problem = 'a call has "jsonrpc": "2.0", a "method" and, to be answered, an "id"';
    return failure(answerId, new QueueError("INVALID_REQUEST", problem));
  }
  if (params !== undefined && (params === null || typeof params !== "object")) {
    return failure(
      answerId,
      new QueueError("INVALID_REQUEST", '"params" is an object or an array'),
    );
  }
  try {
    const result = await handler({ method, params: Array.isArray(params) ? params[0] : params });
    return id === undefined ? undefined : { jsonrpc: "2.0", id: answerId, result: result ?? null };
  } catch (error) {
    return id === undefined ? undefined : failure(answerId, error);
  }
}

export function failure(id: RpcId, error: unknown): RpcResponse {
  const known = asQueueError(error);
  const data = { name: known.code, retryable: known.retryable, ...known.data };
  return {
    jsonrpc: "2.0",
    id,
    error: { code: ERROR_CODES[known.code], message: known.message, data },
  };
}

export function asQueueError(error: unknown): QueueError {
  if (error instanceof QueueError) return error;
  if (error instanceof DatabaseUnavailable)
    return new QueueError("UNAVAILABLE", error.message, { cause: error });
  const message = errorText(error);
  return new QueueError("INTERNAL", `unexpected: ${message}`, { cause: error });
}
