/**
 * One secured connection: bytes → frames → guard → chunks → messages, and back. After the greeting both sides behave
 * alike, except that only the dialling side sends keep-alives.
 *
 *     greeting ──welcome──► ready ──close──► closing ──► over
 *         └──refused──► lingering ──► over               every state that can stall has a deadline
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import { ChunkReader, toChunks } from "../../../wire/chunk.ts";
import { readClaims } from "../../../wire/claims.ts";
import { FrameReader, frame, PROBE_ANSWER } from "../../../wire/frame.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import { FRAME_BYTES_MAX, GREETING_FRAME_BYTES_MAX } from "../../../wire/limits.ts";
import {
  decodeStreamMessage,
  encodeStreamMessage,
  type StreamEnvelope,
} from "../../../wire/registry.ts";
import type { Entropy } from "../../../wire/seal.ts";
import { type StreamEvent, StreamGuard } from "../../../wire/stream-guard.ts";
import type { Millis } from "../../base/brand.ts";
import {
  BACKLOG_BYTES_MAX,
  GREETING_MS_MAX,
  KEEP_ALIVE_MS,
  LINGER_MS,
  SILENCE_MS_MAX,
} from "./limits.ts";
import { NOT_UNDERSTOOD, refusalOf } from "./refusal.ts";
import type { LinkEffect, StreamFacts, StreamId } from "./types.ts";

/** An unauthenticated peer gets no answer at all, so a client with the wrong secret sees only this. */
const NO_ANSWER =
  "closed without an answer to our greeting: most likely it has another secret, cluster or environment";

interface ConnectionOptions {
  readonly stream: StreamId;
  readonly facts: StreamFacts;
  readonly side: "client" | "server";
  readonly hello: Hello;
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  /** Bytes written between two marks. */
  readonly markBytes: number;
  readonly emit: (effect: LinkEffect) => void;
}

export interface ConnectionHandlers {
  readonly onReady: (connection: Connection, peer: Hello) => void;
  readonly onMessage: (connection: Connection, peer: Hello, message: StreamEnvelope) => void;
  /** Called once. `problem` is null after an orderly close. */
  readonly onEnd: (connection: Connection, problem: string | null) => void;
}

export class Connection {
  readonly stream: StreamId;
  readonly #options: ConnectionOptions;
  readonly #handlers: ConnectionHandlers;
  readonly #guard: StreamGuard;
  readonly #frames = new FrameReader(GREETING_FRAME_BYTES_MAX);
  readonly #chunks: ChunkReader;
  #state: "greeting" | "ready" | "closing" | "over" = "greeting";
  #peer: Hello | null = null;
  #compress = false;
  /** The peer supports keep-alive requests. */
  #canKeepAlive = false;
  #isAwaitingKeepAlive = false;
  #transfers = 0;
  #isEndReported = false;
  #wasReset = false;
  #isRefused = false;
  #now: Millis;
  #lastSeenAt: Millis;
  #endsAt: number;
  #writtenBytes = 0;
  #drainedBytes = 0;
  #markedBytes = 0;

  constructor(options: ConnectionOptions, handlers: ConnectionHandlers, now: Millis) {
    this.stream = options.stream;
    this.#options = options;
    this.#handlers = handlers;
    this.#now = now;
    this.#lastSeenAt = now;
    this.#endsAt = now + GREETING_MS_MAX;
    const { facts, ring, entropy, side, hello, compressor } = options;
    const read = facts.peerUris === null ? null : readClaims(facts.peerUris);
    const claims = read?.ok === true ? read.claims : null;
    this.#chunks = new ChunkReader(compressor);
    this.#guard = new StreamGuard({ ring, entropy, side, hello, claims });
    if (read !== null && !read.ok) this.#end(`the peer's certificate: ${read.problem}`);
    else if (side === "client") this.#write(frame(this.#guard.greet()));
  }

  get host(): string {
    return this.#options.facts.host;
  }

  /** Greeting of the peer; null before it has greeted. */
  get peer(): Hello | null {
    return this.#peer;
  }

  /** Bytes written that the network has not accepted yet, as far as known. */
  get inHandBytes(): number {
    return this.#writtenBytes - this.#drainedBytes;
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Closed by the network without notice; the peer may be alive. */
  get wasReset(): boolean {
    return this.#wasReset;
  }

  /** The peer rejected our greeting, explicitly or by closing the connection after reading it. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  nextDeadline(): number {
    if (this.#state !== "ready") return this.#endsAt;
    const isAskDue =
      this.#canKeepAlive && !this.#isAwaitingKeepAlive && this.#options.side === "client";
    return this.#lastSeenAt + (isAskDue ? KEEP_ALIVE_MS : SILENCE_MS_MAX);
  }

  send(message: StreamEnvelope, now: Millis): void {
    this.sendEncoded(encodeStreamMessage(message), now);
  }

  sendEncoded(message: Uint8Array, now: Millis): void {
    this.#now = now;
    if (this.#state !== "ready") return;
    const compressor = this.#compress ? this.#options.compressor : null;
    const chunked = toChunks(message, compressor, this.#transfers++);
    if (!chunked.ok) {
      this.#end(chunked.problem);
      return;
    }
    for (const chunk of chunked.chunks) this.#write(frame(this.#guard.seal(chunk)));
    // Peers without keep-alive: sending counts as activity, so a send-only connection is not idle.
    if (!this.#canKeepAlive) this.#lastSeenAt = now;
    if (this.inHandBytes > BACKLOG_BYTES_MAX) this.#end("the peer does not read");
  }

  /** Flushes pending writes, then closes. */
  close(now: Millis): void {
    if (this.#state === "closing" || this.#state === "over") return;
    this.#state = "closing";
    this.#endsAt = now + LINGER_MS;
    this.#options.emit({ kind: "end", stream: this.stream });
  }

  /** Closes immediately with this reason. */
  destroy(problem: string | null): void {
    this.#end(problem);
  }

  onBytes(bytes: Uint8Array, now: Millis): void {
    this.#now = now;
    for (const event of this.#frames.push(bytes)) {
      if (this.#state === "over") return;
      // Only complete frames count: a garbled length would swallow everything after it and look alive.
      this.#lastSeenAt = now;
      this.#isAwaitingKeepAlive = false;
      if (event.kind === "frame") this.#onGuarded(this.#guard.push(event.payload));
      else if (event.kind === "probe") this.#write(PROBE_ANSWER);
      else {
        // The process at this address will reject the next greeting too.
        this.#isRefused = this.#state === "greeting";
        this.#end(event.problem);
      }
    }
  }

  onDrained(mark: number): void {
    if (mark > this.#drainedBytes && mark <= this.#writtenBytes) this.#drainedBytes = mark;
  }

  onClosed(isReset = false): void {
    if (this.#state === "over") return;
    this.#wasReset = isReset;
    const awaitsAnswer = this.#options.side === "client" && this.#state === "greeting";
    this.#isRefused ||= awaitsAnswer;
    this.#over(awaitsAnswer ? NO_ANSWER : null);
  }

  /** Runs when the deadline is due. */
  onTick(now: Millis): void {
    this.#now = now;
    if (this.#state === "greeting") this.#end("no greeting in time");
    else if (this.#state === "closing") this.#end(null);
    else if (now - this.#lastSeenAt >= SILENCE_MS_MAX) this.#end("silent for too long");
    else if (this.#canKeepAlive) {
      this.#isAwaitingKeepAlive = true;
      this.send({ name: "keepAlive", correlation: 0, value: { answer: false } }, now);
    }
  }

  #onGuarded(event: StreamEvent): void {
    switch (event.kind) {
      case "data":
        this.#onChunk(event.plain);
        return;
      case "ready":
        if (event.reply !== null) this.#write(frame(event.reply));
        this.#options.emit({ kind: "prove", stream: this.stream });
        this.#state = "ready";
        this.#peer = event.peer;
        this.#frames.allow(FRAME_BYTES_MAX);
        this.#compress = event.features.includes("compression");
        this.#canKeepAlive = event.features.includes("keep_alive");
        this.#handlers.onReady(this, event.peer);
        return;
      case "refused":
        this.#isRefused = this.#state === "greeting";
        if (event.reply === null) {
          this.#end(event.problem);
          return;
        }
        this.#write(frame(event.reply));
        this.#part(event.problem);
    }
  }

  #onChunk(chunk: Uint8Array): void {
    const received = this.#chunks.push(chunk);
    if (received.kind === "refused") this.#end(received.problem);
    if (received.kind !== "message" || this.#peer === null) return;
    const message = decodeStreamMessage(received.bytes);
    if (!message.ok) this.#onUnreadable(message.problem, message.correlation);
    else if (message.value.name === "keepAlive") this.#onKeepAlive(message.value.value.answer);
    else this.#handlers.onMessage(this, this.#peer, message.value);
  }

  /** Tells the peer which of its messages could not be decoded, and nothing about this process. (AD-25, CODEC-7) */
  #onUnreadable(problem: string, correlation: number): void {
    if (this.#options.side === "client") {
      this.#end(problem);
      return;
    }
    const text = "this message is not understood here";
    this.send(refusalOf(correlation, NOT_UNDERSTOOD, text), this.#now);
    this.#part(problem);
  }

  #onKeepAlive(answer: boolean): void {
    if (answer) return;
    this.send({ name: "keepAlive", correlation: 0, value: { answer: true } }, this.#now);
  }

  #write(bytes: Uint8Array): void {
    this.#writtenBytes += bytes.length;
    const due = this.#writtenBytes - this.#markedBytes >= this.#options.markBytes;
    if (due) this.#markedBytes = this.#writtenBytes;
    const mark = due ? this.#writtenBytes : null;
    this.#options.emit({ kind: "write", stream: this.stream, bytes, mark });
  }

  /** Closes with this reason after the peer had time to read what was written. */
  #part(problem: string): void {
    this.close(this.#now);
    this.#reportEnd(problem);
  }

  #end(problem: string | null): void {
    if (this.#state === "over") return;
    this.#options.emit({ kind: "destroy", stream: this.stream });
    this.#over(problem);
  }

  #over(problem: string | null): void {
    this.#state = "over";
    this.#reportEnd(problem);
  }

  #reportEnd(problem: string | null): void {
    if (this.#isEndReported) return;
    this.#isEndReported = true;
    this.#handlers.onEnd(this, problem);
  }
}
