/**
 * The driver: the only place with a run loop. It takes inputs, steps machines, runs their effects in
 * order, and keeps one timer for the earliest deadline of them all.
 *
 * When the timer fires, one poll phase passes before any machine hears of it: after a stall inside the
 * check phase libuv runs expired timers before it reads the sockets, so a machine would judge a probe
 * while its ack lies in the buffer (measured: 30 of 30 trials; with two immediates 0 of 30).
 *
 * An effect that must be durable before anything else leaves returns a promise; the machine's later
 * effects wait for it, its inputs do not. If it fails the process must end: nobody knows what is on disk.
 */

import type { Millis } from "../core/base/brand.ts";
import type { Clock } from "./ports/clock.ts";

export interface Machine<Input, Effect> {
  step(input: Input, now: Millis): readonly Effect[];
  nextDeadline(): Millis | null;
}

interface Seat {
  deadline(): Millis | null;
  tick(): void;
}

/** One machine in the loop. */
export interface Driven<Input> {
  push(input: Input): void;
}

export class Loop {
  readonly #clock: Clock;
  readonly #onDefect: (error: unknown) => void;
  readonly #seats: Seat[] = [];
  #timer: NodeJS.Timeout | null = null;
  #armedFor = Number.POSITIVE_INFINITY;
  #stopped = false;
  #lagMs = 0;
  #lagMaxMs = 0;

  /** `onDefect` hears of a failed durable effect or a broken invariant; the process should end. */
  constructor(clock: Clock, onDefect: (error: unknown) => void) {
    this.#clock = clock;
    this.#onDefect = onDefect;
  }

  /** How late the last timer was, and the latest ever. */
  get lag(): { readonly lastMs: number; readonly maxMs: number } {
    return { lastMs: this.#lagMs, maxMs: this.#lagMaxMs };
  }

  add<Input, Effect>(
    machine: Machine<Input, Effect>,
    tick: Input,
    run: (effect: Effect) => Promise<void> | undefined,
  ): Driven<Input> {
    const inputs: Input[] = [];
    const effects: Effect[] = [];
    let stepping = false;
    let waiting = false;

    const runEffects = (): void => {
      while (!waiting && effects.length > 0) {
        const durable = run(effects.shift() as Effect);
        if (durable === undefined) continue;
        waiting = true;
        durable.then(
          () => {
            waiting = false;
            drain();
          },
          (error: unknown) => this.#defect(error),
        );
      }
    };
    // An effect may bring a new input at once (a refused send); it queues behind, never nests.
    const drain = (): void => {
      if (stepping) return;
      stepping = true;
      try {
        for (;;) {
          runEffects();
          const input = inputs.shift();
          if (input === undefined) break;
          effects.push(...machine.step(input, this.#clock.now()));
        }
      } catch (error) {
        this.#defect(error);
      }
      stepping = false;
      this.#arm();
    };
    const push = (input: Input): void => {
      if (this.#stopped) return;
      inputs.push(input);
      drain();
    };
    this.#seats.push({ deadline: () => machine.nextDeadline(), tick: () => push(tick) });
    return { push };
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Nothing runs after one. A write that a stop has cut off is none. */
  #defect(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#onDefect(error);
  }

  /** Re-arms only when the earliest deadline moved forward: most packets leave the timer alone. */
  #arm(): void {
    if (this.#stopped) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const seat of this.#seats) earliest = Math.min(earliest, seat.deadline() ?? earliest);
    if (earliest >= this.#armedFor) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#armedFor = earliest;
    const delayMs = Math.max(0, Math.ceil(earliest - this.#clock.now()));
    this.#timer = setTimeout(() => this.#fired(), delayMs);
  }

  #fired(): void {
    this.#timer = null;
    this.#lagMs = Math.max(0, this.#clock.now() - this.#armedFor);
    this.#lagMaxMs = Math.max(this.#lagMaxMs, this.#lagMs);
    setImmediate(() =>
      setImmediate(() => {
        this.#armedFor = Number.POSITIVE_INFINITY;
        if (this.#stopped) return;
        const now = this.#clock.now();
        for (const seat of this.#seats) if ((seat.deadline() ?? now + 1) <= now) seat.tick();
        this.#arm();
      }),
    );
  }
}
