/**
 * Resolves two members with one name. A member that sees its own name at another address asks some peers where they see
 * it; if most of those asked see the rival, we have lost the name and should shut down. (B-52e)
 *
 * Each peer is asked with its own secret number, and only its answer with that number counts: an attacker that invents
 * answers in the names of others cannot outvote them. One peer alone never decides.
 */

import type { Address, NodeId } from "../../base/ids.ts";
import type { SwimContext } from "./context.ts";
import { NAME_QUERY_PEERS_MAX } from "./limits.ts";
import { isLive } from "./member-table.ts";
import type { DatagramMessage, NodeRecord, SwimDatagram } from "./messages.ts";

interface Dispute {
  readonly rival: Address;
  readonly until: number;
  /** Peers by the number each was asked with. */
  readonly asked: Map<number, NodeId>;
  readonly askedCount: number;
  forRival: number;
}

/** Peers that must confirm the rival, in addition to being a majority of those asked. */
const RIVAL_VOTES_MIN = 2;
const NONCE_RANGE = 2 ** 32;
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

  /** Another member's name is used from two addresses: keeps the known one and reports the conflict. */
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
    const asked = new Map<number, NodeId>();
    for (const peer of table.pick(NAME_QUERY_PEERS_MAX, random, (member) => isLive(member))) {
      const sequence = random.below(NONCE_RANGE);
      asked.set(sequence, peer.id);
      context.send(peer.record.address, { kind: "nameQuery", sequence, id: self.id });
    }
    const until = now + 5 * config.probeTimeoutMs;
    this.#dispute = { rival, until, asked, askedCount: asked.size, forRival: 0 };
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
    const { sequence, id, address } = message;
    if (dispute === null || dispute.asked.get(sequence) !== packet.from) {
      this.#context.counts.unknownReplies++;
      return;
    }
    dispute.asked.delete(sequence);
    if (id === this.#context.self.id && address === dispute.rival) dispute.forRival++;
  }

  tick(): void {
    const dispute = this.#dispute;
    if (dispute === null || this.#context.now < dispute.until) return;
    this.#dispute = null;
    const { forRival, askedCount } = dispute;
    if (forRival >= RIVAL_VOTES_MIN && forRival > askedCount / 2) {
      this.#context.emit({ kind: "nameLost", rival: dispute.rival });
    }
  }
}
