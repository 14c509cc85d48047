/**
 * The state a bare agent embeds in its membership packets, so that every member knows everybody's health
 * and who leads each group without asking. (EMB-1, EMB-3)
 */

import { GROUP_BYTES_MAX } from "../../core/cluster/election/messages.ts";
import { bool, decode, encode, optional, required, struct, text, uint } from "../../wire/schema.ts";

export interface AgentState {
  readonly health: number;
  /** The group this member votes in; empty when it votes in none. */
  readonly group: string;
  readonly leading: boolean;
  readonly term: number;
}

const agentState = struct<AgentState>("AgentState", {
  health: required(1, uint),
  group: optional(2, text(GROUP_BYTES_MAX), ""),
  leading: optional(3, bool, false),
  term: optional(4, uint, 0),
});

export function encodeAgentState(state: AgentState): Uint8Array {
  return encode(agentState, state);
}

/** Null for a state of another kind or a broken one: the packet that carried it still counts. (EMB-6) */
export function decodeAgentState(body: Uint8Array): AgentState | null {
  const decoded = decode(agentState, body);
  return decoded.ok ? decoded.value : null;
}
