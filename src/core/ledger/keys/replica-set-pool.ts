/** Replica sets, each stored once and counted: thousands of jobs share the few sets a cluster has. */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";

interface Pooled {
  readonly text: string;
  readonly nodes: readonly NodeId[];
  holders: number;
}

export class ReplicaSetPool {
  readonly #ids = new Map<string, number>();
  readonly #sets: (Pooled | null)[] = [];
  readonly #free: number[] = [];

  /** The set's number, with one more holder. */
  take(nodes: readonly NodeId[]): number {
    // Names cannot hold what JSON escapes, in a way that two lists would share a text.
    const text = JSON.stringify(nodes);
    const known = this.#ids.get(text);
    const pooled = known === undefined ? null : (this.#sets[known] ?? null);
    if (known !== undefined && pooled !== null) {
      pooled.holders++;
      return known;
    }
    const id = this.#free.pop() ?? this.#sets.length;
    this.#sets[id] = { text, nodes: [...nodes], holders: 1 };
    this.#ids.set(text, id);
    return id;
  }

  get(id: number): readonly NodeId[] {
    const pooled = this.#sets[id] ?? null;
    assert(pooled !== null, "a replica set in use is in the pool");
    return pooled.nodes;
  }

  release(id: number): void {
    const pooled = this.#sets[id] ?? null;
    assert(pooled !== null && pooled.holders > 0, "a released replica set was held");
    if (--pooled.holders > 0) return;
    this.#ids.delete(pooled.text);
    this.#sets[id] = null;
    this.#free.push(id);
  }
}
