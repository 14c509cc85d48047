/**
 * Entries on their way into groups: proposed with the same event id until they are committed or rejected, so that none
 * is lost in a leader change and none is folded in twice.
 *
 * Proposals of clients have bounds of their own and are abandoned after a while, since clients retry. However many
 * there are, they cannot block a leader's decisions.
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import type { LedgerAnswer } from "../../ledger/node/messages.ts";
import type { ManagerEffect } from "./types.ts";

/** Pending proposals of leaders: several per core of each job. */
const LEADER_PROPOSALS_MAX = 100_000;
/** Pending proposals of clients. */
const CLIENT_PROPOSALS_MAX = 1_000;
const CLIENT_BYTES_MAX = 16 * 1_048_576;
/** A client has retried long before. */
const CLIENT_MS_MAX = 30_000;

/** Result of a proposal: its outcome, or why it will never be committed. */
export type Proposed =
  | { readonly kind: "committed"; readonly outcome: string; readonly reason: string | null }
  /** The outcome is unknown; only reported to clients. */
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
  /** Deadlines of client proposals. */
  readonly #clients = new Deadlines<number>();
  #clientCount = 0;
  #clientBytes = 0;
  /** Callbacks to run after the current step, never while the caller is proposing. */
  #callbacks: (() => void)[] = [];
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
      this.#callbacks.push(() => done({ kind: "notNow", message }));
      return;
    }
    if (this.#waiting.size - this.#clientCount >= LEADER_PROPOSALS_MAX) {
      this.#callbacks.push(() => done({ kind: "refused", message }));
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

  /** Runs the callbacks of settled proposals; called after each step. */
  runCallbacks(): void {
    while (this.#callbacks.length > 0) for (const callback of this.#callbacks.splice(0)) callback();
  }

  /** Drops all proposals to this group. */
  forget(group: GroupId): void {
    for (const [token, proposal] of this.#waiting) {
      if (proposal.group !== group) continue;
      // A client is asked to retry with the present leader.
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
        // Unknown, or not now: retried with the same event id.
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
    this.#callbacks.push(() => proposal.done(proposed));
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
