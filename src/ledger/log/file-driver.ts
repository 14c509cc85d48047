/**
 * Drives a machine with file work: its operations go to the disk, their results back to it, and one timer serves its
 * next deadline. Work that requests a turn continues in the next turn of the event loop, a few milliseconds at a time.
 */

import type { Millis } from "../../core/base/brand.ts";
import type { FileAnswer, FileEffect } from "../../core/ledger/log/files.ts";
import type { Clock } from "../../host/ports/clock.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import type { FileExecutor } from "./file-executor.ts";

type DriverInput = FileAnswer | { readonly kind: "turn" } | { readonly kind: "tick" };

interface FileMachine<Input, Event> {
  step(input: Input | DriverInput, now: Millis, wall: number): readonly (FileEffect | Event)[];
  nextDeadline(): Millis | null;
  readonly wantsTurn: boolean;
}

/** So long may work go on in one turn of the event loop, a slice at a time. */
const TURN_MS_MAX = 5;

export class FileDriver<Input, Event extends { readonly kind: string }> {
  readonly #machine: FileMachine<Input, Event>;
  readonly #executor: FileExecutor;
  readonly #clock: Clock;
  readonly #onEvent: (event: Event) => void;
  #tickDue = false;
  #turnDue = false;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(
    machine: FileMachine<Input, Event>,
    executor: FileExecutor,
    clock: Clock,
    onEvent: (event: Event) => void,
  ) {
    this.#machine = machine;
    this.#executor = executor;
    this.#clock = clock;
    this.#onEvent = onEvent;
  }

  step(input: Input | DriverInput): void {
    const clock = this.#clock;
    for (const effect of this.#machine.step(input, clock.now(), clock.wall())) {
      if (isFileEffect(effect)) this.#carryOut(effect);
      else this.#onEvent(effect);
    }
    if (this.#machine.wantsTurn) this.#scheduleTurn();
    this.#arm();
  }

  /** A tick at the end of this turn of the event loop. */
  schedule(): void {
    if (this.#tickDue) return;
    this.#tickDue = true;
    setImmediate(() => {
      this.#tickDue = false;
      this.step({ kind: "tick" });
    });
  }

  /** The machine has ended: calls under way are waited for, and the files are closed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#executor.close();
  }

  #carryOut({ id, operation }: FileEffect): void {
    this.#executor.run(operation, (result) => {
      if (!this.#stopped) this.step({ kind: "done", id, result });
    });
  }

  #scheduleTurn(): void {
    if (this.#turnDue || this.#stopped) return;
    this.#turnDue = true;
    setImmediate(() => {
      const until = performance.now() + TURN_MS_MAX;
      while (this.#machine.wantsTurn && !this.#stopped) {
        this.step({ kind: "turn" });
        if (performance.now() >= until) break;
      }
      this.#turnDue = false;
      if (this.#machine.wantsTurn) this.#scheduleTurn();
    });
  }

  /** A timer that is armed too early only ticks for nothing. */
  #arm(): void {
    const deadline = this.#machine.nextDeadline();
    if (this.#stopped || deadline === null) return;
    if (this.#timer !== null && this.#timerAt <= deadline) return;
    this.#timer?.cancel();
    this.#timerAt = deadline;
    this.#timer = startTimer(Math.max(0, deadline - this.#clock.now()), () => {
      this.#timer = null;
      this.step({ kind: "tick" });
    });
  }
}

function isFileEffect(effect: { readonly kind: string }): effect is FileEffect {
  return effect.kind === "file";
}
