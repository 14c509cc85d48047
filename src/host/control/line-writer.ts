/**
 * Lines to a file descriptor without ever waiting for its reader. Node writes to pipes synchronously, so a
 * reader that has stopped reading would stop the whole process, and a member that does not answer probes
 * is declared dead for the sake of a log. (B-52f)
 *
 * Lines wait in a bounded buffer; when it is full they are dropped and counted, and the count is told in a
 * line of its own once there is room again.
 */

import { write } from "node:fs";

const WAITING_BYTES_MAX = 4 * 1_048_576;
/** A pipe set to non-blocking says EAGAIN when it is full. */
const RETRY_MS = 20;

export class LineWriter {
  readonly #fd: number;
  readonly #bytesMax: number;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #inHand: Buffer | null = null;
  #broken = false;
  #droppedTold = 0;
  dropped = 0;

  constructor(fd: number, bytesMax = WAITING_BYTES_MAX) {
    this.#fd = fd;
    this.#bytesMax = bytesMax;
  }

  /** `line` ends with a line break. */
  write(line: string): void {
    if (this.#broken || this.#waitingBytes + line.length > this.#bytesMax) {
      this.dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (this.#inHand === null) this.#next();
  }

  /** Resolves when everything has been taken, or after `msMax` with a reader that takes nothing. */
  async drained(msMax: number): Promise<void> {
    const deadline = performance.now() + msMax;
    while (this.#inHand !== null && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  #next(): void {
    if (this.dropped > this.#droppedTold) {
      const count = this.dropped - this.#droppedTold;
      this.#droppedTold = this.dropped;
      this.#waiting.push(`${JSON.stringify({ event: "lines-dropped", count })}\n`);
    }
    if (this.#waiting.length === 0) {
      this.#inHand = null;
      return;
    }
    const text = this.#waiting.join("");
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#put(Buffer.from(text));
  }

  #put(bytes: Buffer): void {
    this.#inHand = bytes;
    write(this.#fd, bytes, (error, written) => {
      if (error?.code === "EAGAIN") {
        setTimeout(() => this.#put(bytes), RETRY_MS).unref();
        return;
      }
      // The reader is gone (EPIPE): events have no audience, the member lives on.
      if (error !== null) {
        this.#broken = true;
        this.#inHand = null;
        this.#waiting = [];
        return;
      }
      if (written < bytes.length) this.#put(bytes.subarray(written));
      else this.#next();
    });
  }
}
