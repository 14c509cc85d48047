/**
 * Circuit breaker for one other datacenter, with a queue of operations to replay.
 * (CB-1..7)
 *
 *     CLOSED ──5 failures in a row──> OPEN ──30 s since the last failure──> HALF_OPEN ──3 probes succeed──> CLOSED
 *                                      ^                                       │                       replay queue
 *                                      └──────────────── a probe fails ────────┘
 *
 * A request is sent, queued or rejected, never two of them, and its caller learns which. The queue
 * is first in first out; queued operations go before new ones. The breaker drives its own recovery: the timer sends a
 * probe (the oldest queued operation, or a ping if there is none) even without traffic.
 *
 * The queue is a hint for delivery, never the record: accepted operations are in the ledger, and the owner of an
 * expired entry, or a restarted gate, sends again from there. (CB-6)
 *
 * Every call must be completed with `succeeded`, `failed` or `aborted`: the driver handles timeouts.
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { CircuitState } from "../messages.ts";

interface BreakerConfig {
  /** Consecutive failures that open the circuit. */
  readonly failureThreshold: number;
  /** Consecutive successes that close a half-open circuit. */
  readonly successThreshold: number;
  /** Milliseconds before an open circuit is probed. */
  readonly openTimeoutMs: number;
  /** Always 1: one probe at a time keeps queued operations in order. */
  readonly halfOpenProbesMax: number;
  /** Maximum number of queued operations. */
  readonly queueMax: number;
  /** Milliseconds after which a queued operation expires. */
  readonly queueTimeoutMs: number;
  /** Queued operations per replay message: one at a time would not drain 1,000 in 60 s over a long link. */
  readonly replayBatchMax: number;
  /** Maximum number of unanswered calls. */
  readonly inFlightMax: number;
}

export const BREAKER_DEFAULTS: BreakerConfig = {
  failureThreshold: 5,
  successThreshold: 3,
  openTimeoutMs: 30_000,
  halfOpenProbesMax: 1,
  queueMax: 1_000,
  queueTimeoutMs: 60_000,
  replayBatchMax: 64,
  inFlightMax: 1_024,
};

function checkBreakerConfig(config: BreakerConfig): void {
  assert(config.failureThreshold >= 1, "a breaker opens after at least one failure");
  assert(config.successThreshold >= 1, "a breaker closes after at least one success");
  assert(config.halfOpenProbesMax === 1, "one probe at a time keeps queued operations in order");
  assert(config.replayBatchMax >= 1, "a replay moves something");
}

export type BreakerInput<Op> =
  | { readonly kind: "request"; readonly op: Op; readonly whenOpen: "queue" | "reject" }
  | { readonly kind: "succeeded"; readonly call: number }
  /** The first `done` operations of a call with several succeeded. */
  | { readonly kind: "failed"; readonly call: number; readonly done?: number }
  /**
   * The call ended without saying anything about the datacenter; operations after the first `done` are queued again.
   */
  | { readonly kind: "aborted"; readonly call: number; readonly done: number }
  /** A connection was established, which earlier failures knew nothing about: probes at once. (CB-5) */
  | { readonly kind: "reachable" }
  | { readonly kind: "tick" };

export type BreakerEffect<Op> =
  /** Has several operations only when replaying; execute them in order. */
  | { readonly kind: "send"; readonly call: number; readonly ops: readonly Op[] }
  | { readonly kind: "ping"; readonly call: number }
  | { readonly kind: "queued"; readonly op: Op }
  | {
      readonly kind: "rejected";
      readonly op: Op;
      readonly reason: "CIRCUIT_OPEN" | "QUEUE_FULL" | "BUSY";
    }
  /** A queued operation succeeded. */
  | { readonly kind: "delivered"; readonly op: Op }
  /** An operation was queued for too long and is not sent; its owner reconciles from the ledger. */
  | { readonly kind: "expired"; readonly op: Op }
  | {
      readonly kind: "stateChanged";
      readonly from: CircuitState;
      readonly to: CircuitState;
      readonly failures: number;
    }
  /** The queue is empty again after a recovery. */
  | { readonly kind: "replayed"; readonly count: number };

interface Queued<Op> {
  readonly op: Op;
  readonly since: number;
}

interface Call<Op> {
  readonly generation: number;
  /** Operations taken from the queue; empty for direct requests and pings. */
  readonly queued: readonly Queued<Op>[];
}

export interface BreakerView {
  readonly state: CircuitState;
  readonly failures: number;
  readonly queued: number;
  readonly inFlight: number;
}

export class CircuitBreaker<Op> {
  readonly #config: BreakerConfig;
  #state: CircuitState = "CLOSED";
  /** Incremented with every state change: results of earlier calls are ignored. (CB-1) */
  #generation = 0;
  #failures = 0;
  #successes = 0;
  #lastFailureAt = 0;
  #queue: Queued<Op>[] = [];
  readonly #calls = new Map<number, Call<Op>>();
  #callsMade = 0;
  /** The one call with queued operations, or the ping that probes. */
  #carrier: number | null = null;
  #replayed = 0;
  #effects: BreakerEffect<Op>[] = [];

  constructor(config: BreakerConfig) {
    checkBreakerConfig(config);
    this.#config = config;
  }

  snapshot(): BreakerView {
    return {
      state: this.#state,
      failures: this.#failures,
      queued: this.#waiting(),
      inFlight: this.#calls.size,
    };
  }

  nextDeadline(): Millis | null {
    const oldest = this.#queue[0];
    const expires = oldest === undefined ? null : oldest.since + this.#config.queueTimeoutMs;
    const opens = this.#state === "OPEN" ? this.#lastFailureAt + this.#config.openTimeoutMs : null;
    if (expires === null || opens === null) return (expires ?? opens) as Millis | null;
    return Math.min(expires, opens) as Millis;
  }

  step(input: BreakerInput<Op>, now: Millis): readonly BreakerEffect<Op>[] {
    this.#effects = [];
    this.#expire(now);
    if (input.kind === "request") this.#onRequest(input.op, input.whenOpen, now);
    else if (input.kind === "succeeded") this.#onResult(input.call, null, now);
    else if (input.kind === "failed") this.#onResult(input.call, input.done ?? 0, now);
    else if (input.kind === "aborted") this.#complete(input.call, input.done);
    else if (input.kind === "reachable" && this.#state === "OPEN") this.#probe();
    this.#recover(now);
    return this.#effects;
  }

  #onRequest(op: Op, whenOpen: "queue" | "reject", now: Millis): void {
    if (this.#mayPass(now, whenOpen)) {
      const call = this.#call([]);
      if (this.#state === "HALF_OPEN") this.#carrier = call;
      this.#effects.push({ kind: "send", call, ops: [op] });
      return;
    }
    if (whenOpen === "reject") {
      const reason = this.#state === "CLOSED" ? "BUSY" : "CIRCUIT_OPEN";
      this.#effects.push({ kind: "rejected", op, reason });
    } else if (this.#waiting() >= this.#config.queueMax) {
      this.#effects.push({ kind: "rejected", op, reason: "QUEUE_FULL" });
    } else {
      this.#queue.push({ op, since: now });
      this.#effects.push({ kind: "queued", op });
    }
  }

  #mayPass(now: Millis, whenOpen: "queue" | "reject"): boolean {
    if (this.#state === "CLOSED") {
      if (this.#calls.size >= this.#config.inFlightMax) return false;
      // Queued operations go first; a caller that does not queue is not part of that order.
      return whenOpen === "reject" || this.#waiting() === 0;
    }
    this.#wakeUp(now);
    return this.#state === "HALF_OPEN" && this.#carrier === null && this.#queue.length === 0;
  }

  #wakeUp(now: Millis): void {
    if (this.#state === "OPEN" && now >= this.#lastFailureAt + this.#config.openTimeoutMs)
      this.#probe();
  }

  #probe(): void {
    this.#change("HALF_OPEN");
    this.#successes = 0;
  }

  #onResult(callNumber: number, failedAfter: number | null, now: Millis): void {
    const call = this.#complete(callNumber, failedAfter);
    if (call?.generation !== this.#generation) return;
    if (failedAfter === null) this.#onSuccess();
    else this.#onFailure(now);
  }

  /** Completes a call. `done` is null if all its operations succeeded. */
  #complete(callNumber: number, done: number | null): Call<Op> | undefined {
    const call = this.#calls.get(callNumber);
    if (call === undefined) return undefined;
    this.#calls.delete(callNumber);
    if (this.#carrier === callNumber) this.#carrier = null;
    this.#settle(call.queued, done ?? call.queued.length);
    return call;
  }

  /** Reports delivered operations; the others return to the head in order. (CB-4) */
  #settle(queued: readonly Queued<Op>[], done: number): void {
    const delivered = Math.min(Math.max(done, 0), queued.length);
    for (const { op } of queued.slice(0, delivered)) this.#effects.push({ kind: "delivered", op });
    this.#queue.unshift(...queued.slice(delivered));
    this.#replayed += delivered;
  }

  #onSuccess(): void {
    this.#failures = 0;
    if (this.#state !== "HALF_OPEN") return;
    this.#successes++;
    if (this.#successes >= this.#config.successThreshold) this.#change("CLOSED");
  }

  #onFailure(now: Millis): void {
    this.#failures++;
    this.#lastFailureAt = now;
    const isFull = this.#failures >= this.#config.failureThreshold;
    if (this.#state === "HALF_OPEN" || isFull) this.#change("OPEN");
  }

  #change(to: CircuitState): void {
    const from = this.#state;
    assert(from !== to, "a change of state changes it");
    this.#effects.push({ kind: "stateChanged", from, to, failures: this.#failures });
    this.#state = to;
    this.#generation++;
    if (to === "CLOSED") this.#failures = 0;
  }

  #expire(now: Millis): void {
    const { queueTimeoutMs } = this.#config;
    while (this.#queue[0] !== undefined && now >= this.#queue[0].since + queueTimeoutMs) {
      const entry = this.#queue.shift();
      if (entry !== undefined) this.#effects.push({ kind: "expired", op: entry.op });
    }
  }

  /** After every step: probes when half open, replays when closed. */
  #recover(now: Millis): void {
    this.#wakeUp(now);
    if (this.#carrier !== null || this.#state === "OPEN") return;
    if (this.#queue.length > 0) {
      this.#carry(this.#state === "CLOSED" ? this.#config.replayBatchMax : 1);
    } else if (this.#state === "HALF_OPEN") {
      this.#carrier = this.#call([]);
      this.#effects.push({ kind: "ping", call: this.#carrier });
    } else if (this.#replayed > 0) {
      this.#effects.push({ kind: "replayed", count: this.#replayed });
      this.#replayed = 0;
    }
  }

  #carry(opsMax: number): void {
    const taken = this.#queue.splice(0, opsMax);
    this.#carrier = this.#call(taken);
    this.#effects.push({ kind: "send", call: this.#carrier, ops: taken.map(({ op }) => op) });
  }

  #call(queued: readonly Queued<Op>[]): number {
    const call = ++this.#callsMade;
    this.#calls.set(call, { generation: this.#generation, queued });
    return call;
  }

  /** Counts operations in flight as well: they may return. */
  #waiting(): number {
    const carried = this.#carrier === null ? undefined : this.#calls.get(this.#carrier);
    return this.#queue.length + (carried?.queued.length ?? 0);
  }
}
