/**
 * Runs the ledger's machine, alone or below another one, in the event loop, over real streams and files. Inputs of one
 * turn of the event loop share one message per peer and one write. Completed disk operations are handled at once, and
 * the disk gets its next operation at once: otherwise it would idle until the turn ends.
 */

import type { LinkEffect } from "../core/cluster/link/types.ts";
import type { GateProcessEffect, GateProcessInput } from "../core/cluster/node/gate-process.ts";
import type { FileEffect, FileResult } from "../core/ledger/log/files.ts";
import { type BatchDriven, type BatchMachine, Loop } from "../host/loop.ts";
import type { ByteStreamPort } from "../host/ports/byte-stream.ts";
import type { Clock } from "../host/ports/clock.ts";
import { StreamDriver } from "../host/stream-driver.ts";

/** A ledger's machine, or one that contains it. */
export interface DrivenMachine extends BatchMachine<GateProcessInput, GateProcessEffect> {
  /** Work on files waits for a turn. */
  readonly wantsTurn: boolean;
  /** File operations that need not wait for the end of the turn. */
  takeFiles(): readonly FileEffect[];
}

/** Effects that concern neither the network nor the disk. */
export type HostEffect = Exclude<GateProcessEffect, LinkEffect | FileEffect>;

interface DriverHandlers {
  readonly run: (effect: HostEffect) => void;
  readonly runFile: (effect: FileEffect, done: (result: FileResult) => void) => void;
  /** A broken invariant: the process must end. */
  readonly onDefect: (error: unknown) => void;
}

/** So long may work on files go on in one turn of the event loop, a slice at a time. */
const TURN_MS_MAX = 5;

export class Driver {
  readonly #machine: DrivenMachine;
  readonly loop: Loop;
  readonly #driven: BatchDriven<GateProcessInput>;
  readonly #handlers: DriverHandlers;
  readonly #streams: StreamDriver;
  #turnDue = false;
  #stopped = false;
  turns = 0;

  constructor(
    machine: DrivenMachine,
    clock: Clock,
    port: ByteStreamPort,
    handlers: DriverHandlers,
  ) {
    this.#machine = machine;
    this.#handlers = handlers;
    this.loop = new Loop(clock, handlers.onDefect);
    this.#streams = new StreamDriver(port, (input) => this.take(input));
    this.#driven = this.loop.addBatched(
      machine,
      { kind: "tick" },
      {
        run: (effect) => this.#run(effect),
        onTurn: () => {
          this.turns++;
          this.#scheduleTurn();
        },
      },
    );
  }

  take(input: GateProcessInput): void {
    this.#driven.push(input);
  }

  /** Carries out what is waiting, now. */
  flush(): void {
    this.#driven.flush();
  }

  stop(): void {
    this.#stopped = true;
    this.loop.stop();
  }

  #run(effect: GateProcessEffect): void {
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        this.#streams.run(effect);
        return;
      case "file":
        this.#runFile(effect);
        return;
      default:
        this.#handlers.run(effect);
    }
  }

  #runFile(effect: FileEffect): void {
    const { id } = effect;
    this.#handlers.runFile(effect, (result) => {
      if (!this.#stopped) this.#step({ kind: "done", id, result });
    });
  }

  #step(input: GateProcessInput): void {
    this.#driven.push(input);
    for (const next of this.#machine.takeFiles()) this.#runFile(next);
  }

  #scheduleTurn(): void {
    if (this.#turnDue || !this.#machine.wantsTurn) return;
    this.#turnDue = true;
    setImmediate(() => {
      const until = performance.now() + TURN_MS_MAX;
      while (this.#machine.wantsTurn && !this.#stopped) {
        this.#step({ kind: "turn" });
        if (performance.now() >= until) break;
      }
      this.#turnDue = false;
      if (!this.#stopped) this.#scheduleTurn();
    });
  }
}
