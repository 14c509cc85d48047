/**
 * Runs the ledger node: inputs are taken as they come, and once per turn of the event loop everything
 * they brought about is carried out together. So one turn's work shares one message per peer and one
 * batch of the log.
 *
 * One timer stands for the node's next deadline. When it fires, one poll phase passes first: what lies
 * in the sockets may be the very word whose absence the deadline would judge. (host/loop.ts)
 */

import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { LedgerEffect, LedgerInput } from "../core/ledger/node/types.ts";
import type { Clock } from "../host/ports/clock.ts";

export interface DriverHandlers {
  readonly run: (effect: LedgerEffect) => void;
  /** After a turn's effects. */
  readonly onTurn: () => void;
  /** A broken invariant: the process must end. */
  readonly onDefect: (error: unknown) => void;
}

export class Driver {
  readonly node: LedgerNode;
  readonly #clock: Clock;
  readonly #handlers: DriverHandlers;
  #scheduled = false;
  #stopped = false;
  #timer: NodeJS.Timeout | null = null;
  #armedFor = Number.POSITIVE_INFINITY;
  #lagMaxMs = 0;
  #turns = 0;

  constructor(node: LedgerNode, clock: Clock, handlers: DriverHandlers) {
    this.node = node;
    this.#clock = clock;
    this.#handlers = handlers;
  }

  get turns(): number {
    return this.#turns;
  }

  /** How late the latest of all timers was since the last question. */
  takeLagMs(): number {
    const lag = this.#lagMaxMs;
    this.#lagMaxMs = 0;
    return lag;
  }

  take(input: LedgerInput): void {
    if (this.#stopped) return;
    try {
      this.node.take(input, this.#clock.now(), this.#clock.wall());
    } catch (error) {
      this.#defect(error);
      return;
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.flush());
  }

  /** Carries out what is waiting, now. */
  flush(): void {
    this.#scheduled = false;
    if (this.#stopped) return;
    try {
      for (const effect of this.node.flush()) this.#handlers.run(effect);
      this.#turns++;
      this.#handlers.onTurn();
    } catch (error) {
      this.#defect(error);
      return;
    }
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #defect(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#handlers.onDefect(error);
  }

  /** Re-arms only when the deadline has come nearer: a timer that fires too early looks again. */
  #arm(): void {
    if (this.#stopped) return;
    const deadline = this.node.nextDeadline() ?? Number.POSITIVE_INFINITY;
    if (deadline >= this.#armedFor) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#armedFor = deadline;
    const delayMs = Math.max(0, Math.ceil(deadline - this.#clock.now()));
    this.#timer = setTimeout(() => this.#fired(), delayMs);
  }

  #fired(): void {
    this.#timer = null;
    this.#lagMaxMs = Math.max(this.#lagMaxMs, this.#clock.now() - this.#armedFor);
    setImmediate(() =>
      setImmediate(() => {
        this.#armedFor = Number.POSITIVE_INFINITY;
        if (this.#stopped) return;
        if ((this.node.nextDeadline() ?? Number.POSITIVE_INFINITY) <= this.#clock.now()) {
          this.take({ kind: "tick" });
        }
        this.#arm();
      }),
    );
  }
}
