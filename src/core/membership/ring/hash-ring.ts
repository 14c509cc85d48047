/**
 * Consistent hashing: the owner of a key, and its successors. Each node has many points on a circle of 2^32 positions;
 * a key belongs to the first point strictly after its own position. Adding or removing one of N nodes moves about 1/N
 * of the keys, and none between two unaffected nodes. (RING-1..6)
 *
 * The hash is the first four bytes of SHA-256, so that every process, version and language agrees. The ring depends on
 * the set of nodes only: a contested point goes to the smaller id.
 */

import { assert } from "../../base/assert.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import { sha256 } from "../../base/sha256.ts";

const VIRTUAL_NODES = 150;
const RING_NODES_MAX = 4_096;

export class HashRing {
  readonly #virtualNodes: number;
  readonly #nodes = new Set<string>();
  /** Sorted; the two arrays go together. */
  #positions: number[] = [];
  #owners: string[] = [];

  constructor(nodes: Iterable<string> = [], virtualNodes = VIRTUAL_NODES) {
    assert(virtualNodes >= 1, "a node has at least one place");
    this.#virtualNodes = virtualNodes;
    for (const node of nodes) this.#nodes.add(node);
    this.#rebuild();
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** False when it was there already. */
  add(node: string): boolean {
    if (this.#nodes.has(node)) return false;
    assert(this.#nodes.size < RING_NODES_MAX, "the ring is within its bound");
    this.#nodes.add(node);
    this.#rebuild();
    return true;
  }

  remove(node: string): boolean {
    if (!this.#nodes.delete(node)) return false;
    this.#rebuild();
    return true;
  }

  /** Null when the ring is empty: there is no node to ask. (RING-3) */
  owner(key: string): string | null {
    return this.successors(key, 1)[0] ?? null;
  }

  /** Up to `count` distinct nodes, the owner first, in the order in which they would take over. (RING-2) */
  successors(key: string, count: number): string[] {
    const found: string[] = [];
    const wanted = Math.min(count, this.#nodes.size);
    const start = this.#after(ringHash(key));
    for (let i = 0; found.length < wanted && i < this.#owners.length; i++) {
      const node = this.#owners[(start + i) % this.#owners.length] as string;
      if (!found.includes(node)) found.push(node);
    }
    return found;
  }

  /** Index of the first place strictly after a position; past the last, the first. */
  #after(position: number): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#positions[middle] ?? 0) > position) high = middle;
      else low = middle + 1;
    }
    return low === this.#positions.length ? 0 : low;
  }

  #rebuild(): void {
    const places = new Map<number, string>();
    for (const node of this.#nodes) {
      for (let i = 0; i < this.#virtualNodes; i++) {
        const position = ringHash(`${node}:${i}`);
        const holder = places.get(position);
        if (holder === undefined || node < holder) places.set(position, node);
      }
    }
    const sorted = [...places].sort(([a], [b]) => a - b);
    this.#positions = sorted.map(([position]) => position);
    this.#owners = sorted.map(([, node]) => node);
  }
}

/** Position of a text on the circle. */
export function ringHash(text: string): number {
  const digest = sha256(encodeUtf8(text));
  return new DataView(digest.buffer).getUint32(0);
}
