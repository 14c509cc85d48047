/**
 * \n One turn of the event loop, in three phases: all received responses are read, then they are processed, then the
 * resulting requests are written.
 *
 *   poll    read, read, read …            the kernel's reading, and the heads of the responses
 *   check   finish, finish, finish …      counting, functions and flows, the next requests
 *           write, write, write …         the kernel's writing
 *
 * Handling one connection after the other would be simpler, but costs a fifth more: each phase has more code and data
 * than the processor's nearest caches, and would find them cold every time.
 *
 * A response is timestamped when it is read, and the time of a request that waits to be written counts for its call, so
 * measurements hide nothing of this. Requests that start at another time, for example by a timer, are written at once.
 * So is everything where few responses arrive in one turn.
 */

import { setImmediate } from "./timers.ts";

export interface Deferred {
  /** Called in its phase of the turn. */
  resume(): void;
}

/** With fewer responses in one turn, phases cost more than they save. */
const ANSWERS_MIN = 4;
/** Number of such turns in a row that disable phases; a busy core has one now and then. */
const SMALL_TURNS_MAX = 4;
/** Responses processed at once before phases are tried again. */
const TRIED_AGAIN_AFTER = 64;

export class Turn {
  /** Responses are being read; their processing waits. */
  reading = false;
  /** Responses are being read or processed; requests wait to be written. */
  holdsWrites = false;
  #answers = 0;
  #smallTurns = 0;
  /** Responses still to be processed at once. */
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

  /** Bytes of a response have arrived. */
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
    // Promises that were fulfilled in the first callback continue before the second.
    setImmediate(this.#finish);
    setImmediate(this.#write);
  }

  /** Only while `reading`. */
  finishLater(exchange: Deferred): void {
    this.#finishing.add(exchange);
  }

  /** Only while `holdsWrites`. */
  writeLater(connection: Deferred): void {
    this.#writing.add(connection);
  }
}

/** Contains at most one entry per open connection. */
export class DeferredList {
  /** Reused and never shortened, which would release its memory every time. */
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
      // Run the rest later if one of them threw.
      if (this.#count > 0) setImmediate(() => this.run());
    }
  }
}

export const turn = new Turn();
