/**
 * Durable records of a member: the highest incarnation it has used, and a voter's term and vote. All are read before
 * the first contact with a peer. An unusable record aborts the start, because the promises based on it are lost.
 */

import { type Incarnation, incarnation } from "../../base/ids.ts";
import { decodeVote, NO_VOTE } from "../../membership/election/durable-vote.ts";
import type { DurableVote, ElectionEffect } from "../../membership/election/types.ts";
import { decodeCeiling } from "../../membership/swim/durable-ceiling.ts";
import type { SwimEffect } from "../../membership/swim/types.ts";
import {
  type BarrierRules,
  type Region,
  type RegionEffect,
  type RegionResult,
  WriteBarrier,
} from "./member-barrier.ts";

interface RecordsOptions {
  readonly rules: BarrierRules;
  readonly votes: boolean;
  readonly runSwim: (effect: SwimEffect) => void;
  readonly runElection: (effect: ElectionEffect) => void;
  readonly ask: (effect: RegionEffect) => void;
  readonly onOpened: (found: Found) => void;
  readonly onUnusable: (region: Region, detail: string) => void;
  readonly onBroken: (problem: string) => void;
}

/** Records of the previous process; zeros on a fresh disk. */
interface Found {
  readonly ceiling: Incarnation;
  readonly vote: DurableVote;
}

export class MemberRecords {
  readonly #options: RecordsOptions;
  readonly swim: WriteBarrier<SwimEffect>;
  readonly vote: WriteBarrier<ElectionEffect>;
  #ceiling = incarnation(0);

  constructor(options: RecordsOptions) {
    this.#options = options;
    const { runSwim, runElection } = options;
    this.swim = this.#barrier("swim", runSwim, (found) => this.#onCeiling(found));
    this.vote = this.#barrier("vote", runElection, (found) => this.#onVote(found));
  }

  open(): void {
    this.swim.open();
  }

  onResult(region: Region, result: RegionResult): void {
    if (region === "swim") this.swim.onResult(result);
    else this.vote.onResult(result);
  }

  #barrier<Effect>(
    region: Region,
    run: (effect: Effect) => void,
    onOpened: (found: Uint8Array | null) => void,
  ): WriteBarrier<Effect> {
    const { rules, ask, onUnusable, onBroken } = this.#options;
    const onUnreadable = (): void => onUnusable(region, "both copies are damaged");
    return new WriteBarrier<Effect>({ region, rules, run, ask, onOpened, onUnreadable, onBroken });
  }

  #onCeiling(found: Uint8Array | null): void {
    const { votes, onOpened, onUnusable } = this.#options;
    const ceiling = found === null ? incarnation(0) : decodeCeiling(found);
    if (typeof ceiling === "string") {
      onUnusable("swim", ceiling);
      return;
    }
    this.#ceiling = ceiling;
    if (votes) this.vote.open();
    else onOpened({ ceiling, vote: NO_VOTE });
  }

  #onVote(found: Uint8Array | null): void {
    const { onOpened, onUnusable } = this.#options;
    const vote = found === null ? NO_VOTE : decodeVote(found);
    if (typeof vote === "string") onUnusable("vote", vote);
    else onOpened({ ceiling: this.#ceiling, vote });
  }
}
