/** Our own commands' side of a ledger node's interface: one request, with retries that share one key. */

import { setTimeout as pause } from "node:timers/promises";
import { errorText } from "../core/base/error-text.ts";
import { Random } from "../core/base/random.ts";
import type { IdempotencyKey } from "../core/ledger/keys/key.ts";
import { RETRY_POLICY, type RetryPolicy, SubmissionRetry } from "../core/ledger/keys/retry.ts";
import { ControlClient, UnreachableError } from "../host/control/client.ts";
import { type ControlTarget, TOKEN_ADVICE, tokenFor } from "../host/control/token.ts";

/** `api` may list several addresses separated by commas: the next is tried when one does not answer. */
export type LedgerTarget = ControlTarget;

export type JsonObject = Readonly<Record<string, unknown>>;

export interface LedgerReply {
  readonly status: number;
  readonly body: JsonObject;
  /** Which attempt this answers, from 1. */
  readonly attempts: number;
}

/** Something a person can act on, without a stack. */
export class LedgerClientError extends Error {
  override readonly name = "LedgerClientError";
  /** Whether the request may have had an effect. */
  readonly unknown: boolean;

  constructor(message: string, unknown = false, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.unknown = unknown;
  }
}

interface LedgerCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  /** Names the request over all attempts: an idempotency key or an event id. */
  readonly id: string;
  readonly retry?: RetryPolicy;
  readonly onRetry?: (why: string, afterMs: number) => void;
}

export async function callLedger(target: LedgerTarget, call: LedgerCall): Promise<LedgerReply> {
  const apis = target.api.split(",").filter((api) => api !== "");
  const policy = call.retry ?? RETRY_POLICY;
  const retry = new SubmissionRetry(call.id as IdempotencyKey, policy, new Random(call.id));
  for (let attempt = 0; ; attempt++) {
    const api = apis[attempt % Math.max(1, apis.length)] ?? "";
    const result = await once(target, api, call, policy.attemptTimeoutMs);
    if ("status" in result && result.body["retry"] !== true) {
      retry.onResult({ kind: isAnswered(result.status) ? "accepted" : "rejected" });
      return { ...result, attempts: retry.attempt };
    }
    const why = "status" in result ? String(result.body["error"]) : result.why;
    const kind = "status" in result ? "retry" : "transportError";
    const step = retry.onResult({ kind, why });
    if (step.kind === "again") {
      call.onRetry?.(why, step.afterMs);
      await pause(step.afterMs);
      continue;
    }
    const tried = policy.retriesMax === 0 ? "" : ` after ${policy.retriesMax + 1} attempts`;
    throw new LedgerClientError(
      `no answer from ${target.api}${tried}: ${why}`,
      call.method === "POST",
    );
  }
}

async function once(
  target: LedgerTarget,
  api: string,
  { method, path, body }: LedgerCall,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly body: JsonObject } | { readonly why: string }> {
  const client = new ControlClient({ address: api, token: tokenFor({ ...target, api }) });
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const reply = await client.call(method, path, { body: text, timeoutMs });
    const answer = JSON.parse(reply.text) as JsonObject;
    if (reply.status === 401)
      throw new LedgerClientError(`${api} needs its token: ${TOKEN_ADVICE}`);
    // A node that is starting or going down has done nothing.
    if (reply.status === 503) return { why: String(answer["error"] ?? "busy") };
    return { status: reply.status, body: answer };
  } catch (error) {
    if (error instanceof LedgerClientError) throw error;
    const reason = error instanceof UnreachableError ? error.reason : errorText(error);
    return { why: `no ledger node answers at ${api} (${reason})` };
  } finally {
    client.close();
  }
}

/** Done, or taken and under way: a cancel that no quorum has confirmed yet. (G-18) */
export function isAnswered(status: number): boolean {
  return status === 200 || status === 202;
}
