/** The ledger node in the loop: what one turn of the event loop brings shares one message per peer and one write. */

import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { LedgerEffect, LedgerInput } from "../core/ledger/node/types.ts";
import { type BatchDriven, type BatchRun, Loop } from "../host/loop.ts";
import type { Clock } from "../host/ports/clock.ts";

interface DriverHandlers extends BatchRun<LedgerEffect> {
  /** A broken invariant: the process must end. */
  readonly onDefect: (error: unknown) => void;
}

export class Driver {
  readonly node: LedgerNode;
  readonly loop: Loop;
  readonly #driven: BatchDriven<LedgerInput>;
  turns = 0;

  constructor(node: LedgerNode, clock: Clock, { run, onTurn, onDefect }: DriverHandlers) {
    this.node = node;
    this.loop = new Loop(clock, onDefect);
    const count = (): void => {
      this.turns++;
      onTurn();
    };
    this.#driven = this.loop.addBatched(node, { kind: "tick" }, { run, onTurn: count });
  }

  take(input: LedgerInput): void {
    this.#driven.push(input);
  }

  /** Carries out what is waiting, now. */
  flush(): void {
    this.#driven.flush();
  }

  stop(): void {
    this.loop.stop();
  }
}
