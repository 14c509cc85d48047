/**
 * One turn of the event loop, in three parts: all answers that have come are read, then what follows
 * from them is done, then the requests that this led to are written.
 *
 *   poll    read, read, read …            the kernel's reading, and the heads of the answers
 *   check   finish, finish, finish …      counting, functions and flows, the next requests
 *           write, write, write …         the kernel's writing
 *
 * One after the other for each connection would be simpler, and costs a fifth more: each part is more
 * code and data than the caches next to the processor hold, and would find them cold every time.
 *
 * An answer's time is taken when it is read, and the time of a request that waits to be written passes
 * for its call: nothing of this is hidden from what is measured. Requests that are begun at another
 * time, by a timer say, are written at once. So is everything where few answers come in one turn.
 */

import { setImmediate } from "./timers.ts";

export interface Deferred {
  /** Its part of the turn has come. */
  resume(): void;
}

/** With fewer answers in one turn there is more to lose than to win. */
const ANSWERS_MIN = 4;
/** Such turns in a row: a busy core has one now and then. */
const SMALL_TURNS_MAX = 4;
/** Answers that are then dealt with at once, before it is tried again. */
const TRIED_AGAIN_AFTER = 64;

export class Turn {
  /** Answers are being read: whatever follows from them waits. */
  reading = false;
  /** They are being read, or what follows from them is done: requests wait to be written. */
  holdsWrites = false;
  #answers = 0;
  #smallTurns = 0;
  /** Answers that are still to be dealt with at once. */
  #atOnce = 0;
  readonly #finishing = new DeferredList();
  readonly #writing = new DeferredList();
  readonly #finish = (): void => {
    this.reading = false;
    this.#finishing.run();
  };
  readonly #write = (): void => {
    this.holdsWrites = false;
    this.#judge();
    this.#writing.run();
  };

  #judge(): void {
    if (this.#answers >= ANSWERS_MIN) this.#smallTurns = 0;
    else if (++this.#smallTurns === SMALL_TURNS_MAX) {
      this.#smallTurns = 0;
      this.#atOnce = TRIED_AGAIN_AFTER;
    }
  }

  /** Bytes of an answer have come. */
  answered(): void {
    if (this.holdsWrites) {
      this.#answers++;
      return;
    }
    if (this.#atOnce > 0) {
      this.#atOnce--;
      return;
    }
    this.reading = true;
    this.holdsWrites = true;
    this.#answers = 1;
    // Promises that were fulfilled in the first are gone on with before the second.
    setImmediate(this.#finish);
    setImmediate(this.#write);
  }

  /** Only while `reading`. */
  finishLater(exchange: Deferred): void {
    this.#finishing.add(exchange);
  }

  /** Only while it `holdsWrites`. */
  writeLater(connection: Deferred): void {
    this.#writing.add(connection);
  }
}

/** Holds one entry at most for each connection that is open. */
export class DeferredList {
  /** Used again, and never shortened: that would give its memory back every time. */
  readonly #items: (Deferred | null)[] = [];
  #count = 0;
  #next = 0;

  add(item: Deferred): void {
    this.#items[this.#count++] = item;
  }

  run(): void {
    try {
      while (this.#next < this.#count) {
        const item = this.#items[this.#next] as Deferred;
        this.#items[this.#next++] = null;
        item.resume();
      }
      this.#next = 0;
      this.#count = 0;
    } finally {
      // One of them threw, which is its own affair.
      if (this.#count > 0) setImmediate(() => this.run());
    }
  }
}

export const turn = new Turn();
