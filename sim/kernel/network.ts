/**
 * The network, per directed link: latency (minimum plus an exponential tail), loss, duplication,
 * reordering, clogs, capacity, and cuts that may be one-way. All draws come from the network's own
 * randomness, so that a change elsewhere does not shift them.
 */

import type { Random } from "../../src/core/base/random.ts";

export interface LinkFaults {
  readonly latencyMinMs: number;
  readonly latencyMeanMs: number;
  readonly loss: number;
  readonly duplication: number;
  /** Chance of an extra delay that lets later packets overtake. */
  readonly reorder: number;
  readonly reorderMsMax: number;
  /** Chance that an old packet of the same link is repeated. */
  readonly replay: number;
  /** Chance that a bit of the packet flips. */
  readonly corruption: number;
  /** Bytes per millisecond of one link; 0: unlimited. */
  readonly capacity: number;
}

export const CALM_LINKS: LinkFaults = {
  latencyMinMs: 0.2,
  latencyMeanMs: 0.3,
  loss: 0,
  duplication: 0,
  reorder: 0,
  reorderMsMax: 0,
  replay: 0,
  corruption: 0,
  capacity: 0,
};

/** A link that is busy for longer than this drops packets. */
const BACKLOG_MS_MAX = 500;
const REPLAY_STORE = 8;

export class Network {
  readonly #random: Random;
  readonly #count: number;
  /** Number of cuts that cover each directed link. */
  #cuts = new Uint8Array(0);
  #cloggedUntil = new Float64Array(0);
  #busyUntil = new Float64Array(0);
  /** Extra inbound delay per node: it is slow, not silent. */
  readonly #inboundDelayMs: Float64Array;
  readonly #recorded = new Map<number, Uint8Array[]>();
  faults: LinkFaults = CALM_LINKS;

  /** Called when bytes pass from one node to another on a stream. */
  onStream: (from: number, to: number, bytes: number) => void = () => undefined;

  constructor(count: number, random: Random) {
    this.#random = random;
    this.#count = count;
    this.#inboundDelayMs = new Float64Array(count);
  }

  /** Per-link arrays exist only in worlds that use them: five thousand members have 25 million links. */
  #reserve(): void {
    if (this.#cuts.length > 0) return;
    const links = this.#count * this.#count;
    this.#cuts = new Uint8Array(links);
    this.#cloggedUntil = new Float64Array(links);
    this.#busyUntil = new Float64Array(links);
  }

  cut(from: number, to: number): void {
    this.#reserve();
    const link = from * this.#count + to;
    this.#cuts[link] = (this.#cuts[link] ?? 0) + 1;
  }

  mend(from: number, to: number): void {
    const link = from * this.#count + to;
    this.#cuts[link] = Math.max(0, (this.#cuts[link] ?? 0) - 1);
  }

  mendAll(): void {
    this.#cuts.fill(0);
    this.#cloggedUntil.fill(0);
    this.#inboundDelayMs.fill(0);
  }

  clog(from: number, to: number, until: number): void {
    this.#reserve();
    const link = from * this.#count + to;
    this.#cloggedUntil[link] = Math.max(this.#cloggedUntil[link] ?? 0, until);
  }

  slow(node: number, delayMsMax: number): void {
    this.#inboundDelayMs[node] = delayMsMax;
  }

  isCut(from: number, to: number): boolean {
    return (this.#cuts[from * this.#count + to] ?? 0) > 0;
  }

  isClogged(from: number, to: number, now: number): boolean {
    return (this.#cloggedUntil[from * this.#count + to] ?? 0) > now;
  }

  /** Arrival times of one datagram: none when lost, two when duplicated. */
  datagram(
    from: number,
    to: number,
    bytes: number,
    now: number,
    arrive: (at: number) => void,
  ): void {
    const { faults } = this;
    const random = this.#random;
    if (this.isCut(from, to)) return;
    if (faults.loss > 0 && random.chance(faults.loss)) return;
    const at = this.#arrival(from, to, bytes, now);
    if (at < 0) return;
    arrive(at);
    if (faults.duplication > 0 && random.chance(faults.duplication)) {
      arrive(at + random.float() * 20);
    }
  }

  /** One direction of a stream: reliable and ordered; null while the link is cut. */
  stream(from: number, to: number, bytes: number, now: number): number | null {
    if (this.isCut(from, to)) return null;
    this.onStream(from, to, bytes);
    // Losses cost retransmissions instead of data.
    let at = this.#arrival(from, to, bytes, now);
    if (at < 0) at = now + BACKLOG_MS_MAX;
    for (let i = 0; i < 6 && this.#random.chance(this.faults.loss); i++) at += 40 * 2 ** i;
    return at;
  }

  #arrival(from: number, to: number, bytes: number, now: number): number {
    const { faults } = this;
    const random = this.#random;
    const link = from * this.#count + to;
    let at = now + faults.latencyMinMs - Math.log(1 - random.float()) * faults.latencyMeanMs;
    if (faults.reorder > 0 && random.chance(faults.reorder)) {
      at += random.float() * faults.reorderMsMax;
    }
    const slowMs = this.#inboundDelayMs[to] ?? 0;
    if (slowMs > 0) at += random.float() * slowMs;
    const clogged = this.#cloggedUntil[link] ?? 0;
    if (clogged > at) at = clogged + random.float();
    if (faults.capacity > 0) {
      this.#reserve();
      const free = Math.max(now, this.#busyUntil[link] ?? 0);
      if (free - now > BACKLOG_MS_MAX) return -1;
      this.#busyUntil[link] = free + bytes / faults.capacity;
      at += free - now + bytes / faults.capacity;
    }
    return at;
  }

  /** Keeps some packets of a link, and occasionally returns one to be sent again. */
  record(from: number, to: number, packet: Uint8Array): Uint8Array | null {
    const { replay } = this.faults;
    if (replay === 0) return null;
    const link = from * this.#count + to;
    let store = this.#recorded.get(link);
    if (store === undefined) {
      store = [];
      this.#recorded.set(link, store);
    }
    if (store.length < REPLAY_STORE) store.push(packet);
    else if (this.#random.chance(0.1)) store[this.#random.below(REPLAY_STORE)] = packet;
    return this.#random.chance(replay) ? this.#random.pick(store) : null;
  }

  /** A damaged copy, or the packet itself. */
  mangle(packet: Uint8Array): Uint8Array {
    const { corruption } = this.faults;
    if (corruption === 0 || !this.#random.chance(corruption)) return packet;
    const damaged = packet.slice(
      0,
      this.#random.chance(0.3) ? this.#random.below(packet.length) : packet.length,
    );
    if (damaged.length === 0) return damaged;
    const at = this.#random.below(damaged.length);
    damaged[at] = (damaged[at] ?? 0) ^ (1 << this.#random.below(8));
    return damaged;
  }
}
