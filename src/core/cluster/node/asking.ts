/**
 * One question of a client, from its first asking to its end: what an answer means, who is asked next, and when
 * to stop. Managers and gates come and go, and one of them may be behind the others.
 *
 *     ask ─▶ decided
 *      ▲ └─▶ again, of another or of whom the answer names ─┐
 *      └────────────────────────────────────────────────────┘ … or given up
 */

import type { Address } from "../../base/ids.ts";
import { type ClientAnswer, type Refusal, type RefusalReason, refusal } from "../messages.ts";

/** All attempts together, when nobody answers or nobody leads. */
const PATIENCE_MS = 30_000;
/** Who follows may hear of a job this much later than whoever took it. */
const BEHIND_MS = 3_000;

/** Nothing is decided: another may know more, or the same one later. */
export function isPassing(reason: RefusalReason): boolean {
  return ["retry", "notLeader", "overloaded", "rateLimited"].includes(reason);
}

type Verdict =
  | { readonly kind: "decided"; readonly answer: Exclude<ClientAnswer, Refusal> }
  /** `to`: whom the answer names; null: any other. `afterMs`: not before that, as the answer says. */
  | { readonly kind: "again"; readonly to: Address | null; readonly afterMs: number }
  /** Null: nobody has answered. */
  | { readonly kind: "givenUp"; readonly refusal: Refusal | null };

interface Reach {
  /** Who could be asked now. */
  readonly connected: readonly Address[];
  /** Nobody takes this client in, and will not. */
  readonly isRefused: boolean;
  /** There is one only, as far as is known: nobody whom it could be behind. */
  readonly isOnly?: boolean;
}

export class Asking {
  /** The job that is asked about, if this client was told that it is accepted. */
  readonly #accepted: string | null;
  readonly #beganAt: number;
  /** Who has said that there is no such job. */
  readonly #denied = new Set<Address>();
  #last: Refusal | null = null;

  constructor(accepted: string | null, now: number) {
    this.#accepted = accepted;
    this.#beganAt = now;
  }

  /** `answer`: null when none came. */
  take(answer: ClientAnswer | null, from: Address | null, reach: Reach, now: number): Verdict {
    if (answer !== null && answer.kind !== "refused") return { kind: "decided", answer };
    if (answer !== null) {
      if (answer.reason === "unknownJob" && from !== null) this.#denied.add(from);
      this.#last = this.#saidOf(answer);
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
    // What was accepted is there: whoever does not know it has not heard of it yet.
    if (this.#accepted !== null) return false;
    const isDeniedByAll = connected.every((one) => this.#denied.has(one));
    return isDeniedByAll && (isOnly || now - this.#beganAt >= BEHIND_MS);
  }

  /** An accepted job that nobody knows is no word about the job. */
  #saidOf(answer: Refusal): Refusal {
    if (answer.reason !== "unknownJob" || this.#accepted === null) return answer;
    return refusal("retry", `${this.#accepted} is accepted, and whoever answers does not know it`);
  }
}
