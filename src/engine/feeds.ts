/** The rows of a workflow's feeds on this core. Which row is next is leased, so that no two cores use one twice. */

import type { Random } from "../core/base/random.ts";
import { feedLease, ITERATIONS_LEASE } from "../core/run/job/core-messages.ts";
import type { Feed, RowSource } from "../workflow/feed.ts";
import { IndexLease, type LeaseRequester } from "./leases.ts";
import { ShuffledRows } from "./shuffled-rows.ts";

const LEASE_BLOCK_MAX = 256;
const LEASE_BLOCKS_PER_CORE = 20;

type RowTaken = { readonly row: unknown } | "wait" | "exhausted";

interface FeedSetting {
  readonly feed: Feed<unknown>;
  readonly rows: RowSource<unknown>;
  readonly lease: IndexLease | null;
  readonly shuffled: ShuffledRows | null;
}

class OneFeed {
  readonly #set: FeedSetting;

  constructor(setting: FeedSetting) {
    this.#set = setting;
  }

  get perUser(): boolean {
    return this.#set.feed.perUser;
  }

  prefetch(): void {
    this.#set.lease?.prefetch();
  }

  expect(iterations: number): void {
    this.#set.lease?.expect(iterations);
  }

  take(user: number, random: Random): RowTaken {
    const { feed, lease, rows } = this.#set;
    if (feed.order === "random") return { row: rows.row(random.below(rows.length)) };
    if (feed.perUser && feed.order === "once" && user >= rows.length) return "exhausted";
    const index = feed.perUser ? user : (lease?.take() ?? "exhausted");
    return typeof index === "number" ? { row: this.#row(index) } : index;
  }

  #row(index: number): unknown {
    const { rows, shuffled } = this.#set;
    return rows.row(shuffled === null ? index : shuffled.at(index));
  }

  granted(from: number, to: number, last: boolean): void {
    this.#set.lease?.granted(from, to, last);
  }
}

interface FeedsPlace {
  readonly folder: string;
  readonly cores: number;
  /** Of shuffled feeds; the same on all cores. */
  readonly seed: string;
  readonly requester: LeaseRequester;
  /** Before the names of leases, where several flows may have feeds of one name; else "". */
  readonly owner: string;
  /** Iterations end the load: no rows are asked for but those of iterations that are expected here. */
  readonly counted: boolean;
}

export class FeedSupply {
  readonly #feeds = new Map<string, OneFeed>();
  readonly #owner: string;

  constructor(owner: string) {
    this.#owner = owner;
  }

  get size(): number {
    return this.#feeds.size;
  }

  /** Reads all feeds; throws with the file's name when one cannot be read. */
  static async load(
    feeds: ReadonlyMap<string, Feed<unknown>>,
    where: FeedsPlace,
  ): Promise<FeedSupply> {
    const supply = new FeedSupply(where.owner);
    for (const [name, feed] of feeds) {
      const rows = await feed.load(where.folder);
      const size = Math.ceil(Math.min(rows.length, 1e6) / (where.cores * LEASE_BLOCKS_PER_CORE));
      const block = Math.min(LEASE_BLOCK_MAX, Math.max(1, size));
      // The manager knows no files: the lease's name carries how many rows a "once" feed may give.
      const limit = feed.order === "once" ? rows.length : 0;
      const expected = where.counted && limit > 0 ? 0 : undefined;
      const leaseName = feedLease(`${where.owner}${name}:${limit}`);
      const lease =
        feed.order === "random" || feed.perUser
          ? null
          : new IndexLease(leaseName, block, where.requester, expected);
      const shuffled = feed.shuffle ? new ShuffledRows(rows.length, `${where.seed}/${name}`) : null;
      supply.#feeds.set(name, new OneFeed({ feed, rows, lease, shuffled }));
    }
    return supply;
  }

  /** Asks for the first rows; a grant can only be heard once the execution stands. */
  prefetch(): void {
    for (const feed of this.#feeds.values()) feed.prefetch();
  }

  /** So many iterations more will begin on this core. */
  expect(iterations: number): void {
    for (const feed of this.#feeds.values()) feed.expect(iterations);
  }

  /** Rows that stay with the user, out of those of an iteration. */
  ofUser(taken: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const own = [...this.#feeds].filter(([, feed]) => feed.perUser).map(([name]) => name);
    return Object.fromEntries(own.map((name) => [name, taken[name]]));
  }

  /** Takes the missing rows of a user into `taken`; says whether all are there. */
  take(
    taken: Record<string, unknown>,
    user: number,
    random: Random,
  ): "ready" | "wait" | "exhausted" {
    for (const [name, feed] of this.#feeds) {
      if (name in taken) continue;
      const next = feed.take(user, random);
      if (next === "wait" || next === "exhausted") return next;
      taken[name] = next.row;
    }
    return "ready";
  }

  granted(lease: string, from: number, to: number, last: boolean): void {
    if (lease === ITERATIONS_LEASE) this.expect(to - from);
    for (const [name, feed] of this.#feeds) {
      if (lease.startsWith(feedLease(`${this.#owner}${name}:`))) feed.granted(from, to, last);
    }
  }
}
