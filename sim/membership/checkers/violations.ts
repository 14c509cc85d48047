/** The first broken invariant ends a run; its id is the one the protocol pages use. */

import type { World } from "../../kernel/world.ts";

export interface Violation {
  readonly id: string;
  readonly text: string;
  readonly at: number;
}

export class Violations {
  readonly #world: World;
  first: Violation | null = null;

  constructor(world: World) {
    this.#world = world;
  }

  check(holds: boolean, id: string, text: () => string): void {
    if (!holds) this.report(id, text());
  }

  report(id: string, text: string): void {
    if (this.first !== null) return;
    this.first = { id, text, at: this.#world.now };
    this.#world.note(`VIOLATION ${id}: ${text}`);
  }
}
