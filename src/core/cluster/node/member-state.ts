/**
 * State that a member embeds in its membership packets, so that every member knows the health of all others and the
 * leader of each group without asking. (EMB-1, EMB-3)
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
  /** Group this member votes in; empty for none. */
  readonly group: string;
  readonly leading: boolean;
  readonly term: number;
  /** Digest of the voters it counts; empty if it votes in no group. */
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

/** Null for a malformed or unknown state: the packet that carried it still counts. (EMB-6) */
export function decodeMemberState(body: Uint8Array): MemberState | null {
  const decoded = decode(agentState, body);
  return decoded.ok ? decoded.value : null;
}

/** Minimum interval of health updates; leadership changes are sent at once. */
const SEND_MS_MIN = 1_000;

/** Decides when to send our own state: only on changes, and at a bounded rate. */
export class StateTeller {
  #sent: MemberState | null = null;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** When a delayed change is due. */
  dueAt = Number.POSITIVE_INFINITY;

  /** Whether to send this state now. */
  isDue(
    { health, leading, term }: Omit<MemberState, "group" | "electorate">,
    now: number,
  ): boolean {
    const sent = this.#sent;
    this.dueAt = Number.POSITIVE_INFINITY;
    if (sent === null || sent.leading !== leading) return true;
    if (sent.health === health && sent.term === term) return false;
    const dueAt = this.#sentAt + SEND_MS_MIN;
    if (now >= dueAt) return true;
    this.dueAt = dueAt;
    return false;
  }

  /** Cancels a delayed change. */
  stop(): void {
    this.dueAt = Number.POSITIVE_INFINITY;
  }

  onSent(state: MemberState, now: number): void {
    this.#sent = state;
    this.#sentAt = now;
  }
}
