/** Somebody who holds the key and sends what no machine makes: stray pings, floods of names, old gossip. */

import type { Address } from "../../src/core/base/ids.ts";
import { address } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { SwimDatagram } from "../../src/core/membership/swim/messages.ts";
import { encodeDatagram } from "../../src/wire/datagram.ts";
import { DatagramGuard } from "../../src/wire/guard.ts";
import { entropyOf, type Inhabitant, type Surroundings } from "./node.ts";

export class Insider implements Inhabitant {
  readonly address = address("10.7.0.1:7946");
  readonly #around: Surroundings;
  readonly #guard: DatagramGuard;
  /** The insider sends from beside the member it impersonates. */
  place = 0;

  constructor(around: Surroundings, random: Random) {
    this.#around = around;
    this.#guard = new DatagramGuard({ ring: around.keys.ring, entropy: entropyOf(random) });
  }

  send(place: number, to: Address, packet: SwimDatagram): void {
    this.place = place;
    const { keys, world } = this.#around;
    this.#guard.setRing(keys.ring);
    const plain = encodeDatagram({ protocol: "swim", packet });
    for (const { to: at, bytes } of this.#guard.seal(to, plain, world.now)) {
      this.#around.transmit(this, at, bytes);
    }
  }

  /** Learns the target's current session, so that queued packets can leave. */
  arrive(source: Address, bytes: Uint8Array): void {
    const opened = this.#guard.open(source, bytes, this.#around.world.now);
    for (const { to, bytes: out } of opened.send) this.#around.transmit(this, to, out);
  }
}
