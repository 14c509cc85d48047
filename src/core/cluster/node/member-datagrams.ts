/** Datagrams of a member: seals and opens packets with the current keys. */

import { type Datagram, decodeDatagram, encodeDatagram } from "../../../wire/datagram.ts";
import { DatagramGuard } from "../../../wire/guard.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import type { Entropy } from "../../../wire/seal.ts";
import type { Address } from "../../base/ids.ts";
import { DATAGRAM_BYTES_MAX } from "../../membership/swim/messages.ts";

interface DatagramCounts {
  datagramsSent: number;
  datagramsReceived: number;
  bytesSent: number;
  bytesReceived: number;
  /** Number of authentic datagrams that are not valid messages. */
  undecodable: number;
  oversized: number;
}

interface DatagramHandlers {
  readonly transmit: (to: Address, bytes: Uint8Array) => void;
  /** Called for an authentic datagram that is not a valid message. */
  readonly onUnreadable: (source: Address, problem: string) => void;
}

export class MemberDatagrams {
  readonly #guard: DatagramGuard;
  readonly #handlers: DatagramHandlers;
  #ring: KeyRing;
  readonly counts: DatagramCounts = {
    datagramsSent: 0,
    datagramsReceived: 0,
    bytesSent: 0,
    bytesReceived: 0,
    undecodable: 0,
    oversized: 0,
  };

  constructor(ring: KeyRing, entropy: Entropy, handlers: DatagramHandlers) {
    this.#ring = ring;
    this.#guard = new DatagramGuard({ ring, entropy });
    this.#handlers = handlers;
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  get guardCounts(): DatagramGuard["counts"] {
    return this.#guard.counts;
  }

  /** Takes effect with the next packet. */
  setRing(ring: KeyRing): void {
    this.#ring = ring;
    this.#guard.setRing(ring);
  }

  send(to: Address, datagram: Datagram, now: number): void {
    for (const packet of this.#guard.seal(to, encodeDatagram(datagram), now)) {
      this.#transmit(packet.to, packet.bytes);
    }
  }

  /** Null if the guard rejects or consumes the datagram, or if it cannot be decoded. */
  receive(source: Address, bytes: Uint8Array, now: number): Datagram | null {
    this.counts.datagramsReceived++;
    this.counts.bytesReceived += bytes.length;
    const opened = this.#guard.open(source, bytes, now);
    for (const packet of opened.send) this.#transmit(packet.to, packet.bytes);
    if (opened.plain === null) return null;
    const decoded = decodeDatagram(opened.plain);
    if (decoded.ok) return decoded.value;
    this.counts.undecodable++;
    this.#handlers.onUnreadable(source, decoded.problem);
    return null;
  }

  #transmit(to: Address, bytes: Uint8Array): void {
    // Protocols keep packets below the limit; a larger one would be lost on some paths.
    if (bytes.length > DATAGRAM_BYTES_MAX) this.counts.oversized++;
    this.counts.datagramsSent++;
    this.counts.bytesSent += bytes.length;
    this.#handlers.transmit(to, bytes);
  }
}
