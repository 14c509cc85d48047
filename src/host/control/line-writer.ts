/**
 * Writes lines to a reader or a file without ever waiting for them. Node writes to pipes synchronously, so a stalled
 * reader would stop the whole process, and a member that does not answer probes is declared dead because of a log.
 * (B-52f)
 *
 * Lines wait in a bounded buffer; when it is full, or the disk is, they are dropped and counted, and the count is
 * written in a line of its own once there is room again.
 */

import { write } from "node:fs";

const WAITING_BYTES_MAX = 4 * 1_048_576;
/** A non-blocking pipe returns EAGAIN when it is full. */
const RETRY_MS = 20;

/** Outcome of a write: all written; lost, but later ones may succeed; closed, no reader is left. */
export type Taken = "taken" | "lost" | "closed";

export interface ByteSink {
  /** Called again only after `done`. */
  write(bytes: Buffer, done: (outcome: Taken) => void): void;
}

/** An open file descriptor: stdout, stderr, a pipe. */
export class Descriptor implements ByteSink {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(bytes: Buffer, done: (outcome: Taken) => void): void {
    write(this.#fd, bytes, (error, written) => {
      if (error?.code === "EAGAIN") setTimeout(() => this.write(bytes, done), RETRY_MS).unref();
      // The reader is gone (EPIPE): events have no audience, the member continues.
      else if (error !== null) done("closed");
      else if (written < bytes.length) this.write(bytes.subarray(written), done);
      else done("taken");
    });
  }
}

export class LineWriter {
  readonly #sink: ByteSink;
  readonly #bytesMax: number;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #busy = false;
  #closed = false;
  #droppedReported = 0;
  dropped = 0;

  constructor(sink: ByteSink, bytesMax = WAITING_BYTES_MAX) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
  }

  /** `line` ends with a line break. */
  write(line: string): void {
    if (this.#closed || this.#waitingBytes + line.length > this.#bytesMax) {
      this.dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (!this.#busy) this.#next();
  }

  /** Resolves when everything has been written, or after `msMax` with a stalled reader. */
  async drained(msMax: number): Promise<void> {
    const deadline = performance.now() + msMax;
    while (this.#busy && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  #next(): void {
    const lines = this.#waiting;
    const dropped = this.dropped;
    const count = dropped - this.#droppedReported;
    this.#busy = lines.length > 0;
    if (lines.length === 0) return;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const note = count > 0 ? `${JSON.stringify({ event: "lines-dropped", count })}\n` : "";
    this.#sink.write(Buffer.from(note + lines.join("")), (outcome) => {
      if (outcome === "taken") this.#droppedReported = dropped;
      if (outcome === "lost") this.dropped += lines.length;
      if (outcome === "closed") {
        this.#closed = true;
        this.#waiting = [];
      }
      this.#next();
    });
  }
}
