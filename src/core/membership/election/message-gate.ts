/**
 * Checks messages of other voters before the election processes them: the sender is a configured voter, counts the same
 * voters as we do, and is at a plausible term. A rejected message raises an alarm.
 */

import { Alarms } from "../../base/alarms.ts";
import type { NodeId, Term } from "../../base/ids.ts";
import { COUNTER_JUMP_MAX } from "../../base/ids.ts";
import { electorateDigest } from "./electorate.ts";
import type { ElectionMessage } from "./messages.ts";
import type { ElectionAlarm, ElectionEffect, ElectionOptions } from "./types.ts";

export class MessageGate {
  readonly #options: ElectionOptions;
  readonly #emit: (effect: ElectionEffect) => void;
  readonly #alarms = new Alarms<ElectionAlarm>();
  /** Digest of the configured voters. */
  readonly electorate: string;

  constructor(options: ElectionOptions, emit: (effect: ElectionEffect) => void) {
    this.#options = options;
    this.#emit = emit;
    this.electorate = electorateDigest(options.voters);
  }

  get counts(): ReadonlyMap<ElectionAlarm, number> {
    return this.#alarms.counts;
  }

  passes(
    input: {
      readonly from: NodeId;
      readonly electorate: string;
      readonly message: ElectionMessage;
    },
    ownTerm: Term,
    now: number,
  ): boolean {
    const { from, electorate, message } = input;
    if (from === this.#options.self || !this.sameElectorate(from, electorate, now)) return false;
    if (!this.#options.voters.includes(from)) return false;
    // Terms are counted one by one, so a jump this large is not genuine. Accepting and persisting it would bring every
    // voter to the end of its numbers.
    if (message.term - ownTerm <= COUNTER_JUMP_MAX) return true;
    this.alarm("TERM_JUMP", from, `from ${ownTerm} to ${message.term}`, now);
    return false;
  }

  sameElectorate(from: NodeId, electorate: string, now: number): boolean {
    if (electorate === this.electorate) return true;
    const about = `it counts voters ${electorate || "unknown"}, we count ${this.electorate}`;
    this.alarm("ELECTORATE_MISMATCH", from, about, now);
    return false;
  }

  alarm(code: ElectionAlarm, from: NodeId, about: string, now: number): void {
    if (this.#alarms.raise(code, now)) this.#emit({ kind: "alarm", code, from, about });
  }
}
