/**
 * Persistent link to one peer: a connection that this process dials, greets, opens and keeps. Messages flow one way;
 * the peer sends on the link that it keeps to us.
 *
 *     down ──dial──► greeting ──► opening ──► up ──lost──► down, redialled with exponential backoff
 *
 * The queue for a slow or disconnected peer is bounded. The oldest messages are dropped first and counted: replication
 * asks again for what it misses, and stale messages would only delay fresh ones.
 */

import type { Millis } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Connection } from "./connection.ts";
import {
  BACKOFF_MS_MAX,
  BACKOFF_MS_MIN,
  OPENING_MS_MAX,
  type QueueLimits,
  STALE_MS,
  STALL_MS_MAX,
} from "./limits.ts";
import type { LinkRules } from "./rules.ts";
import type { StreamId } from "./types.ts";

interface Waiting {
  readonly bytes: Uint8Array;
  readonly at: Millis;
}

interface KeptLinkOptions {
  readonly peer: string;
  readonly to: Address;
  readonly limits: QueueLimits;
  readonly rules: LinkRules;
  readonly random: Random;
  readonly onSent: (stream: StreamId, message: Uint8Array) => void;
  readonly dial: (link: KeptLink, now: Millis) => StreamId;
}

export interface KeptLinkView {
  readonly up: boolean;
  readonly queued: number;
  readonly queuedBytes: number;
  readonly sentBytes: number;
  /** Messages written to the connection. */
  readonly sent: number;
  /** Messages dropped before they were written because the peer was disconnected or slow. */
  readonly dropped: number;
  readonly problem: string | null;
  /** Since when every greeting has been rejected; null if the last attempt ended otherwise. */
  readonly refusedSince: Millis | null;
}

export class KeptLink {
  readonly #options: KeptLinkOptions;
  #stream: StreamId | null = null;
  /** Connection whose opening is not answered yet. */
  #opening: Connection | null = null;
  #connection: Connection | null = null;
  #queue: Waiting[] = [];
  #queuedBytes = 0;
  #sentBytes = 0;
  #sent = 0;
  #dropped = 0;
  #attempts = 0;
  #problem: string | null = "not connected yet";
  #refusedSince: Millis | null = null;
  /** When to redial, abandon the opening, or check for a stall. */
  #dueAt = Number.POSITIVE_INFINITY;
  #movedAt: Millis | null = null;

  constructor(options: KeptLinkOptions) {
    this.#options = options;
  }

  get peer(): string {
    return this.#options.peer;
  }

  get to(): Address {
    return this.#options.to;
  }

  get dropped(): number {
    return this.#dropped;
  }

  nextDeadline(): number {
    return this.#dueAt;
  }

  view(): KeptLinkView {
    return {
      up: this.#connection !== null,
      queued: this.#queue.length,
      queuedBytes: this.#queuedBytes,
      sentBytes: this.#sentBytes,
      sent: this.#sent,
      dropped: this.#dropped,
      problem: this.#problem,
      refusedSince: this.#refusedSince,
    };
  }

  get isCalled(): boolean {
    return this.#stream !== null || this.#dueAt !== Number.POSITIVE_INFINITY;
  }

  start(now: Millis): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#stream = this.#options.dial(this, now);
  }

  send(bytes: Uint8Array, now: Millis): void {
    const { bytesMax, entriesMax } = this.#options.limits;
    this.#queue.push({ bytes, at: now });
    this.#queuedBytes += bytes.length;
    let surplus = Math.max(0, this.#queue.length - entriesMax);
    let bytesLeft = this.#queuedBytes;
    for (let i = 0; i < surplus; i++) bytesLeft -= this.#queue[i]?.bytes.length ?? 0;
    // Always keeps the newest message, however large it is.
    while (bytesLeft > bytesMax && surplus < this.#queue.length - 1) {
      bytesLeft -= this.#queue[surplus++]?.bytes.length ?? 0;
    }
    this.#drop(surplus);
    this.push(now);
  }

  /** The greeting is complete and the opening was sent. */
  onOpening(connection: Connection, now: Millis): void {
    this.#opening = connection;
    this.#dueAt = now + OPENING_MS_MAX;
  }

  /** Whether the opening is not answered yet. */
  get isOpening(): boolean {
    return this.#opening !== null;
  }

  onUp(now: Millis): void {
    this.#connection = this.#opening;
    this.#opening = null;
    this.#attempts = 0;
    this.#problem = null;
    this.#refusedSince = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#movedAt = now;
    const fresh = this.#queue.findIndex(({ at }) => at >= now - STALE_MS);
    this.#drop(fresh < 0 ? this.#queue.length : fresh);
    this.push(now);
  }

  onDown(problem: string, isRefused: boolean, now: Millis): void {
    this.#stream = null;
    this.#opening = null;
    this.#connection = null;
    this.#problem = problem;
    this.#refusedSince = isRefused ? (this.#refusedSince ?? now) : null;
    const pauseMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** this.#attempts);
    // Stops counting at the maximum delay, so that the power of two stays finite.
    if (pauseMs < BACKOFF_MS_MAX) this.#attempts++;
    this.#dueAt = now + pauseMs * (0.5 + this.#options.random.float() / 2);
  }

  /** Runs when the deadline is due. */
  onTick(now: Millis): void {
    if (this.#stream === null) this.start(now);
    else if (this.#opening !== null) this.#opening.destroy("no answer to our opening in time");
    else this.push(now);
  }

  /** Writes as much of the queue as the network accepts. */
  push(now: Millis): void {
    const connection = this.#connection;
    if (connection === null) return;
    const { limits, rules } = this.#options;
    let taken = 0;
    for (const { bytes } of this.#queue) {
      if (connection.inHandBytes >= limits.inHandBytesMax) {
        if (!rules.unsentWaits) taken++;
        break;
      }
      taken++;
      this.#sent++;
      this.#sentBytes += bytes.length;
      connection.sendEncoded(bytes, now);
      this.#options.onSent(connection.stream, bytes);
    }
    if (taken > 0) this.#movedAt = now;
    this.#remove(taken);
    // The write may have closed the connection because its backlog is full.
    if (this.#connection === null) return;
    this.#dueAt = Number.POSITIVE_INFINITY;
    if (this.#queue.length === 0) return;
    const stallsAt = (this.#movedAt ?? now) + STALL_MS_MAX;
    if (now >= stallsAt) connection.destroy("the peer takes nothing");
    else this.#dueAt = stallsAt;
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#remove(count);
  }

  #remove(count: number): void {
    for (let i = 0; i < count; i++) this.#queuedBytes -= this.#queue[i]?.bytes.length ?? 0;
    if (count === this.#queue.length) this.#queue = [];
    else if (count > 0) this.#queue.splice(0, count);
  }
}
