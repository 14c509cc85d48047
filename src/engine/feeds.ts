/** The rows of a workflow's feeds on this core. Which row is next is leased, so that no two cores use one twice. */

import type { Random } from "../core/base/random.ts";
import type { Feed, RowSource } from "../workflow/feed.ts";
import { IndexLease, type LeaseRequester } from "./leases.ts";
import { feedLease } from "./messages.ts";

const LEASE_BLOCK_MAX = 256;
const LEASE_BLOCKS_PER_CORE = 20;

type RowTaken = { readonly row: unknown } | "wait" | "exhausted";

class OneFeed {
  readonly #rows: RowSource<unknown>;
  readonly #lease: IndexLease | null;

  constructor(rows: RowSource<unknown>, lease: IndexLease | null) {
    this.#rows = rows;
    this.#lease = lease;
  }

  prefetch(): void {
    this.#lease?.prefetch();
  }

  take(random: Random): RowTaken {
    if (this.#lease === null) return { row: this.#rows.row(random.below(this.#rows.length)) };
    const index = this.#lease.take();
    return typeof index === "number" ? { row: this.#rows.row(index) } : index;
  }

  granted(from: number, to: number, last: boolean): void {
    this.#lease?.granted(from, to, last);
  }
}

export class FeedSupply {
  readonly #feeds = new Map<string, OneFeed>();

  get size(): number {
    return this.#feeds.size;
  }

  /** Reads all feeds; throws with the file's name when one cannot be read. */
  static async load(
    feeds: ReadonlyMap<string, Feed<unknown>>,
    where: { readonly folder: string; readonly cores: number; readonly requester: LeaseRequester },
  ): Promise<FeedSupply> {
    const supply = new FeedSupply();
    for (const [name, feed] of feeds) {
      const rows = await feed.load(where.folder);
      const size = Math.ceil(Math.min(rows.length, 1e6) / (where.cores * LEASE_BLOCKS_PER_CORE));
      const block = Math.min(LEASE_BLOCK_MAX, Math.max(1, size));
      // The manager knows no files: the lease's name carries how many rows a "once" feed may give.
      const limit = feed.order === "once" ? rows.length : 0;
      const lease =
        feed.order === "random"
          ? null
          : new IndexLease(feedLease(`${name}:${limit}`), block, where.requester);
      supply.#feeds.set(name, new OneFeed(rows, lease));
    }
    return supply;
  }

  /** Asks for the first rows; a grant can only be heard once the execution stands. */
  prefetch(): void {
    for (const feed of this.#feeds.values()) feed.prefetch();
  }

  /** Takes the missing rows into `taken`; says whether all are there. */
  take(taken: Record<string, unknown>, random: Random): "ready" | "wait" | "exhausted" {
    for (const [name, feed] of this.#feeds) {
      if (name in taken) continue;
      const next = feed.take(random);
      if (next === "wait" || next === "exhausted") return next;
      taken[name] = next.row;
    }
    return "ready";
  }

  granted(lease: string, from: number, to: number, last: boolean): void {
    for (const [name, feed] of this.#feeds) {
      if (lease.startsWith(feedLease(`${name}:`))) feed.granted(from, to, last);
    }
  }
}
