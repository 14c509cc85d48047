/** Work of a frozen core: it is queued, in order with the commands that arrive. */

import type { World } from "../kernel/world.ts";

/** Interval at which a frozen core checks whether it may continue. */
const LOOK_MS = 1_000;

interface FreezerOptions {
  readonly world: World;
  readonly index: number;
  readonly frozenUntil: () => number;
}

export class Freezer {
  readonly #options: FreezerOptions;
  readonly #told: (() => void)[] = [];
  /** The process has terminated: queued work is dropped. */
  isOver = false;

  constructor(options: FreezerOptions) {
    this.#options = options;
  }

  after(delayMs: number, run: () => void): void {
    const { frozenUntil, index, world } = this.#options;
    world.schedule(world.now + delayMs, "step", index, () => {
      if (this.isOver) return;
      // Healing may end it early.
      const frozenMs = Math.min(frozenUntil() - world.now, LOOK_MS);
      if (frozenMs > 0) this.after(frozenMs, run);
      else run();
    });
  }

  told(run: () => void): void {
    if (this.isOver) return;
    const isFrozen = this.#options.frozenUntil() > this.#options.world.now;
    if (!isFrozen && this.#told.length === 0) run();
    else if (this.#told.push(run) === 1) this.after(0, () => this.#thaw());
  }

  #thaw(): void {
    for (const run of this.#told.splice(0)) if (!this.isOver) run();
  }
}
