/**
 * Two members with one name. Whoever hears its own name from another address asks some peers where
 * they see it; if most see the rival, we have lost the name and should end. (B-52e)
 */

import type { Address, NodeId } from "../../base/ids.ts";
import type { SwimContext } from "./context.ts";
import { NAME_QUERY_PEERS_MAX } from "./limits.ts";
import { isLive } from "./member-table.ts";
import type { DatagramMessage, NodeRecord, SwimDatagram } from "./messages.ts";

interface Dispute {
  readonly sequence: number;
  readonly rival: Address;
  readonly until: number;
  readonly answered: Set<NodeId>;
  forUs: number;
  forRival: number;
}

/** A conflict is reported and voted on at most this often. */
const DISPUTE_EVERY_MS = 30_000;

export class Names {
  readonly #context: SwimContext;
  #dispute: Dispute | null = null;
  #quietUntil = Number.NEGATIVE_INFINITY;
  #warnedUntil = Number.NEGATIVE_INFINITY;

  constructor(context: SwimContext) {
    this.#context = context;
  }

  nextDeadline(): number {
    return this.#dispute?.until ?? Number.POSITIVE_INFINITY;
  }

  /** Somebody else's name is used from two addresses: we keep what we know and say so. */
  conflict(known: { readonly id: NodeId }, other: NodeRecord): void {
    const context = this.#context;
    if (context.now < this.#warnedUntil) return;
    this.#warnedUntil = context.now + DISPUTE_EVERY_MS;
    context.warn("NAME_CONFLICT", `${known.id} also at ${other.address}`);
  }

  /** Our own name from elsewhere: let peers decide. False when a dispute is fresh or running. */
  dispute(rival: Address): boolean {
    const context = this.#context;
    const { now, table, random, self, config } = context;
    if (this.#dispute !== null || now < this.#quietUntil || context.leaving) return false;
    this.#quietUntil = now + DISPUTE_EVERY_MS;
    context.warn("NAME_CONFLICT", `${self.id} also at ${rival}`);
    const sequence = context.nextSequence();
    this.#dispute = {
      sequence,
      rival,
      until: now + 5 * config.probeTimeoutMs,
      answered: new Set(),
      forUs: 0,
      forRival: 0,
    };
    for (const peer of table.pick(NAME_QUERY_PEERS_MAX, random, (member) => isLive(member))) {
      context.send(peer.record.address, { kind: "nameQuery", sequence, id: self.id });
    }
    return true;
  }

  onQuery(message: Extract<DatagramMessage, { kind: "nameQuery" }>, source: Address): void {
    const { id, sequence } = message;
    const context = this.#context;
    const known = context.isSelf(id) ? context.self : context.table.get(id)?.record;
    if (known === undefined) return;
    context.send(source, { kind: "nameAnswer", sequence, id, address: known.address });
  }

  onAnswer(message: Extract<DatagramMessage, { kind: "nameAnswer" }>, packet: SwimDatagram): void {
    const dispute = this.#dispute;
    if (dispute === null || dispute.sequence !== message.sequence) return;
    if (dispute.answered.has(packet.from)) return;
    dispute.answered.add(packet.from);
    if (message.address === this.#context.self.address) dispute.forUs++;
    else if (message.address === dispute.rival) dispute.forRival++;
  }

  tick(): void {
    const dispute = this.#dispute;
    if (dispute === null || this.#context.now < dispute.until) return;
    this.#dispute = null;
    if (dispute.forRival > dispute.forUs) {
      this.#context.emit({ kind: "nameLost", rival: dispute.rival });
    }
  }
}
