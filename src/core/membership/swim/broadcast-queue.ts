/**
 * Updates waiting to ride on packets. Each is sent a bounded number of times, then dropped.
 *
 * Order inside a packet: JOIN, LEAVE, ALIVE, SUSPECT, DEAD (UDP-2); within a kind the least sent first, then the
 * largest, then the newest. Three guards prevent starvation: news about ourselves boards first (R4: behind a flood of
 * joins a refutation would come after the burial), one slot goes to the longest-waiting accusation (UDP-5), and user
 * gossip keeps a quarter of the bytes.
 *
 * Newer news about a member replaces older news, so the queue is bounded by the members; a cap protects it against
 * floods of names.
 */

import { assert } from "../../base/assert.ts";
import type { Update } from "./messages.ts";

export const QUEUE_LENGTH_MAX = 4_096;
/** Share of a packet's bytes that user gossip may always have. */
const USER_SHARE = 0.25;

interface Item {
  readonly key: string;
  readonly update: Update;
  readonly bytes: number;
  readonly lane: number;
  readonly order: number;
  sends: number;
  queued: boolean;
  /** The packet that it was last put into, so that none carries it twice. */
  packet: number;
}

/** Lane per kind, in order of priority. */
const LANES: Readonly<Record<Update["kind"], number>> = {
  join: 0,
  left: 1,
  alive: 2,
  suspect: 3,
  dead: 4,
  user: 5,
};
const LANE_COUNT = 6;
const LANE_SUSPECT = 3;
const LANE_USER = 5;

interface TakeOptions {
  readonly budgetBytes: number;
  readonly overheadBytes: number;
  readonly sendsMax: number;
  readonly updatesMax: number;
  /** Whether the receiver has ever been reached; otherwise the riders do not count as sent. */
  readonly counted: boolean;
}

/** One packet being filled. */
interface Load {
  readonly packet: number;
  readonly chosen: Item[];
  readonly options: TakeOptions;
  left: number;
}

export class BroadcastQueue {
  readonly #bytesOf: (update: Update) => number;
  readonly #ownKey: string | null;
  readonly #items = new Map<string, Item>();
  /** lanes[kind][sends]: items sent that many times; entries that left the queue are skipped lazily. */
  readonly #lanes: Item[][][] = Array.from({ length: LANE_COUNT }, () => []);
  #order = 0;
  #packets = 0;
  #dropped = 0;

  /** `ownKey` is the id of the member whose queue this is. */
  constructor(bytesOf: (update: Update) => number, ownKey: string | null = null) {
    this.#bytesOf = bytesOf;
    this.#ownKey = ownKey;
  }

  get length(): number {
    return this.#items.size;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Returns true if the queue was full and an old update was dropped. */
  push(update: Update): boolean {
    const key = keyOf(update);
    const known = this.#items.get(key);
    if (known !== undefined) known.queued = false;
    const item: Item = {
      key,
      update,
      bytes: this.#bytesOf(update),
      lane: LANES[update.kind],
      order: this.#order++,
      sends: 0,
      queued: true,
      packet: 0,
    };
    // Re-insertion keeps the map in order of age, which pruning relies on.
    this.#items.delete(key);
    this.#items.set(key, item);
    this.#file(item);
    if (this.#items.size <= QUEUE_LENGTH_MAX) return false;
    this.prune(QUEUE_LENGTH_MAX);
    return true;
  }

  forget(key: string): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    item.queued = false;
    this.#items.delete(key);
  }

  /** Keeps the newest. */
  prune(keep: number): void {
    for (const item of this.#items.values()) {
      if (this.#items.size <= keep) return;
      item.queued = false;
      this.#items.delete(item.key);
      this.#dropped++;
    }
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  /** Takes the riders of one packet; each counts as sent once more, if the packet counts. */
  take(options: TakeOptions): Update[] {
    if (this.#items.size === 0) return [];
    const load: Load = {
      packet: ++this.#packets,
      chosen: [],
      left: options.budgetBytes,
      options,
    };
    const own = this.#ownKey === null ? undefined : this.#items.get(this.#ownKey);
    if (own !== undefined) board(load, own);
    const accusation = this.#oldestAccusation();
    if (accusation !== undefined) board(load, accusation);
    const forMembers = options.budgetBytes * (1 - USER_SHARE);
    this.#fill(load, LANE_USER, LANE_COUNT, forMembers);
    this.#fill(load, 0, LANE_USER, 0);
    // User gossip also gets the bytes that membership left over.
    this.#fill(load, LANE_USER, LANE_COUNT, 0);
    if (options.counted) for (const item of load.chosen) this.#countSend(item, options.sendsMax);
    return load.chosen.map((item) => item.update);
  }

  /** Fills from a range of lanes, in order, as long as more than `keepBytes` stay free. */
  #fill(load: Load, laneFrom: number, laneTo: number, keepBytes: number): void {
    for (let lane = laneFrom; lane < laneTo; lane++) {
      const buckets = this.#lanes[lane] as Item[][];
      for (let sends = 0; sends < buckets.length; sends++) {
        const bucket = buckets[sends] as Item[];
        if (bucket.length === 0) continue;
        tidyBucket(bucket, sends);
        for (const item of bucket) {
          if (load.left - item.bytes >= keepBytes) board(load, item);
        }
      }
    }
  }

  #countSend(item: Item, sendsMax: number): void {
    assert(this.#items.get(item.key) === item, "only queued updates are sent");
    item.sends++;
    if (item.sends >= sendsMax) this.forget(item.key);
    else this.#file(item);
  }

  /** The least sent accusation, then the longest waiting. */
  #oldestAccusation(): Item | undefined {
    let oldest: Item | undefined;
    for (let lane = LANE_SUSPECT; lane < LANE_USER; lane++) {
      const buckets = this.#lanes[lane] as Item[][];
      for (let sends = 0; sends < buckets.length; sends++) {
        if (oldest !== undefined && oldest.sends < sends) break;
        for (const item of buckets[sends] as Item[]) {
          if (!item.queued || item.sends !== sends) continue;
          const older = oldest === undefined || item.sends < oldest.sends;
          if (older || item.order < (oldest?.order ?? 0)) oldest = item;
        }
      }
    }
    return oldest;
  }

  #file(item: Item): void {
    const lane = this.#lanes[item.lane] as Item[][];
    while (lane.length <= item.sends) lane.push([]);
    lane[item.sends]?.push(item);
  }
}

function board(load: Load, item: Item): void {
  const { overheadBytes, updatesMax } = load.options;
  const bytes = item.bytes + overheadBytes;
  if (!item.queued || item.packet === load.packet) return;
  if (bytes > load.left || load.chosen.length >= updatesMax) return;
  item.packet = load.packet;
  load.left -= bytes;
  load.chosen.push(item);
}

/** Drops what left the queue or moved on, and sorts the rest: largest first, then newest. */
function tidyBucket(bucket: Item[], sends: number): void {
  let kept = 0;
  for (const item of bucket) if (item.queued && item.sends === sends) bucket[kept++] = item;
  bucket.length = kept;
  if (kept > 1) bucket.sort((a, b) => b.bytes - a.bytes || b.order - a.order);
}

/** Membership news is keyed by the member it is about; user gossip by its own identity. */
export function keyOf(update: Update): string {
  switch (update.kind) {
    case "join":
    case "alive":
      return update.node.id;
    case "user":
      return `user/${update.origin}/${update.boot}/${update.sequence}`;
    default:
      return update.id;
  }
}

/** How many times one update is sent: rumours need log n rounds, small clusters a floor. */
export function retransmitLimit(mult: number, memberCount: number, floor: number): number {
  return Math.max(floor, mult * Math.ceil(Math.log10(memberCount + 1)));
}
