/**
 * Invariants of the links between nodes:
 *
 *   N1  bytes received on a stream were handed to it, in order and without gaps
 *   N2  every batch is handed to the network, waits, or is counted as dropped; none is counted twice
 *   N3  a node accepts nothing from a peer that does not know the same ledger
 */

import type { NodeId } from "../../src/core/base/ids.ts";
import type { StreamId } from "../../src/core/cluster/link/types.ts";
import type { LedgerMachine } from "../../src/core/cluster/node/ledger-machine.ts";
import type { Streams } from "../kernel/streams.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import { sameBytes } from "./checkers.ts";
import type { LedgerProcess } from "./node.ts";

interface Handed {
  /** Batches the node had for each peer, and batches handed to the network. */
  readonly given: Map<NodeId, number>;
  sent: number;
}

export class LinkChecks {
  readonly #violations: Violations;
  readonly #streams: Streams;
  /** By the accepting end: messages handed over and not yet taken. */
  readonly #underWay = new Map<StreamId, Uint8Array[]>();
  readonly #handed = new WeakMap<LedgerMachine, Handed>();
  /** Ledger digest of each incarnation of each process. */
  readonly #digests = new Map<string, string>();

  constructor(violations: Violations, streams: Streams) {
    this.#violations = violations;
    this.#streams = streams;
  }

  onStarted({ id, life, ledger }: LedgerProcess): void {
    this.#digests.set(`${id}/${life}`, ledger.digest);
  }

  onSend({ machine }: LedgerProcess, to: NodeId, batches: number): void {
    if (machine === null) return;
    const { given } = this.#of(machine);
    given.set(to, (given.get(to) ?? 0) + batches);
  }

  onSent({ machine, index }: LedgerProcess, stream: StreamId, message: Uint8Array): void {
    if (machine !== null) this.#of(machine).sent++;
    const other = this.#streams.otherEnd(index, stream);
    if (other === null) return;
    const underWay = this.#underWay.get(other.id);
    if (underWay === undefined) this.#underWay.set(other.id, [message]);
    else underWay.push(message);
  }

  onTaken({ id, index, ledger }: LedgerProcess, stream: StreamId, batch: Uint8Array): void {
    const message = this.#underWay.get(stream)?.shift();
    const end = message?.subarray(Math.max(0, message.length - batch.length));
    const same = end !== undefined && sameBytes(end, batch);
    this.#violations.check(same, "N1", () => {
      return `${id} takes ${batch.length} bytes on stream ${stream} that are not the next of it`;
    });
    const other = this.#streams.otherEnd(index, stream);
    if (other === null) return;
    const caller = `n${other.host.index}/${other.life}`;
    const theirs = this.#digests.get(caller);
    this.#violations.check(theirs === ledger.digest, "N3", () => {
      return `${id} hears ${caller}, which knows another ledger`;
    });
  }

  sample({ id, machine }: LedgerProcess): void {
    if (machine === null) return;
    const { given, sent } = this.#of(machine);
    let reported = 0;
    for (const { name, queued, dropped, sent: sentTo } of machine.peers()) {
      reported += sentTo;
      const had = given.get(name) ?? 0;
      this.#violations.check(had === queued + dropped + sentTo, "N2", () => {
        const counts = `${sentTo} sent, ${queued} waiting, ${dropped} dropped`;
        return `${id} had ${had} batches for ${name}: ${counts}`;
      });
    }
    this.#violations.check(reported === sent, "N2", () => {
      return `${id} says that ${reported} batches were sent, and sent ${sent}`;
    });
  }

  #of(machine: LedgerMachine): Handed {
    const known = this.#handed.get(machine);
    if (known !== undefined) return known;
    const fresh = { given: new Map<NodeId, number>(), sent: 0 };
    this.#handed.set(machine, fresh);
    return fresh;
  }
}
