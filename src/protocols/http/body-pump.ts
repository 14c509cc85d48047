/**
 * Sends a body while it is read: one piece at a time, and the next only when the connection has accepted the last. A
 * slow server costs time, not memory.
 */

import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { setImmediate } from "../net/timers.ts";
import type { BodySource } from "./body-source.ts";

/** Destination of the pieces: a socket, or an HTTP/2 stream. */
export interface PumpTarget {
  /** Returns false when its buffer is full; `drain` signals when it accepts more. */
  write(piece: Uint8Array | string): boolean;
  cork(): void;
  uncork(): void;
  on(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** Receives the progress, and exactly one outcome unless the pump is stopped. */
interface PumpOwner {
  /** Number of bytes handed to the connection. */
  bodyPiece(bytes: number): void;
  bodySent(now: number): void;
  /** The source could not be read, or did not match its declared length. */
  bodyFailed(problem: string, now: number): void;
}

const CHUNK_END = "\r\n";
const LAST_CHUNK = "0\r\n\r\n";

export class BodyPump {
  readonly #source: BodySource;
  readonly #target: PumpTarget;
  /** HTTP/1.1 without a length: each piece is sent as a chunk (RFC 9112 §7.1). */
  readonly #chunked: boolean;
  readonly #owner: PumpOwner;
  #stopped = false;
  #iterator: AsyncIterator<Uint8Array> | null = null;
  #resume: (() => void) | null = null;

  constructor(source: BodySource, target: PumpTarget, chunked: boolean, owner: PumpOwner) {
    this.#source = source;
    this.#target = target;
    this.#chunked = chunked;
    this.#owner = owner;
    void this.#run();
  }

  /** Stops writing and reporting, and releases the source. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#resume?.();
    this.#letGo();
  }

  #letGo(): void {
    const iterator = this.#iterator;
    this.#iterator = null;
    // Errors while closing an abandoned source are ignored.
    iterator?.return?.()?.catch(() => undefined);
  }

  async #run(): Promise<void> {
    try {
      await this.#sendAll();
      if (!this.#stopped) this.#end(() => this.#owner.bodySent(clock()));
    } catch (error) {
      this.#letGo();
      // In a separate turn, so that a loop of calls that fail at once does not block the event loop.
      setImmediate(() => this.#end(() => this.#owner.bodyFailed(errorText(error), clock())));
    }
  }

  #end(report: () => void): void {
    if (this.#stopped) return;
    this.#stopped = true;
    report();
  }

  async #sendAll(): Promise<void> {
    const { length } = this.#source;
    const iterator = this.#source.read()[Symbol.asyncIterator]();
    this.#iterator = iterator;
    let sent = 0;
    for (;;) {
      const next = await iterator.next();
      if (this.#stopped) return;
      if (next.done === true) break;
      const piece = next.value;
      if (piece.length === 0) continue;
      sent += piece.length;
      if (length !== null && sent > length) throw new Error(notAsLong(length, "longer"));
      if (!this.#write(piece)) await this.#drained();
      if (this.#stopped) return;
    }
    this.#iterator = null;
    if (length !== null && sent < length) throw new Error(notAsLong(length, "shorter"));
    if (this.#chunked) this.#target.write(LAST_CHUNK);
    if (this.#chunked) this.#owner.bodyPiece(LAST_CHUNK.length);
  }

  /** Returns false when the connection's buffer is full. */
  #write(piece: Uint8Array): boolean {
    if (!this.#chunked) {
      this.#owner.bodyPiece(piece.length);
      return this.#target.write(piece);
    }
    const head = `${piece.length.toString(16)}\r\n`;
    this.#owner.bodyPiece(head.length + piece.length + CHUNK_END.length);
    this.#target.cork();
    this.#target.write(head);
    this.#target.write(piece);
    const more = this.#target.write(CHUNK_END);
    this.#target.uncork();
    return more;
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const resume = (): void => {
        this.#resume = null;
        this.#target.off("drain", resume);
        resolve();
      };
      this.#resume = resume;
      this.#target.on("drain", resume);
    });
  }
}

function notAsLong(length: number, how: string): string {
  return `the body turned out ${how} than the ${length} bytes it began with: did the file change?`;
}
