/** Keys, fingerprints and entries for tests, short to write. */

import { encodeUtf8 } from "../../../base/bytes.ts";
import { type NodeId, nodeId } from "../../../base/ids.ts";
import { sha256 } from "../../../base/sha256.ts";
import { type IdempotencyKey, isKey } from "../key.ts";
import type { CommittedEntry, RejectedEntry, ReservedEntry } from "../shard-entry.ts";

export const NODES: readonly NodeId[] = ["gate-1", "gate-2", "gate-3"].map(nodeId);

export function sampleKey(sequence: number, client = "host1.dc1:12345"): IdempotencyKey {
  const text = `${client}:${sequence}:0123456789abcdef`;
  if (!isKey(text)) throw new Error(`not a key: ${text}`);
  return text;
}

export function samplePrint(text: string): Uint8Array {
  return sha256(encodeUtf8(text));
}

/** A reservation of a key by a job; the submission's content is that of the key unless given. */
export function reserved(
  sequence: number,
  jobId: string,
  extra: Partial<ReservedEntry> = {},
): ReservedEntry {
  return {
    kind: "reserved",
    key: sampleKey(sequence),
    fingerprint: samplePrint(`body ${sequence}`),
    jobId,
    replicaSet: NODES,
    created: encodeUtf8(`created ${jobId}`),
    ack: encodeUtf8(`ack ${jobId}`),
    at: 1_000,
    ...extra,
  };
}

export function committed(sequence: number, jobId: string, at = 1_000): CommittedEntry {
  return { kind: "committed", key: sampleKey(sequence), jobId, at };
}

export function rejected(sequence: number, why: string, at = 1_000): RejectedEntry {
  return {
    kind: "rejected",
    key: sampleKey(sequence),
    fingerprint: samplePrint(`body ${sequence}`),
    result: encodeUtf8(why),
    at,
  };
}
