/** Messages, bytes and CPU of each node of a simulated world from now on. */

import type { Network } from "../../sim/kernel/network.ts";
import type { World } from "../../sim/kernel/world.ts";

/** Cost of one node per second. */
export interface NodeCost {
  /** Sent and received. */
  readonly messages: number;
  readonly bytes: number;
  readonly cpuMs: number;
}

interface Meter {
  messages: number;
  bytes: number;
  cpuUs: number;
}

/** Reading the clock takes as long as many an event: one in this many is timed, and stands for all. */
const TIMED_EVERY_EVENTS = 7;

export class NodeMeters {
  readonly #world: World;
  readonly #since: number;
  readonly #meters = new Map<number, Meter>();
  readonly #bytesBetween = new Map<string, number>();

  constructor(world: World, network: Network) {
    this.#world = world;
    this.#since = world.now;
    network.onStream = (from, to, bytes) => {
      for (const node of [from, to]) {
        const meter = this.#meter(node);
        meter.messages++;
        meter.bytes += bytes;
      }
      const pair = pairOf(from, to);
      this.#bytesBetween.set(pair, (this.#bytesBetween.get(pair) ?? 0) + bytes);
    };
    let events = 0;
    world.perform = (node, run) => {
      if (++events % TIMED_EVERY_EVENTS > 0) {
        run();
        return;
      }
      const before = process.cpuUsage();
      run();
      const { system, user } = process.cpuUsage(before);
      this.#meter(node).cpuUs += TIMED_EVERY_EVENTS * (user + system);
    };
  }

  cost(node: number): NodeCost {
    const { bytes, cpuUs, messages } = this.#meter(node);
    const seconds = this.#seconds;
    return { messages: messages / seconds, bytes: bytes / seconds, cpuMs: cpuUs / 1_000 / seconds };
  }

  /** Both ways, in bytes per second. */
  bytesBetween(one: number, other: number): number {
    return (this.#bytesBetween.get(pairOf(one, other)) ?? 0) / this.#seconds;
  }

  get #seconds(): number {
    return (this.#world.now - this.#since) / 1_000;
  }

  #meter(node: number): Meter {
    const known = this.#meters.get(node);
    if (known !== undefined) return known;
    const meter = { messages: 0, bytes: 0, cpuUs: 0 };
    this.#meters.set(node, meter);
    return meter;
  }
}

function pairOf(one: number, other: number): string {
  return one < other ? `${one}/${other}` : `${other}/${one}`;
}
