/**
 * Delivery of payloads to one back-end, the same for all of them: one at a time, joined where the format allows it,
 * retried after transient failures, abandoned after permanent ones. It never throws and never blocks a run; when the
 * run has finished it has `closeMs` for what is left.
 */

import { errorText } from "../../core/base/error-text.ts";
import {
  ANSWER_CHARACTERS_MAX,
  BATCH_BYTES_MAX,
  CLOSE_MS_MAX,
  CLOSING_RETRY_MS_MAX,
  HURRY_MS_MAX,
  QUEUE_BYTES_MAX,
  QUEUE_ENTRIES_MAX,
} from "../limits.ts";
import type { DeliveryCounts } from "../reporter.ts";
import { type Payload, PayloadQueue } from "./payload-queue.ts";
import { retryWaitMs } from "./retry.ts";

export type SendOutcome =
  | { readonly kind: "ok" }
  /** Transient: the server is busy or broken. */
  | { readonly kind: "retry"; readonly problem: string; readonly afterMs: number | null }
  /** Permanent: the same payload would be rejected again. */
  | { readonly kind: "refused"; readonly problem: string };

/** Thrown by a transport for a permanent failure. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** Throws network errors, which may be transient. */
export interface Transport {
  /** Nothing it sends is acknowledged. */
  readonly unconfirmed?: true;
  /** Fails before the run for what can never work, such as a driver that is not installed. */
  prepare?(): Promise<void>;
  send(payload: Payload, signal: AbortSignal): Promise<SendOutcome>;
  close(): Promise<void>;
}

interface DeliveryOptions {
  readonly transport: Transport;
  /** Bodies can be concatenated. */
  readonly joins: boolean;
  /** Removes secrets from texts. */
  readonly scrub: (text: string) => string;
  /** Called with the first problem. */
  readonly onProblem: (problem: string) => void;
  readonly closeMs?: number | undefined;
  readonly queue?: { readonly entriesMax: number; readonly bytesMax: number } | undefined;
}

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #queue: PayloadQueue;
  readonly #end = new AbortController();
  #sending: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #isClosing = false;
  #closeMs: number;
  #closeTimer: NodeJS.Timeout | undefined;
  /** Ends the pause between two attempts. */
  #wake: () => void = () => {};
  #sent = 0;
  #dropped = 0;
  #problem: string | null = null;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#closeMs = options.closeMs ?? CLOSE_MS_MAX;
    this.#queue = new PayloadQueue(
      options.queue ?? { entriesMax: QUEUE_ENTRIES_MAX, bytesMax: QUEUE_BYTES_MAX },
    );
  }

  /** Counts points that could not be encoded. */
  leftOut(points: number, problem: string): void {
    if (points === 0) return;
    this.#dropped += points;
    this.#failed(problem);
  }

  /** Queues the payload without waiting. */
  offer(payload: Payload): void {
    if (this.#isClosing) {
      this.#dropped += payload.points;
      return;
    }
    const dropped = this.#queue.add(payload);
    if (dropped > 0) this.leftOut(dropped, this.#problem ?? "more is measured than it takes");
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Bytes queued now. */
  get waitingBytes(): number {
    return this.#queue.bytes;
  }

  counts(): DeliveryCounts {
    const { unconfirmed } = this.#options.transport;
    const counts = { sent: this.#sent, dropped: this.#dropped, problem: this.#problem };
    return unconfirmed === true ? { ...counts, unconfirmed } : counts;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Shortens the deadline when the user interrupts the wait: drops what is not accepted within a grace period. */
  hurry(): void {
    this.#closeMs = Math.min(this.#closeMs, HURRY_MS_MAX);
    if (this.#closeTimer !== undefined) this.#giveUpLater();
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    this.#wake();
    this.#giveUpLater();
    try {
      await this.#sending;
    } finally {
      clearTimeout(this.#closeTimer);
      this.#dropped += this.#queue.clear();
      await this.#options.transport.close();
    }
  }

  #giveUpLater(): void {
    clearTimeout(this.#closeTimer);
    this.#closeTimer = setTimeout(() => {
      this.#end.abort(new Error(`it did not take everything within ${this.#closeMs / 1_000} s`));
      this.#wake();
    }, this.#closeMs);
  }

  /** Sends until the queue is empty. */
  async #send(): Promise<void> {
    const joinedMax = this.#options.joins ? BATCH_BYTES_MAX : 0;
    while (!this.#queue.isEmpty && !this.#end.signal.aborted) {
      const payload = this.#queue.take(joinedMax);
      if (payload !== undefined) await this.#deliver(payload);
    }
  }

  async #deliver(payload: Payload): Promise<void> {
    for (let tries = 1; !this.#end.signal.aborted; tries++) {
      const outcome = await this.#try(payload);
      if (outcome.kind === "ok") {
        this.#sent += payload.points;
        return;
      }
      this.#failed(outcome.problem);
      if (outcome.kind === "refused") break;
      await this.#pause(retryWaitMs(tries, Math.random(), outcome.afterMs), outcome.afterMs);
    }
    this.#dropped += payload.points;
  }

  async #try(payload: Payload): Promise<SendOutcome> {
    try {
      return await this.#options.transport.send(payload, this.#end.signal);
    } catch (error) {
      const problem = errorText(error);
      return error instanceof RefusedError
        ? { kind: "refused", problem }
        : { kind: "retry", problem, afterMs: null };
    }
  }

  /** A pause requested by the server is kept even at the end; our own is cut short. */
  async #pause(waitMs: number, asked: number | null): Promise<void> {
    const begin = performance.now();
    const leftMs = (): number => {
      const mostMs = this.#isClosing && asked === null ? CLOSING_RETRY_MS_MAX : waitMs;
      return Math.min(mostMs, waitMs) - (performance.now() - begin);
    };
    while (leftMs() > 0 && !this.#end.signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs());
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = () => {};
  }

  #failed(problem: string): void {
    // Scrub before cutting: half a secret would not be recognised as one.
    const text = this.#options.scrub(problem).slice(0, ANSWER_CHARACTERS_MAX);
    if (this.#problem === null) this.#options.onProblem(text);
    this.#problem = text;
  }
}
