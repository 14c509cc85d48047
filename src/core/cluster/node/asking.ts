/**
 * One client request from the first attempt to its end: interprets answers, and decides which node to ask next and when
 * to stop. Managers and gates come and go, and one of them may lag behind the others.
 *
 *     ask ─▶ decided
 *      ▲ └─▶ retry at another node or the one named ──┐
 *      └──────────────────────────────────────────────┘ … or given up
 */

import type { Address } from "../../base/ids.ts";
import { type ClientAnswer, type Refusal, type RefusalReason, refusal } from "../messages.ts";

/** Time limit of all attempts together when no node answers or leads. */
const PATIENCE_MS = 30_000;
/** Maximum lag of a follower behind the leader when it learns of a job. */
const BEHIND_MS = 3_000;

/** Whether to retry: another node may know more, or the same one later. */
export function isPassing(reason: RefusalReason): boolean {
  return ["retry", "notLeader", "overloaded", "rateLimited"].includes(reason);
}

type Verdict =
  | { readonly kind: "decided"; readonly answer: Exclude<ClientAnswer, Refusal> }
  /** `to`: node named in the answer; null for any other. `afterMs`: minimum delay named in the answer. */
  | { readonly kind: "again"; readonly to: Address | null; readonly afterMs: number }
  /** Null if no node has answered. */
  | { readonly kind: "givenUp"; readonly refusal: Refusal | null };

interface Reach {
  /** Nodes that could be asked now. */
  readonly connected: readonly Address[];
  /** Every node rejects this client, permanently. */
  readonly isRefused: boolean;
  /** Only one node exists, as far as known, so it cannot lag behind others. */
  readonly isOnly?: boolean;
}

export class Asking {
  /** Job that this client knows to be accepted, if any. */
  readonly #accepted: string | null;
  readonly #beganAt: number;
  /** Nodes that deny the job. */
  readonly #denied = new Set<Address>();
  #last: Refusal | null = null;

  constructor(accepted: string | null, now: number) {
    this.#accepted = accepted;
    this.#beganAt = now;
  }

  /** `answer`: null if none came. */
  take(answer: ClientAnswer | null, from: Address | null, reach: Reach, now: number): Verdict {
    if (answer !== null && answer.kind !== "refused") return { kind: "decided", answer };
    if (answer !== null) {
      if (answer.reason === "unknownJob" && from !== null) this.#denied.add(from);
      this.#last = this.#lastRefusalOf(answer);
      if (this.#isFinal(answer, reach, now)) return { kind: "givenUp", refusal: answer };
    }
    if (reach.isRefused || now - this.#beganAt > PATIENCE_MS)
      return { kind: "givenUp", refusal: this.#last };
    const { address = null, retryAfterMs = 0 } = answer ?? {};
    return { kind: "again", to: address as Address | null, afterMs: retryAfterMs ?? 0 };
  }

  #isFinal({ reason }: Refusal, { connected, isOnly = false }: Reach, now: number): boolean {
    if (isPassing(reason)) return false;
    if (reason !== "unknownJob") return true;
    // An accepted job exists: a node that does not know it is lagging.
    if (this.#accepted !== null) return false;
    const isDeniedByAll = connected.every((one) => this.#denied.has(one));
    return isDeniedByAll && (isOnly || now - this.#beganAt >= BEHIND_MS);
  }

  /** For an accepted job, "unknown job" only means that the node is lagging. */
  #lastRefusalOf(answer: Refusal): Refusal {
    if (answer.reason !== "unknownJob" || this.#accepted === null) return answer;
    return refusal("retry", `${this.#accepted} is accepted, and whoever answers does not know it`);
  }
}
