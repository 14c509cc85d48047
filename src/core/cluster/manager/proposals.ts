/**
 * Entries on their way into groups: proposed with the same event id until they are committed or refused, so
 * that none is lost to a change of leader and none is folded in twice.
 *
 * What clients ask for has bounds of its own, and is given up after a while: they ask again, and however many
 * they are, they keep no leader from what it has decided.
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import type { LedgerAnswer } from "../../ledger/node/messages.ts";
import type { ManagerEffect } from "./types.ts";

/** Entries of leaders that wait at once: some for each core of each job. */
const LEADER_PROPOSALS_MAX = 100_000;
/** Entries of clients that wait at once. */
const CLIENT_PROPOSALS_MAX = 1_000;
const CLIENT_BYTES_MAX = 16 * 1_048_576;
/** A client has asked again long before. */
const CLIENT_MS_MAX = 30_000;

/** How it ended: with its outcome, or why it never will be. */
export type Proposed =
  | { readonly kind: "committed"; readonly outcome: string; readonly reason: string | null }
  /** Nobody knows whether it will be: only said to clients. */
  | { readonly kind: "notNow"; readonly message: string }
  | { readonly kind: "refused"; readonly message: string };

interface Proposal {
  readonly group: GroupId;
  readonly eventId: string;
  readonly data: Uint8Array;
  readonly members: readonly NodeId[];
  readonly by: "leader" | "client";
  readonly done: (proposed: Proposed) => void;
}

interface ProposalsHost {
  readonly now: number;
  emit(effect: ManagerEffect): void;
}

export class Proposals {
  readonly #host: ProposalsHost;
  readonly #retryMs: number;
  readonly #waiting = new Map<number, Proposal>();
  /** Those of clients among them: when they are given up. */
  readonly #clients = new Deadlines<number>();
  #clientCount = 0;
  #clientBytes = 0;
  /** Told after the step under way: whoever proposes is not called back while it does. */
  #told: (() => void)[] = [];
  readonly #retries = new Deadlines<number>();
  #tokens = 0;

  constructor(host: ProposalsHost, retryMs: number) {
    this.#host = host;
    this.#retryMs = retryMs;
  }

  propose(proposal: Proposal): void {
    const { by, data, done } = proposal;
    const message = "too many entries wait to be committed";
    if (by === "client" && !this.#hasClientRoom(data.length)) {
      this.#told.push(() => done({ kind: "notNow", message }));
      return;
    }
    if (this.#waiting.size - this.#clientCount >= LEADER_PROPOSALS_MAX) {
      this.#told.push(() => done({ kind: "refused", message }));
      return;
    }
    const token = ++this.#tokens;
    this.#waiting.set(token, proposal);
    if (by === "client") {
      this.#clientCount++;
      this.#clientBytes += data.length;
      this.#clients.set(token, this.#host.now + CLIENT_MS_MAX);
    }
    this.#send(token, proposal);
  }

  #hasClientRoom(bytes: number): boolean {
    const hasPlace = this.#clientCount < CLIENT_PROPOSALS_MAX;
    return hasPlace && this.#clientBytes + bytes <= CLIENT_BYTES_MAX;
  }

  /** Tells what became of entries; after each step. */
  tell(): void {
    while (this.#told.length > 0) for (const told of this.#told.splice(0)) told();
  }

  /** Nobody waits any more for what goes to this group. */
  forget(group: GroupId): void {
    for (const [token, proposal] of this.#waiting) {
      if (proposal.group !== group) continue;
      // A client hears that it must ask again, whoever leads now.
      if (proposal.by === "client")
        this.#settle(token, proposal, { kind: "notNow", message: "another manager leads the job" });
      else this.#remove(token, proposal);
    }
  }

  onAnswer(token: number, answer: LedgerAnswer): void {
    const proposal = this.#waiting.get(token);
    if (proposal === undefined) return;
    switch (answer.kind) {
      case "committed": {
        const { outcome, reason } = answer;
        this.#settle(token, proposal, { kind: "committed", outcome, reason });
        return;
      }
      case "refused":
        this.#settle(token, proposal, { kind: "refused", message: answer.message });
        return;
      default:
        // Not known, or not now: asked again with the same event id.
        this.#retries.set(token, this.#host.now + this.#retryMs);
    }
  }

  nextDeadline(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(this.#retries.next() ?? never, this.#clients.next() ?? never);
    return at === never ? null : at;
  }

  onTick(): void {
    for (const token of this.#retries.takeDue(this.#host.now)) {
      const proposal = this.#waiting.get(token);
      if (proposal !== undefined) this.#send(token, proposal);
    }
    for (const token of this.#clients.takeDue(this.#host.now)) {
      const proposal = this.#waiting.get(token);
      const message = "it is not committed yet: a quorum of managers may be away";
      if (proposal !== undefined) this.#settle(token, proposal, { kind: "notNow", message });
    }
  }

  #settle(token: number, proposal: Proposal, proposed: Proposed): void {
    this.#remove(token, proposal);
    this.#told.push(() => proposal.done(proposed));
  }

  #remove(token: number, { by, data }: Proposal): void {
    this.#waiting.delete(token);
    this.#retries.delete(token);
    if (by === "leader") return;
    this.#clients.delete(token);
    this.#clientCount--;
    this.#clientBytes -= data.length;
  }

  #send(token: number, { data, eventId, group, members }: Proposal): void {
    const request = { kind: "propose", group, eventId, data, members } as const;
    this.#host.emit({ kind: "propose", token, request });
  }
}
