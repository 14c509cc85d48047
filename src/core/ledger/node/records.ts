/**
 * A group's records in the node's log: the group's name, then the record. One log serves all groups,
 * so one sync does too.
 */

import { ByteReader, type ByteWriter } from "../../base/bytes.ts";
import { readRecord, writeRecord } from "../group/codec.ts";
import { GROUP_ID_BYTES_MAX, type GroupId } from "../group/messages.ts";
import type { VsrRecord } from "../group/types.ts";
import { RECORD_TYPES } from "../log/record-types.ts";

const TYPES: Readonly<Record<VsrRecord["kind"], number>> = {
  entry: RECORD_TYPES.VSR_ENTRY,
  promise: RECORD_TYPES.VSR_VIEW_PROMISE,
  newView: RECORD_TYPES.VSR_NEW_VIEW,
  commitMark: RECORD_TYPES.VSR_COMMIT_MARK,
  epoch: RECORD_TYPES.VSR_RECONFIGURE,
  broken: RECORD_TYPES.VSR_BROKEN,
};

const KINDS = new Map<number, VsrRecord["kind"]>(
  (Object.keys(TYPES) as VsrRecord["kind"][]).map((kind) => [TYPES[kind], kind]),
);

interface GroupRecord {
  readonly group: GroupId;
  readonly record: VsrRecord;
}

export function recordType(record: VsrRecord): number {
  return TYPES[record.kind];
}

export function encodeGroupRecord(out: ByteWriter, group: GroupId, record: VsrRecord): Uint8Array {
  out.clear();
  out.text(group);
  writeRecord(out, record);
  return out.take();
}

/** Null for records that are not a group's; an error text for those that are damaged. */
export function decodeGroupRecord(type: number, payload: Uint8Array): GroupRecord | null | string {
  const kind = KINDS.get(type);
  if (kind === undefined) return null;
  const from = new ByteReader(payload);
  const group = from.text(GROUP_ID_BYTES_MAX) as GroupId;
  const record = readRecord(from, kind);
  if (from.remaining > 0) from.fail("bytes after the end of a record");
  return from.problem ?? { group, record };
}
