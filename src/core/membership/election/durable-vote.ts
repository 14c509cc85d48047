/** Term and vote as stored on disk. */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { COUNTER_MAX, NODE_ID_BYTES_MAX, nodeId, term } from "../../base/ids.ts";
import type { DurableVote } from "./types.ts";

export const NO_VOTE: DurableVote = { term: term(0), votedFor: null };

export function encodeVote(vote: DurableVote): Uint8Array {
  const out = new ByteWriter(96);
  out.varint(vote.term);
  out.text(vote.votedFor ?? "");
  return out.take();
}

/** The vote, or why these bytes are none that a voter can have written. */
export function decodeVote(bytes: Uint8Array): DurableVote | string {
  const from = new ByteReader(bytes);
  const at = from.varint();
  const votedFor = from.text();
  if (from.failed || votedFor.length > NODE_ID_BYTES_MAX) return "it is no vote";
  if (at > COUNTER_MAX) return `no electorate ever reaches term ${at}`;
  return { term: term(at), votedFor: votedFor === "" ? null : nodeId(votedFor) };
}
