/**
 * Groups of a registered kind beside the jobs: clients add to them through any node, and read them.
 *
 *   T1  the value of a tally at an index is the sum of its log up to there, each operation once, and includes
 *       all that was acknowledged before the read began; an operation has one index, however often it is sent
 */

import type { NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import type { LedgerAnswer, LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import {
  decodeAmount,
  decodeTally,
  encodeAmount,
} from "../../src/core/ledger/node/testing/tally.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { LedgerCheckers } from "./checkers.ts";

export const TALLIES = ["tally/a", "tally/b"] as readonly string[] as readonly GroupId[];

export class Tallies {
  readonly #checkers: LedgerCheckers;
  readonly #violations: Violations;
  readonly #members: readonly NodeId[];
  /** Highest acknowledged index per group. */
  readonly #acked = new Map<GroupId, number>();
  /** Index at which each operation was acknowledged. */
  readonly #places = new Map<string, number>();

  /** `members`: of every tally, from the configuration and therefore the same wherever it is founded. */
  constructor(checkers: LedgerCheckers, violations: Violations, members: readonly NodeId[]) {
    this.#checkers = checkers;
    this.#violations = violations;
    this.#members = members;
  }

  add(random: Random, eventId: string): LedgerRequest {
    const group = random.pick(TALLIES);
    const data = encodeAmount(random.below(100));
    return { kind: "propose", group, eventId, data, members: this.#members };
  }

  look(random: Random): LedgerRequest {
    return { kind: "inspect", group: random.pick(TALLIES) };
  }

  /** Lower bound of what a read must show, taken when it begins. */
  floor(request: LedgerRequest): number {
    return request.kind === "inspect" ? (this.#acked.get(request.group) ?? -1) : -1;
  }

  learn(request: LedgerRequest, floor: number, answer: LedgerAnswer): void {
    if (request.kind === "propose" && answer.kind === "committed") {
      const { group, eventId } = request;
      const { seq } = answer;
      const place = this.#places.get(eventId) ?? seq;
      this.#violations.check(place === seq, "T1", () => {
        return `${eventId} of ${group} is at ${place} and at ${seq}`;
      });
      this.#places.set(eventId, place);
      this.#acked.set(group, Math.max(seq, this.#acked.get(group) ?? -1));
    }
    if (request.kind !== "inspect") return;
    const { group } = request;
    if (answer.kind === "notFound") {
      this.#violations.check(floor < 0, "T1", () => `${group} is not found, has ${floor} places`);
    }
    if (answer.kind === "state") this.#compare(group, floor, answer);
  }

  #compare(group: GroupId, floor: number, answer: Extract<LedgerAnswer, { kind: "state" }>): void {
    this.#checkers.marks.add("tally.seen");
    this.#violations.check(answer.seq >= floor, "T1", () => {
      return `${group} is shown up to ${answer.seq}, ${floor} was acknowledged before`;
    });
    let [count, sum] = [0, 0];
    const seen = new Set<string>();
    for (const entry of this.#checkers.truth(group).entries.slice(0, answer.seq + 1)) {
      if (entry.kind !== "op" || seen.has(entry.eventId)) continue;
      seen.add(entry.eventId);
      count++;
      sum += decodeAmount(entry.data) ?? 0;
    }
    const tally = decodeTally(answer.bytes);
    this.#violations.check(tally?.count === count && tally.sum === sum, "T1", () => {
      const shown = `${tally?.count} operations with ${tally?.sum}`;
      return `${group} shows ${shown} at ${answer.seq}, its log has ${count} with ${sum}`;
    });
  }
}
