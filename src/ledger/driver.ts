/**
 * The ledger's machine in the loop, over real streams: what one turn of the event loop brings shares one
 * message per peer and one write.
 */

import type { LinkEffect } from "../core/tiers/link/types.ts";
import type { LedgerMachine } from "../core/tiers/process/ledger-machine.ts";
import type { ProcessEffect, ProcessInput } from "../core/tiers/process/types.ts";
import { type BatchDriven, Loop } from "../host/loop.ts";
import type { ByteStreamPort } from "../host/ports/byte-stream.ts";
import type { Clock } from "../host/ports/clock.ts";
import { StreamDriver } from "../host/stream-driver.ts";

interface DriverHandlers {
  /** What is not the network's. */
  readonly run: (effect: Exclude<ProcessEffect, LinkEffect>) => void;
  /** After a turn's effects. */
  readonly onTurn: () => void;
  /** A broken invariant: the process must end. */
  readonly onDefect: (error: unknown) => void;
}

export class Driver {
  readonly machine: LedgerMachine;
  readonly loop: Loop;
  readonly #driven: BatchDriven<ProcessInput>;
  turns = 0;

  constructor(
    machine: LedgerMachine,
    clock: Clock,
    port: ByteStreamPort,
    { run, onTurn, onDefect }: DriverHandlers,
  ) {
    this.machine = machine;
    this.loop = new Loop(clock, onDefect);
    const streams = new StreamDriver(port, (input) => this.take(input));
    this.#driven = this.loop.addBatched(
      machine,
      { kind: "tick" },
      {
        run: (effect) => {
          switch (effect.kind) {
            case "dial":
            case "write":
            case "prove":
            case "end":
            case "destroy":
              streams.run(effect);
              return;
            default:
              run(effect);
          }
        },
        onTurn: () => {
          this.turns++;
          onTurn();
        },
      },
    );
  }

  take(input: ProcessInput): void {
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
