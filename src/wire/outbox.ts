/**
 * What waits to be sent: one bounded queue per destination, so that a slow peer delays nobody else, and
 * a sender learns at once how full it is. (AD-32, OUT-1..8)
 *
 *     fill of the primary   state       advice to the sender
 *     below 70 %            healthy     go on
 *     70 to 85 %            throttled   wait 50 ms
 *     85 to 95 %            batching    wait 200 ms, send in batches
 *     from 95 %             overflow    wait 300 ms; new entries go to a ring that drops its oldest, lowest
 *     the ring is full      saturated   wait 500 ms; low priority is refused
 *
 * Critical entries have a lane of their own, first out and never counted against the others; it is as
 * long as the primary, and losing one of them is an error worth waking somebody for. Within a class the
 * order is kept. Whatever is displaced or evicted is handed back, never lost in silence. (OUT-4)
 */

import { assert } from "../core/base/assert.ts";
import { PRIORITIES, type Priority } from "./registry.ts";

export interface OutboxConfig {
  readonly primaryMax: number;
  readonly ringMax: number;
  readonly destinationsMax: number;
  readonly throttleFill: number;
  readonly batchFill: number;
  readonly overflowFill: number;
}

export const OUTBOX_DEFAULTS: OutboxConfig = {
  primaryMax: 500,
  ringMax: 100,
  destinationsMax: 1_000,
  throttleFill: 0.7,
  batchFill: 0.85,
  overflowFill: 0.95,
};

export type OutboxState = "healthy" | "throttled" | "batching" | "overflow" | "saturated";

/** What the sender should wait before the next entry; rises with the fill. (C20-11) */
export const OUTBOX_DELAY_MS: Readonly<Record<OutboxState, number>> = {
  healthy: 0,
  throttled: 50,
  batching: 200,
  overflow: 300,
  saturated: 500,
};

export interface Enqueued<Item> {
  readonly accepted: boolean;
  readonly state: OutboxState;
  readonly delayMs: number;
  /** Entries that will not be sent after all: displaced from the ring, or of an evicted destination. */
  readonly dropped: readonly Item[];
}

interface Entry<Item> {
  readonly priority: Priority;
  readonly item: Item;
}

interface Queue<Item> {
  readonly lanes: Record<Priority, Item[]>;
  ring: Entry<Item>[];
  enqueued: number;
  dropped: number;
}

export interface OutboxStats {
  readonly waiting: number;
  readonly ring: number;
  readonly state: OutboxState;
  readonly enqueued: number;
  readonly dropped: number;
}

export class Outbox<Item> {
  readonly #config: OutboxConfig;
  /** Least recently used first. */
  readonly #queues = new Map<string, Queue<Item>>();

  constructor(config: OutboxConfig = OUTBOX_DEFAULTS) {
    const { throttleFill, batchFill, overflowFill } = config;
    assert(throttleFill < batchFill && batchFill < overflowFill, "fills rise");
    this.#config = config;
  }

  get destinations(): number {
    return this.#queues.size;
  }

  enqueue(destination: string, item: Item, priority: Priority): Enqueued<Item> {
    const dropped: Item[] = [];
    const queue = this.#queueOf(destination, dropped);
    const accepted =
      priority === "critical"
        ? this.#addCritical(queue, item, dropped)
        : this.#add(queue, item, priority, dropped);
    if (accepted) queue.enqueued++;
    const state = this.#stateOf(queue);
    return { accepted, state, delayMs: OUTBOX_DELAY_MS[state], dropped };
  }

  /** The next entry to send there, the most urgent first. */
  next(destination: string): Item | undefined {
    const queue = this.#queues.get(destination);
    if (queue === undefined) return undefined;
    for (const priority of PRIORITIES) {
      const item = queue.lanes[priority].shift();
      if (item === undefined) continue;
      this.#promote(queue);
      return item;
    }
    return undefined;
  }

  /** The destination is given up; what waited for it. */
  remove(destination: string): readonly Item[] {
    const queue = this.#queues.get(destination);
    this.#queues.delete(destination);
    return queue === undefined ? [] : entriesOf(queue);
  }

  stats(destination: string): OutboxStats | null {
    const queue = this.#queues.get(destination);
    if (queue === undefined) return null;
    return {
      waiting: this.#primarySize(queue) + queue.lanes.critical.length,
      ring: queue.ring.length,
      state: this.#stateOf(queue),
      enqueued: queue.enqueued,
      dropped: queue.dropped,
    };
  }

  #addCritical(queue: Queue<Item>, item: Item, dropped: Item[]): boolean {
    const lane = queue.lanes.critical;
    lane.push(item);
    if (lane.length > this.#config.primaryMax) this.#drop(queue, lane.shift() as Item, dropped);
    return true;
  }

  #add(queue: Queue<Item>, item: Item, priority: Priority, dropped: Item[]): boolean {
    const { primaryMax, overflowFill, ringMax } = this.#config;
    if (queue.ring.length === 0 && this.#primarySize(queue) < primaryMax * overflowFill) {
      queue.lanes[priority].push(item);
      return true;
    }
    if (queue.ring.length < ringMax) {
      queue.ring.push({ priority, item });
      return true;
    }
    if (priority === "low") {
      queue.dropped++;
      return false;
    }
    const victim = oldestLowest(queue.ring);
    const held = queue.ring[victim] as Entry<Item>;
    // Nobody gives way to somebody less urgent.
    if (PRIORITIES.indexOf(held.priority) < PRIORITIES.indexOf(priority)) {
      queue.dropped++;
      return false;
    }
    queue.ring.splice(victim, 1);
    queue.ring.push({ priority, item });
    this.#drop(queue, held.item, dropped);
    return true;
  }

  /** The ring empties into the primary as soon as there is room. */
  #promote(queue: Queue<Item>): void {
    const room = this.#config.primaryMax * this.#config.overflowFill;
    while (queue.ring.length > 0 && this.#primarySize(queue) < room) {
      const { priority, item } = queue.ring.shift() as Entry<Item>;
      queue.lanes[priority].push(item);
    }
  }

  #queueOf(destination: string, dropped: Item[]): Queue<Item> {
    const held = this.#queues.get(destination);
    if (held !== undefined) {
      this.#queues.delete(destination);
      this.#queues.set(destination, held);
      return held;
    }
    const lanes = { critical: [], high: [], normal: [], low: [] };
    const queue: Queue<Item> = { lanes, ring: [], enqueued: 0, dropped: 0 };
    this.#queues.set(destination, queue);
    if (this.#queues.size > this.#config.destinationsMax) dropped.push(...this.#evict(destination));
    return queue;
  }

  /** An empty queue first, else the least recently used; its entries are handed back. (OUT-4) */
  #evict(except: string): readonly Item[] {
    let oldest: string | null = null;
    for (const [destination, queue] of this.#queues) {
      if (destination === except) continue;
      oldest ??= destination;
      if (entriesOf(queue).length > 0) continue;
      oldest = destination;
      break;
    }
    return oldest === null ? [] : this.remove(oldest);
  }

  #drop(queue: Queue<Item>, item: Item, dropped: Item[]): void {
    queue.dropped++;
    dropped.push(item);
  }

  #primarySize({ lanes }: Queue<Item>): number {
    return lanes.high.length + lanes.normal.length + lanes.low.length;
  }

  #stateOf(queue: Queue<Item>): OutboxState {
    const { primaryMax, ringMax, throttleFill, batchFill, overflowFill } = this.#config;
    const fill = this.#primarySize(queue) / primaryMax;
    if (queue.ring.length >= ringMax) return "saturated";
    if (queue.ring.length > 0 || fill >= overflowFill) return "overflow";
    if (fill >= batchFill) return "batching";
    return fill >= throttleFill ? "throttled" : "healthy";
  }
}

function oldestLowest<Item>(ring: readonly Entry<Item>[]): number {
  let place = 0;
  ring.forEach(({ priority }, at) => {
    const lowest = ring[place]?.priority ?? "critical";
    if (PRIORITIES.indexOf(priority) > PRIORITIES.indexOf(lowest)) place = at;
  });
  return place;
}

function entriesOf<Item>({ lanes, ring }: Queue<Item>): readonly Item[] {
  return [...PRIORITIES.flatMap((priority) => lanes[priority]), ...ring.map(({ item }) => item)];
}
