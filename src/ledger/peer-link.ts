/**
 * The way to one peer: a connection of our own that we dial, greet and keep. Messages flow one way on
 * it; what the peer says comes on the connection that it keeps to us.
 *
 *     down ──dial──► greeting ──opened──► up ──lost──► down, again after a pause that doubles
 *
 * What a slow or absent peer has not taken is bounded and the oldest goes first: replication asks again
 * for what it misses, and stale news would only delay the fresh.
 */

import type { Background, Work } from "../host/background.ts";
import type { Connection } from "../host/connection.ts";

/** Waiting for one peer; a little more than one window of one large group. */
const QUEUE_BYTES_MAX = 16 * 1_048_576;
/** Handed to the socket and not yet taken by the network. */
const IN_HAND_BYTES_MAX = 2 * 1_048_576;
const PUMP_MS = 2;
/** What waited longer than this while the peer was away has been repeated or given up since. */
const STALE_MS = 1_000;
/** A connection that takes nothing for so long is made anew. */
const STALL_MS_MAX = 5_000;
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 1_000;

interface Letter {
  readonly bytes: Uint8Array;
  readonly at: number;
}

interface PeerLinkOptions {
  readonly connect: (handlers: {
    readonly onUp: (connection: Connection) => void;
    readonly onEnd: (problem: string) => void;
  }) => void;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly background: Background;
  readonly onUp: () => void;
  readonly onDown: (problem: string) => void;
}

export interface PeerLinkView {
  readonly up: boolean;
  readonly queuedBytes: number;
  readonly sentBytes: number;
  readonly sentBatches: number;
  readonly dropped: number;
  readonly problem: string | null;
}

export class PeerLink {
  readonly #options: PeerLinkOptions;
  #connection: Connection | null = null;
  #queue: Letter[] = [];
  #queuedBytes = 0;
  #sentBytes = 0;
  #sentBatches = 0;
  #dropped = 0;
  #attempts = 0;
  #problem: string | null = "not connected yet";
  #pump: Work | null = null;
  #retry: Work | null = null;
  #movedAt = 0;
  #stopped = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
  }

  start(): void {
    this.#dial();
  }

  /** Sends what waits, then ends. */
  stop(): void {
    this.#stopped = true;
    this.#retry?.cancel();
    this.#pump?.cancel();
    this.#connection?.close();
  }

  view(): PeerLinkView {
    return {
      up: this.#connection !== null,
      queuedBytes: this.#queuedBytes,
      sentBytes: this.#sentBytes,
      sentBatches: this.#sentBatches,
      dropped: this.#dropped,
      problem: this.#problem,
    };
  }

  send(bytes: Uint8Array): void {
    if (this.#stopped) return;
    this.#queue.push({ bytes, at: performance.now() });
    this.#queuedBytes += bytes.length;
    let surplus = 0;
    while (this.#queuedBytes > QUEUE_BYTES_MAX && surplus < this.#queue.length - 1) {
      this.#queuedBytes -= this.#queue[surplus++]?.bytes.length ?? 0;
    }
    this.#drop(surplus);
    this.#push();
  }

  #drop(count: number): void {
    if (count === 0) return;
    this.#queue.splice(0, count);
    this.#dropped += count;
  }

  #push(): void {
    const connection = this.#connection;
    if (connection === null || this.#queue.length === 0) return;
    let sent = 0;
    while (sent < this.#queue.length && connection.backlogBytes < IN_HAND_BYTES_MAX) {
      const { bytes } = this.#queue[sent++] as Letter;
      this.#queuedBytes -= bytes.length;
      this.#sentBytes += bytes.length;
      this.#sentBatches++;
      connection.send(bytes);
    }
    const now = performance.now();
    if (sent > 0) this.#movedAt = now;
    this.#queue.splice(0, sent);
    if (this.#queue.length === 0) return;
    if (now - this.#movedAt > STALL_MS_MAX) {
      connection.destroy("the peer takes nothing");
      return;
    }
    this.#pump ??= this.#options.background.after("send to a peer", PUMP_MS, () => {
      this.#pump = null;
      this.#push();
    });
  }

  #dial(): void {
    if (this.#stopped) return;
    this.#options.connect({
      onUp: (connection) => {
        this.#connection = connection;
        this.#attempts = 0;
        this.#problem = null;
        this.#movedAt = performance.now();
        this.#forgetStale();
        this.#options.onUp();
        this.#push();
      },
      onEnd: (problem) => this.#onEnd(problem),
    });
  }

  #forgetStale(): void {
    const before = performance.now() - STALE_MS;
    const fresh = this.#queue.findIndex(({ at }) => at >= before);
    this.#drop(fresh < 0 ? this.#queue.length : fresh);
    this.#queuedBytes = this.#queue.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  #onEnd(problem: string): void {
    if (this.#stopped) return;
    this.#connection = null;
    this.#problem = problem;
    this.#options.onDown(problem);
    const pauseMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** this.#attempts++);
    const { background, random } = this.#options;
    const jitteredMs = pauseMs * (0.5 + random() / 2);
    this.#retry = background.after("dial a peer", jitteredMs, () => this.#dial());
  }
}
