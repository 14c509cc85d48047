/**
 * The client's side: one key for all attempts of one request, exponential backoff, and a limit. Only attempts that may
 * have been lost are retried: transport errors and RETRY answers. A rejection is an answer, and a duplicate is success.
 * (IDEM-1, IDEM-28)
 */

import { assert } from "../../base/assert.ts";
import type { Random } from "../../base/random.ts";
import type { IdempotencyKey } from "./key.ts";

export interface RetryPolicy {
  /** After the first attempt. */
  readonly retriesMax: number;
  /** Before retry n (from 0): delayMs x 2^n, shortened at random. */
  readonly delayMs: number;
  /** The part of the pause that is random. It only shortens, so that the window stays as computed. */
  readonly jitter: number;
  /** One attempt without an answer counts as a transport error. */
  readonly attemptTimeoutMs: number;
}

export const RETRY_POLICY: RetryPolicy = {
  retriesMax: 3,
  delayMs: 1_000,
  jitter: 0.5,
  attemptTimeoutMs: 30_000,
};

/** The longest time between the first send and the last: 4 x 30 s + 7 s = 127 s by default. */
export function retryWindowMs(policy: RetryPolicy): number {
  const pauses = policy.delayMs * (2 ** policy.retriesMax - 1);
  return (policy.retriesMax + 1) * policy.attemptTimeoutMs + pauses;
}

type AttemptResult =
  /** An ack, positive (duplicates too) or final refusal. */
  | { readonly kind: "accepted" }
  | { readonly kind: "rejected" }
  /** The answer asks for a retry of the same request. */
  | { readonly kind: "retry"; readonly why: string }
  /** Refused connection, reset, timeout: the outcome is unknown. */
  | { readonly kind: "transportError"; readonly why: string };

type RetryStep =
  | { readonly kind: "done" }
  | { readonly kind: "again"; readonly afterMs: number; readonly attempt: number }
  /** All attempts are used up. The outcome is unknown: the key must be kept to ask again. */
  | { readonly kind: "gaveUp"; readonly attempts: number; readonly why: string };

/** One request until its end. */
export class SubmissionRetry {
  readonly key: IdempotencyKey;
  readonly #policy: RetryPolicy;
  readonly #random: Random;
  #attempts = 1;
  #ended = false;

  constructor(key: IdempotencyKey, policy: RetryPolicy, random: Random) {
    assert(policy.jitter >= 0 && policy.jitter <= 1, "jitter is a fraction");
    this.key = key;
    this.#policy = policy;
    this.#random = random;
  }

  /** The attempt under way, from 1. */
  get attempt(): number {
    return this.#attempts;
  }

  onResult(result: AttemptResult): RetryStep {
    assert(!this.#ended, "an ended request has no further attempts");
    if (result.kind === "accepted" || result.kind === "rejected") {
      this.#ended = true;
      return { kind: "done" };
    }
    const retries = this.#attempts - 1;
    if (retries >= this.#policy.retriesMax) {
      this.#ended = true;
      return { kind: "gaveUp", attempts: this.#attempts, why: result.why };
    }
    const pauseMs = this.#policy.delayMs * 2 ** retries;
    const afterMs = Math.round(pauseMs * (1 - this.#policy.jitter * this.#random.float()));
    return { kind: "again", afterMs, attempt: ++this.#attempts };
  }
}
