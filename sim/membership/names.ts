/** The name server of a world: current addresses behind the members' common name. */

import type { Address } from "../../src/core/base/ids.ts";
import { address } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";

/** `whole` lists all members, `part` a few, `stale` mostly members that left long ago; `failing` has no answer. */
export type NamesMode = "whole" | "part" | "stale" | "failing";

export const MEMBERS_NAME = "members.sim";
const PART = 2;
const STRANGERS = 4;
const TTL_MS = 5_000;

export class Names {
  readonly #members: readonly Address[];
  readonly #random: Random;
  mode: NamesMode = "whole";

  constructor(members: readonly Address[], random: Random) {
    this.#members = members;
    this.#random = random;
  }

  /** Null when there is no answer. */
  resolve(): { readonly addresses: readonly Address[]; readonly ttlMs: number | null } | null {
    const random = this.#random;
    const some = random.shuffle([...this.#members]).slice(0, PART);
    const ttlMs = random.chance(0.5) ? TTL_MS : null;
    switch (this.mode) {
      case "whole":
        return { addresses: this.#members, ttlMs };
      case "part":
        return { addresses: some, ttlMs };
      case "stale": {
        const strangers = Array.from({ length: STRANGERS }, (_, i) => address(`10.8.0.${i}:7946`));
        return { addresses: [...strangers, ...some.slice(1)], ttlMs };
      }
      case "failing":
        return null;
    }
  }

  drawDelayMs(): number {
    return this.#random.float() * 50;
  }
}
