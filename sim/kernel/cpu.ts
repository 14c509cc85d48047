/**
 * The single core of a simulated process: every input costs time, and later inputs wait. As in a real event loop,
 * connections take turns: one that sends without end delays the others by its turn, not for ever.
 */

import type { World } from "./world.ts";

/** Inputs of one connection per turn: about what one read of a socket returns. */
const TURN_INPUTS_MAX = 64;

export class Cpu {
  readonly #world: World;
  readonly #index: number;
  /** Cost of one input. */
  costMs: number;
  /** By connection, in the order of their turns. */
  readonly #queues = new Map<number, (() => void)[]>();
  #turnInputs = 0;
  #isBusy = false;
  #busyMs = 0;
  #measuredAt = 0;
  /** Increases when the process ends: work in progress is void. */
  #lives = 0;

  constructor(world: World, index: number, costMs: number) {
    this.#world = world;
    this.#index = index;
    this.costMs = costMs;
  }

  /** Runs when earlier inputs of its connection are done and its connection has its turn. */
  run(connection: number, run: () => void): void {
    const queue = this.#queues.get(connection) ?? [];
    queue.push(run);
    this.#queues.set(connection, queue);
    if (!this.#isBusy) this.#next();
  }

  /** Inputs not processed yet. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Drops unread inputs of a terminated process. */
  clear(): void {
    this.#queues.clear();
    this.#lives++;
  }

  /** Values since the last call, as `PressureMeter` measures them on a real process. */
  take(): { readonly lagMs: number; readonly cpu: number } {
    const { now } = this.#world;
    const elapsedMs = Math.max(1, now - this.#measuredAt);
    const cpu = Math.min(1, this.#busyMs / elapsedMs);
    this.#busyMs = 0;
    this.#measuredAt = now;
    // A timer waits for one turn of every connection.
    const turnInputs = [...this.#queues.values()].reduce(
      (sum, { length }) => sum + Math.min(length, TURN_INPUTS_MAX),
      0,
    );
    return { lagMs: turnInputs * this.costMs, cpu };
  }

  #next(): void {
    const first = this.#queues.entries().next().value;
    if (first === undefined) return;
    const [connection, queue] = first;
    const next = queue.shift();
    if (queue.length === 0 || ++this.#turnInputs >= TURN_INPUTS_MAX) {
      this.#queues.delete(connection);
      if (queue.length > 0) this.#queues.set(connection, queue);
      this.#turnInputs = 0;
    }
    this.#isBusy = true;
    const { costMs } = this;
    const life = this.#lives;
    this.#world.schedule(this.#world.now + costMs, "step", this.#index, () => {
      this.#busyMs += costMs;
      this.#isBusy = false;
      if (this.#lives === life) next?.();
      if (!this.#isBusy) this.#next();
    });
  }
}

/** Runs at once where inputs are free. */
export function compute(cpu: Cpu | null | undefined, connection: number, run: () => void): void {
  if (cpu == null) run();
  else cpu.run(connection, run);
}
