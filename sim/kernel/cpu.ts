/**
 * The one core that a simulated process has: every input costs time, and what comes meanwhile waits. As in a real
 * event loop, connections take turns: one that sends without end delays the others by its turn, not for ever.
 */

import type { World } from "./world.ts";

/** Inputs of one connection in its turn: about what one read of a socket holds. */
const TURN_INPUTS_MAX = 64;

export class Cpu {
  readonly #world: World;
  readonly #index: number;
  /** Of one input. */
  costMs: number;
  /** By connection, in the order of their turns. */
  readonly #queues = new Map<number, (() => void)[]>();
  #turnInputs = 0;
  #isBusy = false;
  #busyMs = 0;
  #measuredAt = 0;
  /** Rises when the process ends: what its core was at is void. */
  #lives = 0;

  constructor(world: World, index: number, costMs: number) {
    this.#world = world;
    this.#index = index;
    this.costMs = costMs;
  }

  /** Carried out when those before it in its connection are, and it is the turn of its connection. */
  run(connection: number, run: () => void): void {
    const queue = this.#queues.get(connection) ?? [];
    queue.push(run);
    this.#queues.set(connection, queue);
    if (!this.#isBusy) this.#next();
  }

  /** Inputs that it has not come to. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** The process is gone, and what it has not read with it. */
  clear(): void {
    this.#queues.clear();
    this.#lives++;
  }

  /** Since the last time: what `PressureMeter` measures of a real process. */
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

/** At once where nothing costs time. */
export function compute(cpu: Cpu | null | undefined, connection: number, run: () => void): void {
  if (cpu == null) run();
  else cpu.run(connection, run);
}
