/**
 * One secured connection: bytes → frames → guard → chunks → messages, and back. Which side dialled
 * makes no difference after the greeting. Everything that can stall has a deadline.
 */

import { ChunkReader, toChunks } from "../wire/chunk.ts";
import { type Claims, readClaims } from "../wire/claims.ts";
import { FrameReader, frame, PROBE_ANSWER } from "../wire/frame.ts";
import type { Hello } from "../wire/hello.ts";
import { FRAME_BYTES_MAX, GREETING_FRAME_BYTES_MAX, READ_STALL_MS_MAX } from "../wire/limits.ts";
import { type StreamEvent, StreamGuard, type StreamGuardOptions } from "../wire/stream-guard.ts";
import type { ByteStream } from "./ports/byte-stream.ts";
import type { Compressor } from "./ports/compressor.ts";

/** From the first byte to the end of the greeting. */
const GREETING_MS_MAX = 5_000;
/** A stranger is told nothing, not even that it is one; whoever has the wrong secret sees only this. */
const NO_ANSWER =
  "closed without an answer to our greeting: most likely it has another secret, cluster or environment";
/** How long the other side may take to close after we have. */
const LINGER_MS = 1_000;
/** A peer that does not take what we answer is cut off when this much waits for it. */
const BACKLOG_BYTES_MAX = 64 * 1_048_576;

interface ConnectionOptions {
  readonly stream: ByteStream;
  readonly guard: Omit<StreamGuardOptions, "claims">;
  readonly compressor: Compressor;
  readonly onReady: (peer: Hello) => void;
  readonly onMessage: (message: Uint8Array, peer: Hello) => void;
  /** Called once; null when the end was orderly. */
  readonly onEnd: (problem: string | null) => void;
}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #guard: StreamGuard;
  readonly #frames = new FrameReader(GREETING_FRAME_BYTES_MAX);
  readonly #chunks: ChunkReader;
  #deadline: NodeJS.Timeout;
  #peer: Hello | null = null;
  #compress = false;
  #transfers = 0;
  #ended = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { stream, guard, compressor } = options;
    const claims = claimsOf(stream);
    this.#chunks = new ChunkReader(compressor);
    this.#guard = new StreamGuard({ ...guard, claims: typeof claims === "string" ? null : claims });
    this.#deadline = setTimeout(() => this.#end("no greeting in time"), GREETING_MS_MAX);
    stream.onClose(() => this.#end(this.#awaitsAnswer() ? NO_ANSWER : null));
    if (typeof claims === "string") {
      this.#end(`the peer's certificate: ${claims}`);
      return;
    }
    stream.onData((bytes) => this.#onData(bytes));
    if (guard.side === "client") stream.write(frame(this.#guard.greet()));
  }

  /** Sent and not yet taken by the network. */
  get backlogBytes(): number {
    return this.#options.stream.backlogBytes;
  }

  send(message: Uint8Array): void {
    if (this.#ended) return;
    const { stream, compressor } = this.#options;
    const chunked = toChunks(message, this.#compress ? compressor : null, this.#transfers++);
    if (!chunked.ok) {
      this.#end(chunked.problem);
      return;
    }
    for (const chunk of chunked.chunks) stream.write(frame(this.#guard.seal(chunk)));
    // A connection that only ever sends is not a silent one.
    this.#deadline.refresh();
    if (stream.backlogBytes > BACKLOG_BYTES_MAX) this.#end("the peer does not read");
  }

  /** Sends what was written, then ends. */
  close(): void {
    if (this.#ended) return;
    this.#options.stream.end();
  }

  /** Ends now, for this reason. */
  destroy(problem: string): void {
    this.#end(problem);
  }

  #onData(bytes: Uint8Array): void {
    for (const event of this.#frames.push(bytes)) {
      if (this.#ended) return;
      if (event.kind === "frame") this.#onGuarded(this.#guard.push(event.payload));
      else if (event.kind === "probe") this.#options.stream.write(PROBE_ANSWER);
      else this.#end(event.problem);
    }
    // A stall inside a frame or transfer is timed by READ_STALL_MS_MAX, and so is silence between them.
    if (this.#guard.ready && !this.#ended) this.#deadline.refresh();
  }

  #onGuarded(event: StreamEvent): void {
    switch (event.kind) {
      case "data":
        this.#onChunk(event.plain);
        return;
      case "ready":
        if (event.reply !== null) this.#options.stream.write(frame(event.reply));
        this.#options.stream.prove();
        this.#peer = event.peer;
        this.#frames.allow(FRAME_BYTES_MAX);
        this.#compress = event.features.includes("compression");
        this.#extendDeadline();
        this.#options.onReady(event.peer);
        return;
      case "refused":
        if (event.reply !== null) this.#options.stream.write(frame(event.reply));
        this.#end(event.problem, event.reply !== null);
        return;
    }
  }

  #onChunk(chunk: Uint8Array): void {
    const received = this.#chunks.push(chunk);
    if (received.kind === "refused") this.#end(received.problem);
    if (received.kind !== "message" || this.#peer === null) return;
    this.#options.onMessage(received.bytes, this.#peer);
  }

  #awaitsAnswer(): boolean {
    return this.#options.guard.side === "client" && !this.#guard.ready;
  }

  #extendDeadline(): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#end("silent for too long"), READ_STALL_MS_MAX);
  }

  /** `lingering`: a refusal was written, which the peer should get to read. */
  #end(problem: string | null, lingering = false): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#deadline);
    const { stream } = this.#options;
    if (lingering) {
      stream.end();
      setTimeout(() => stream.destroy(), LINGER_MS).unref();
    } else {
      stream.destroy();
    }
    this.#options.onEnd(problem);
  }
}

/** The peer's claims, null without mutual TLS, or what is wrong with them. */
function claimsOf(stream: ByteStream): Claims | null | string {
  if (stream.peerUris === null) return null;
  const read = readClaims(stream.peerUris);
  return read.ok ? read.claims : read.problem;
}
