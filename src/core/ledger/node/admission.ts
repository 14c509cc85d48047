/**
 * Decides whether a node that joined may take part. An empty data directory under a name may belong to a new node, or
 * to a node that has lost its disk: that node has forgotten what it led, and would lead the first view of a group a
 * second time. The node cannot know, but its peers can. So it introduces itself and takes no part in any group until
 * most of them have stored its directory's identity; peers that know the name with another identity stay silent.
 * (VSR-30)
 *
 *     joins ──► introduces itself ──most peers know it──► durable ──► takes part
 *                      └── all reject it: it stays outside, and they raise the alarm
 */

import type { NodeId } from "../../base/ids.ts";
import type { LedgerContext } from "./context.ts";
import type { Identities } from "./identities.ts";
import type { NodeMessage } from "./messages.ts";

/**
 * Values stored under our own name among the identities. No value: this node founded the ledger, or joined long ago.
 */
const JOINING = "joining";
const JOINED = "joined";
const INTRODUCE_EVERY_MS = 1_000;

export class Admission {
  readonly #context: LedgerContext;
  readonly #identities: Identities;
  readonly #acquainted = new Set<NodeId>();
  #introduceAt = Number.POSITIVE_INFINITY;

  constructor(context: LedgerContext, identities: Identities) {
    this.#context = context;
    this.#identities = identities;
  }

  /** Takes part in groups. */
  get isMember(): boolean {
    const { self, options } = this.#context;
    return this.#identities.known.get(self) !== JOINING || !options.rules.node.joinerWaits;
  }

  start(joins: boolean): void {
    const { self, now } = this.#context;
    if (joins && !this.#identities.known.has(self)) this.#identities.writeOwn(JOINING);
    if (this.#identities.known.get(self) === JOINING) this.#introduceAt = now;
  }

  nextDeadline(): number | null {
    return this.#introduceAt === Number.POSITIVE_INFINITY ? null : this.#introduceAt;
  }

  onTick(): void {
    const { now, self, topology } = this.#context;
    if (now < this.#introduceAt) return;
    this.#introduceAt = now + INTRODUCE_EVERY_MS;
    for (const peer of topology.nodes) {
      if (peer === self || this.#acquainted.has(peer)) continue;
      this.#context.send(peer, { kind: "introduction" });
    }
    this.#judge();
  }

  /** Whether a node that has not joined yet may process the message: introductions, and answers to its own requests. */
  mayHear({ kind }: NodeMessage): boolean {
    return this.isMember || kind === "introduction" || kind === "acquainted" || kind === "answer";
  }

  /** The sender's directory is written down here, durably, or this would not have been delivered. */
  onIntroduction(from: NodeId): void {
    this.#context.send(from, { kind: "acquainted" });
  }

  onAcquainted(from: NodeId): void {
    if (this.#introduceAt === Number.POSITIVE_INFINITY) return;
    this.#acquainted.add(from);
    this.#judge();
  }

  #judge(): void {
    const others = this.#context.topology.nodes.length - 1;
    const needed = others === 0 ? 0 : Math.floor(others / 2) + 1;
    if (this.#acquainted.size < needed) return;
    this.#introduceAt = Number.POSITIVE_INFINITY;
    this.#identities.writeOwn(JOINED);
  }
}
