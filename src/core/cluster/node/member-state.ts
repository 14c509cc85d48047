/**
 * The state a member embeds in its membership packets, so that every member knows everybody's health
 * and who leads each group without asking. (EMB-1, EMB-3)
 */

import {
  bool,
  counter,
  decode,
  encode,
  optional,
  required,
  struct,
  text,
} from "../../../wire/schema.ts";
import { COUNTER_MAX } from "../../base/ids.ts";
import { ELECTORATE_DIGEST_CHARACTERS } from "../../membership/election/electorate.ts";
import { GROUP_BYTES_MAX } from "../../membership/election/messages.ts";

export interface MemberState {
  readonly health: number;
  /** The group this member votes in; empty when it votes in none. */
  readonly group: string;
  readonly leading: boolean;
  readonly term: number;
  /** Digest of the voters it counts; empty when it votes in no group. */
  readonly electorate: string;
}

const agentState = struct<MemberState>("MemberState", {
  health: required(1, counter(COUNTER_MAX)),
  group: optional(2, text(GROUP_BYTES_MAX), ""),
  leading: optional(3, bool, false),
  term: optional(4, counter(COUNTER_MAX), 0),
  electorate: optional(5, text(ELECTORATE_DIGEST_CHARACTERS), ""),
});

export function encodeMemberState(state: MemberState): Uint8Array {
  return encode(agentState, state);
}

/** Null for a state of another kind or a broken one: the packet that carried it still counts. (EMB-6) */
export function decodeMemberState(body: Uint8Array): MemberState | null {
  const decoded = decode(agentState, body);
  return decoded.ok ? decoded.value : null;
}

/** A changed health is told at most this often; a changed leadership at once. */
const TELL_MS_MIN = 1_000;

/** Decides when our own state is told anew: only when something changed, and not too often. */
export class StateTeller {
  #told: MemberState | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;
  /** When a change that was held back is due. */
  dueAt = Number.POSITIVE_INFINITY;

  /** True when this state is to be told now. */
  isDue(
    { health, leading, term }: Omit<MemberState, "group" | "electorate">,
    now: number,
  ): boolean {
    const told = this.#told;
    this.dueAt = Number.POSITIVE_INFINITY;
    if (told === null || told.leading !== leading) return true;
    if (told.health === health && told.term === term) return false;
    const dueAt = this.#toldAt + TELL_MS_MIN;
    if (now >= dueAt) return true;
    this.dueAt = dueAt;
    return false;
  }

  /** Nothing is told any more. */
  stop(): void {
    this.dueAt = Number.POSITIVE_INFINITY;
  }

  told(state: MemberState, now: number): void {
    this.#told = state;
    this.#toldAt = now;
  }
}
