/**
 * Pins the data directory behind the name of each peer. A directory has its own random identity. The first one used
 * under a name is stored durably before any of its messages is accepted; another one under that name is a node that has
 * lost its disk, and with it its acks and promises. Its messages are ignored for good: a quorum with it would be none,
 * and nodes that disagree about whom they accept would split the groups it is in. A new disk requires a new name.
 * (VSR-30)
 */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import { RECORD_TYPES } from "../log/record-types.ts";
import type { LedgerContext } from "./context.ts";
import type { NodeMessage } from "./messages.ts";

const IDENTITY_CHARACTERS_MAX = 64;
export const IDENTITY_BYTES_MAX = 4 * IDENTITY_CHARACTERS_MAX;
/** Batches of one peer that wait until its identity is durable; more are as if lost. */
const WAITING_BATCHES_MAX = 256;
/** Interval of repeated reports about the same unknown node. */
const REPORT_EVERY_MS = 30_000;

interface PeerIdentity {
  readonly peer: NodeId;
  readonly identity: string;
}

type Deliver = (from: NodeId, messages: readonly NodeMessage[]) => void;

export class Identities {
  readonly #context: LedgerContext;
  readonly #deliver: Deliver;
  /** Durable identities; our own entry records how far we have joined. */
  readonly #known = new Map<NodeId, string>();
  /** Identities that a checkpoint covers: durable, or handed to the log. */
  readonly written = new Map<NodeId, string>();
  /** Identities on their way to the disk, with the messages received meanwhile. */
  readonly #waiting = new Map<NodeId, { readonly identity: string; batches: Deliverable[] }>();
  readonly #reportedAt = new Map<NodeId, number>();

  constructor(context: LedgerContext, deliver: Deliver) {
    this.#context = context;
    this.#deliver = deliver;
  }

  get known(): ReadonlyMap<NodeId, string> {
    return this.#known;
  }

  recover(known: ReadonlyMap<NodeId, string>): void {
    for (const [peer, identity] of known) {
      this.#known.set(peer, identity);
      this.written.set(peer, identity);
    }
  }

  take(from: NodeId, identity: string, messages: readonly NodeMessage[]): void {
    const isKnown = this.#known.get(from) === identity;
    if (isKnown || !this.#context.options.rules.node.identityPinned) {
      this.#deliver(from, messages);
      return;
    }
    // The identity is stored, so it must fit the format.
    if (identity === "" || identity.length > IDENTITY_CHARACTERS_MAX) return;
    if (this.refuse(from, identity) !== null) return;
    const waiting = this.#waiting.get(from) ?? this.#write(from, identity);
    if (waiting.identity !== identity || waiting.batches.length >= WAITING_BATCHES_MAX) return;
    waiting.batches.push(messages);
  }

  /**
   * Returns why messages from a peer with this data directory are rejected, and raises an alarm; null if they are
   * accepted.
   */
  refuse(peer: NodeId, identity: string): string | null {
    const known = this.#known.get(peer);
    if (known === undefined || known === identity) return null;
    const problem =
      `IDENTITY_CHANGED: ${peer} has another data directory (${identity}) than the one it has served ` +
      `with (${known}); a node that lost its disk must not come back under its name: let it join ` +
      "under a new one and replace the old";
    this.#tell(peer, problem);
    return problem;
  }

  #write(peer: NodeId, identity: string): { readonly identity: string; batches: Deliverable[] } {
    const waiting = { identity, batches: [] };
    this.#waiting.set(peer, waiting);
    this.#append(peer, identity, () => this.#onDurable(peer));
    return waiting;
  }

  /** Stores our own identity: effective at once, since everything that depends on it comes later in the log. */
  writeOwn(identity: string): void {
    const { self } = this.#context;
    this.#append(self, identity, () => undefined);
    this.#known.set(self, identity);
  }

  #append(peer: NodeId, identity: string, onDurable: () => void): void {
    this.written.set(peer, identity);
    const record = encodeIdentity({ peer, identity });
    this.#context.append(RECORD_TYPES.PEER_IDENTITY, record, onDurable);
  }

  #onDurable(peer: NodeId): void {
    const waiting = this.#waiting.get(peer);
    if (waiting === undefined) return;
    this.#waiting.delete(peer);
    this.#known.set(peer, waiting.identity);
    for (const messages of waiting.batches) this.#deliver(peer, messages);
  }

  #tell(from: NodeId, why: string): void {
    const { now } = this.#context;
    if (now < (this.#reportedAt.get(from) ?? Number.NEGATIVE_INFINITY) + REPORT_EVERY_MS) return;
    this.#reportedAt.set(from, now);
    this.#context.emit({ kind: "alarm", group: `node/${from}` as GroupId, why });
  }
}

type Deliverable = readonly NodeMessage[];

function encodeIdentity({ peer, identity }: PeerIdentity): Uint8Array {
  const out = new ByteWriter(96);
  out.text(peer);
  out.text(identity);
  return out.take();
}

/** Returns a text if the payload is invalid. */
export function decodeIdentity(payload: Uint8Array): PeerIdentity | string {
  const from = new ByteReader(payload);
  const peer = from.text(NODE_ID_BYTES_MAX) as NodeId;
  const identity = from.text(IDENTITY_BYTES_MAX);
  if (from.remaining > 0) from.fail("bytes after the end of an identity");
  return from.problem ?? { peer, identity };
}
