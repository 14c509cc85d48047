/**
 * Rows of a workflow's feeds on this core. Rows that may repeat are computed here, without a message
 * (`core/load/plan/row-cycle.ts`). Rows that no two cores may share are leased ahead: those of order "once", and those
 * that `feed.generate` derives from their number.
 */

import type { Random } from "../core/base/random.ts";
import { feedLease, ITERATIONS_LEASE } from "../core/load/job/core-messages.ts";
import type { Share } from "../core/load/plan/load.ts";
import { RowCycle } from "../core/load/plan/row-cycle.ts";
import type { Feed, RowSource } from "../workflow/feed.ts";
import { blockSizes, IndexLease, type LeaseRequester } from "./leases.ts";
import { ShuffledRows } from "./shuffled-rows.ts";

const ROW_BLOCK_FIRST_MAX = 256;

/** No row: not now, never for this user, never for any user. */
type NoRow = "wait" | "beyond" | "exhausted";
type RowTaken = { readonly row: unknown } | NoRow;

interface FeedSetting {
  readonly feed: Feed<unknown>;
  readonly rows: RowSource<unknown>;
  /** Lease of rows that no two cores may share… */
  readonly lease: IndexLease | null;
  /** …or cycle of rows that may repeat. */
  readonly cycle: RowCycle | null;
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

  /** `ticket`: the number of the iteration over all cores, where there is one. */
  take(user: number, random: Random, ticket: number | null): RowTaken {
    const { cycle, feed, lease, rows } = this.#set;
    if (feed.order === "random") return { row: rows.row(random.below(rows.length)) };
    if (feed.perUser) {
      if (feed.order === "once" && user >= rows.length) return "beyond";
      return { row: this.#row(user) };
    }
    if (cycle !== null) return { row: this.#repeating(cycle, ticket) };
    const index = lease?.take() ?? "exhausted";
    return typeof index === "number" ? { row: this.#row(index) } : index;
  }

  #repeating(cycle: RowCycle, ticket: number | null): unknown {
    if (ticket !== null) return this.#row(ticket);
    const number = cycle.next();
    return this.#set.shuffled === null
      ? this.#set.rows.row(cycle.rowAt(number))
      : this.#row(number);
  }

  #row(index: number): unknown {
    const { rows, shuffled } = this.#set;
    return rows.row(shuffled === null ? index : shuffled.at(index));
  }

  granted(from: number, to: number, last: boolean): void {
    this.#set.lease?.granted(from, to, last);
  }
}

/** User that receives rows: see `user.ts`. */
interface FedUser {
  readonly id: number;
  readonly ticket: number | null;
  rows: Record<string, unknown> | null;
  ownRows: Readonly<Record<string, unknown>> | null;
  readonly context: { data: Readonly<Record<string, unknown>> };
}

interface FeedsPlace {
  readonly folder: string;
  readonly share: Share;
  /** Seed of shuffled feeds; the same on all cores. */
  readonly seed: string;
  readonly requester: LeaseRequester;
  /** Prefix of lease names, where several flows may have feeds of one name; else "". */
  readonly owner: string;
  /** Iterations end the load: requests rows only for iterations expected here. */
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
      const isExclusive = feed.order === "once" || rows.length === Number.POSITIVE_INFINITY;
      const lease = isExclusive && !feed.perUser ? leaseOf(name, feed, rows.length, where) : null;
      const cycle = isExclusive ? null : new RowCycle(rows.length, where.share);
      const shuffled = feed.shuffle ? new ShuffledRows(rows.length, `${where.seed}/${name}`) : null;
      supply.#feeds.set(name, new OneFeed({ feed, rows, lease, cycle, shuffled }));
    }
    return supply;
  }

  /** Requests the first rows; a grant can only be received once the execution exists. */
  prefetch(): void {
    for (const feed of this.#feeds.values()) feed.prefetch();
  }

  /** Announces further iterations on this core. */
  expect(iterations: number): void {
    for (const feed of this.#feeds.values()) feed.expect(iterations);
  }

  /** Takes the rows of a user's next iteration; says whether all are available. */
  takeFor(user: FedUser, random: Random): "ready" | NoRow {
    user.rows ??= { ...user.ownRows };
    const taken = this.take(user.rows, user.id, random, user.ticket);
    if (taken !== "ready") return taken;
    user.ownRows ??= this.#ofUser(user.rows);
    user.context.data = Object.freeze(user.rows);
    user.rows = null;
    return "ready";
  }

  /** Rows that stay with the user, out of those of an iteration. */
  #ofUser(taken: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const own = [...this.#feeds].filter(([, feed]) => feed.perUser).map(([name]) => name);
    return Object.fromEntries(own.map((name) => [name, taken[name]]));
  }

  /** Takes the missing rows of a user into `taken`; says whether all are available. */
  take(
    taken: Record<string, unknown>,
    user: number,
    random: Random,
    ticket: number | null,
  ): "ready" | NoRow {
    for (const [name, feed] of this.#feeds) {
      if (name in taken) continue;
      const next = feed.take(user, random, ticket);
      if (typeof next === "string") return next;
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

function leaseOf(
  name: string,
  { order }: Feed<unknown>,
  rows: number,
  { counted, owner, requester, share }: FeedsPlace,
): IndexLease {
  const isOnce = order === "once";
  // The manager knows no files: the lease's name carries how many rows a "once" feed may give.
  const leaseName = feedLease(`${owner}${name}:${isOnce ? rows : 0}`);
  const sizes = blockSizes(rows, share.count, ROW_BLOCK_FIRST_MAX);
  return new IndexLease(leaseName, sizes, requester, counted && isOnce ? 0 : undefined);
}
