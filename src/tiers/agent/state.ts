/**
 * The state a bare agent embeds in its membership packets, so that every member knows everybody's health
 * and who leads each group without asking. (EMB-1, EMB-3)
 */

import { COUNTER_MAX } from "../../core/base/ids.ts";
import { ELECTORATE_DIGEST_CHARACTERS } from "../../core/cluster/election/electorate.ts";
import { GROUP_BYTES_MAX } from "../../core/cluster/election/messages.ts";
import {
  bool,
  counter,
  decode,
  encode,
  optional,
  required,
  struct,
  text,
} from "../../wire/schema.ts";

export interface AgentState {
  readonly health: number;
  /** The group this member votes in; empty when it votes in none. */
  readonly group: string;
  readonly leading: boolean;
  readonly term: number;
  /** Digest of the voters it counts; empty when it votes in no group. */
  readonly electorate: string;
}

const agentState = struct<AgentState>("AgentState", {
  health: required(1, counter(COUNTER_MAX)),
  group: optional(2, text(GROUP_BYTES_MAX), ""),
  leading: optional(3, bool, false),
  term: optional(4, counter(COUNTER_MAX), 0),
  electorate: optional(5, text(ELECTORATE_DIGEST_CHARACTERS), ""),
});

export function encodeAgentState(state: AgentState): Uint8Array {
  return encode(agentState, state);
}

/** Null for a state of another kind or a broken one: the packet that carried it still counts. (EMB-6) */
export function decodeAgentState(body: Uint8Array): AgentState | null {
  const decoded = decode(agentState, body);
  return decoded.ok ? decoded.value : null;
}
