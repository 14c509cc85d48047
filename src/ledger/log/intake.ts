/**
 * The way into the writer's queue. Entries that find it full stand in line, in order, until there is
 * room. (CW-5, SW-7)
 */

import type { WalWriter } from "../../core/ledger/log/writer.ts";
import type { AppendRefusal, WalEntry } from "../../core/ledger/log/writer-types.ts";
import { monotonicNow } from "./engine.ts";
import { WalError } from "./errors.ts";
import type { Waiter, Waiters } from "./waiters.ts";

/** The line is bounded too, in both; beyond it even waiting is refused. */
const LINE_ENTRIES_MAX = 100_000;
const LINE_BYTES_MAX = 268_435_456;
const SHIFT_MIN = 1_024;

interface InLine {
  readonly entry: WalEntry;
  readonly waiter: Waiter;
}

export class Intake {
  readonly #writer: WalWriter;
  readonly #waiters: Waiters;
  #line: InLine[] = [];
  #head = 0;
  /** Payload bytes in line. */
  #bytes = 0;
  /** How many have passed the line. */
  #admitted = 0;
  #then: { readonly after: number; readonly then: () => void }[] = [];

  constructor(writer: WalWriter, waiters: Waiters) {
    this.#writer = writer;
    this.#waiters = waiters;
  }

  get waiting(): number {
    return this.#line.length - this.#head;
  }

  /** The reason when the entry was not taken and will not be. */
  enter(entry: WalEntry, waiter: Waiter): WalError | null {
    if (this.waiting === 0) {
      const refusal = this.#offer(entry, waiter);
      if (refusal !== "QUEUE_FULL") return refusal === null ? null : this.#error(refusal, entry);
    }
    if (this.waiting >= LINE_ENTRIES_MAX || this.#bytes >= LINE_BYTES_MAX) {
      return new WalError("QUEUE_FULL", "the log's queue is full; nothing was written");
    }
    this.#line.push({ entry, waiter });
    this.#bytes += entry.payload.length;
    return null;
  }

  /** Lets in as many as there is room for. */
  admit(): void {
    while (this.#admitNext());
    // A line that never empties must not keep what has passed.
    if (this.#head >= SHIFT_MIN && this.#head * 2 >= this.#line.length) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    const ready = this.#then.filter(({ after }) => after <= this.#admitted);
    if (ready.length === 0) return;
    this.#then = this.#then.filter(({ after }) => after > this.#admitted);
    for (const { then } of ready) then();
  }

  /** False: the line is empty, or the queue is full. */
  #admitNext(): boolean {
    const next = this.#line[this.#head];
    if (next === undefined) return false;
    const refusal = this.#offer(next.entry, next.waiter);
    if (refusal === "QUEUE_FULL") return false;
    this.#head++;
    this.#admitted++;
    this.#bytes -= next.entry.payload.length;
    if (refusal !== null) rejectWaiter(next.waiter, this.#error(refusal, next.entry));
    return true;
  }

  /** Calls back once all that stand in line now have passed, however many come after them. */
  whenAdmitted(then: () => void): void {
    if (this.waiting === 0) then();
    else this.#then.push({ after: this.#admitted + this.waiting, then });
  }

  refuseAll(error: WalError): void {
    for (const { waiter } of this.#line.slice(this.#head)) rejectWaiter(waiter, error);
    this.#line = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#then = [];
  }

  #offer(entry: WalEntry, waiter: Waiter): AppendRefusal | null {
    const ticket = this.#writer.append(entry, monotonicNow());
    if (typeof ticket !== "number") return ticket;
    this.#waiters.push(waiter);
    return null;
  }

  #error(refusal: AppendRefusal, entry: WalEntry): WalError {
    if (refusal === "TOO_LARGE") {
      const most = this.#writer.payloadBytesMax;
      return new WalError(
        "TOO_LARGE",
        `an entry of ${entry.payload.length} bytes; at most ${most} fit`,
      );
    }
    if (refusal === "UNKNOWN_TYPE") {
      return new WalError("WAL_UNKNOWN_TYPE", `${entry.type} is no type of a record`);
    }
    return new WalError("SHUTDOWN", "the log is closed");
  }
}

function rejectWaiter(waiter: Waiter, error: WalError): void {
  if (typeof waiter !== "number") waiter.reject(error);
}
