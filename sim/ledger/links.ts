/**
 * How ledger nodes reach each other. In stream mode a directed pair shares one ordered connection: what
 * is sent arrives in order, until a cut or a crash breaks it and what was under way is lost. In datagram
 * mode batches are lost, doubled and overtake each other, which the protocol must survive as well.
 */

import type { Network } from "../kernel/network.ts";
import type { World } from "../kernel/world.ts";

export type LinkMode = "streams" | "datagrams";

export class Links {
  readonly #world: World;
  readonly #network: Network;
  readonly #count: number;
  mode: LinkMode;
  /** Of each directed pair: rises when its connection breaks. */
  readonly #generation: Uint32Array;
  readonly #lastArrival: Float64Array;

  constructor(world: World, network: Network, count: number, mode: LinkMode) {
    this.#world = world;
    this.#network = network;
    this.#count = count;
    this.mode = mode;
    this.#generation = new Uint32Array(count * count);
    this.#lastArrival = new Float64Array(count * count);
  }

  send(from: number, to: number, bytes: Uint8Array, arrive: (bytes: Uint8Array) => void): void {
    const world = this.#world;
    if (this.mode === "datagrams") {
      this.#network.datagram(from, to, bytes.length, world.now, (at) =>
        world.schedule(at, "datagram", to, () => arrive(bytes)),
      );
      return;
    }
    const link = from * this.#count + to;
    const arrival = this.#network.stream(from, to, bytes.length, world.now);
    if (arrival === null) {
      this.#break(from, to);
      return;
    }
    const at = Math.max(arrival, this.#lastArrival[link] ?? 0);
    this.#lastArrival[link] = at;
    const generation = this.#generation[link];
    world.schedule(at, "streamRequest", to, () => {
      if (this.#generation[link] === generation) arrive(bytes);
    });
  }

  /** A process died: its connections with it. */
  breakAll(node: number): void {
    for (let other = 0; other < this.#count; other++) this.#break(node, other);
  }

  #break(a: number, b: number): void {
    for (const link of [a * this.#count + b, b * this.#count + a]) {
      this.#generation[link] = (this.#generation[link] ?? 0) + 1;
      this.#lastArrival[link] = 0;
    }
  }
}
