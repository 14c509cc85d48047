/**
 * Entries on their way into groups: proposed with the same event id until they are committed or refused, so
 * that none is lost to a change of leader and none is folded in twice.
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import type { LedgerAnswer } from "../../ledger/node/messages.ts";
import type { ManagerRules } from "./rules.ts";
import type { ManagerEffect } from "./types.ts";

/** Entries that wait at once; whoever asks for more is told so. */
const PROPOSALS_MAX = 10_000;

/** How it ended: with its outcome, or why it never will be. */
export type Proposed =
  | { readonly kind: "committed"; readonly outcome: string; readonly reason: string | null }
  | { readonly kind: "refused"; readonly message: string };

interface Proposal {
  readonly group: GroupId;
  readonly eventId: string;
  readonly data: Uint8Array;
  readonly members: readonly NodeId[];
  readonly done: (proposed: Proposed) => void;
}

interface ProposalsHost {
  readonly now: number;
  readonly rules: ManagerRules;
  emit(effect: ManagerEffect): void;
}

export class Proposals {
  readonly #host: ProposalsHost;
  readonly #retryMs: number;
  readonly #waiting = new Map<number, Proposal>();
  readonly #retries = new Deadlines<number>();
  #tokens = 0;

  constructor(host: ProposalsHost, retryMs: number) {
    this.#host = host;
    this.#retryMs = retryMs;
  }

  propose(proposal: Proposal): void {
    if (this.#waiting.size >= PROPOSALS_MAX) {
      proposal.done({ kind: "refused", message: "too many entries wait to be committed" });
      return;
    }
    const token = ++this.#tokens;
    this.#waiting.set(token, proposal);
    this.#send(token, proposal);
  }

  /** Nobody waits any more for what goes to this group. */
  forget(group: GroupId): void {
    for (const [token, proposal] of this.#waiting) {
      if (proposal.group !== group) continue;
      this.#waiting.delete(token);
      this.#retries.delete(token);
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
        if (this.#host.rules.proposalsRepeated)
          this.#retries.set(token, this.#host.now + this.#retryMs);
    }
  }

  nextDeadline(): number | null {
    return this.#retries.next();
  }

  onTick(): void {
    for (const token of this.#retries.takeDue(this.#host.now)) {
      const proposal = this.#waiting.get(token);
      if (proposal !== undefined) this.#send(token, proposal);
    }
  }

  #settle(token: number, { done }: Proposal, proposed: Proposed): void {
    this.#waiting.delete(token);
    done(proposed);
  }

  #send(token: number, { data, eventId, group, members }: Proposal): void {
    const request = { kind: "propose", group, eventId, data, members } as const;
    this.#host.emit({ kind: "propose", token, request });
  }
}
