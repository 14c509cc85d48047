/**
 * A whole shard as bytes, for checkpoints and state transfer. Entries are copied as they lie in memory, each
 * replica set is written once, and the order is the one all replicas share: equal states give equal bytes.
 *
 *     version | clock | applied seq + 1 | replica sets | entries: status, key, at, set, body, created
 */

import { ByteReader, ByteWriter, fromAscii } from "../../base/bytes.ts";
import type { NodeId } from "../../base/ids.ts";
import { FINGERPRINT_BYTES, isKey, KEY_BYTES_MAX } from "./key.ts";
import { RECORD_BYTES_MAX } from "./packed-table.ts";
import type { IdempotencyRules } from "./rules.ts";
import { SHARD_ENTRIES_MAX, type ShardRow, ShardState, type ShardStatus } from "./shard.ts";
import {
  ACK_BYTES_MAX,
  CREATED_BYTES_MAX,
  isJobId,
  JOB_ID_BYTES_MAX,
  readReplicaSet,
  readTime,
} from "./shard-entry.ts";

const SNAPSHOT_VERSION = 1;
const STATUS_CODE: Readonly<Record<ShardStatus, number>> = {
  pending: 1,
  committed: 2,
  rejected: 3,
};
const STATUS_BY_CODE: readonly (ShardStatus | undefined)[] = [
  undefined,
  "pending",
  "committed",
  "rejected",
];

export function encodeShardState(state: ShardState): Uint8Array {
  const sets = new Map<readonly NodeId[], number>();
  const rows = new ByteWriter(64 + state.size * 160 + state.createdBytes);
  for (const row of state.rows()) {
    rows.uint8(STATUS_CODE[row.status]);
    rows.bytes(row.key);
    rows.varint(row.at);
    if (row.status !== "rejected") rows.varint(numberOf(row.replicaSet, sets));
    rows.bytes(row.body);
    if (row.status === "pending") rows.bytes(row.created ?? new Uint8Array(0));
  }
  const writer = new ByteWriter(rows.length + 64 + sets.size * 64);
  writer.uint8(SNAPSHOT_VERSION);
  writer.varint(state.clock);
  writer.varint(state.appliedSeq + 1);
  writer.varint(sets.size);
  for (const nodes of sets.keys()) {
    writer.varint(nodes.length);
    for (const node of nodes) writer.text(node);
  }
  writer.varint(state.size);
  writer.raw(rows.take());
  return writer.take();
}

/** Sets are pooled in the state, so that one set is one array. Numbers follow the order of the rows. */
function numberOf(nodes: readonly NodeId[], sets: Map<readonly NodeId[], number>): number {
  const known = sets.get(nodes);
  if (known !== undefined) return known;
  sets.set(nodes, sets.size);
  return sets.size - 1;
}

/** Null for anything that is not one whole, consistent snapshot. */
export function decodeShardState(
  bytes: Uint8Array,
  rules?: IdempotencyRules,
  hashSeed?: number,
): ShardState | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== SNAPSHOT_VERSION) return null;
  const clock = readTime(reader);
  const appliedSeq = reader.varint() - 1;
  const sets = readSets(reader);
  const count = reader.varint();
  if (count > SHARD_ENTRIES_MAX) reader.fail("more entries than a shard holds");
  const rows = readRows(reader, sets, count, clock);
  const state = ShardState.restored({ clock, appliedSeq }, rows, rules, hashSeed);
  return reader.failed || reader.remaining > 0 ? null : state;
}

/** Reads row by row, so that nothing is in memory twice; stops at the first invalid row. */
function* readRows(
  reader: ByteReader,
  sets: readonly (readonly NodeId[])[],
  count: number,
  clock: number,
): Generator<ShardRow> {
  const order = { status: 0, at: 0 };
  for (let i = 0; i < count; i++) {
    const row = readRow(reader, sets);
    checkOrder(reader, row, order, clock);
    if (reader.failed) return;
    yield row;
  }
}

function readSets(reader: ByteReader): readonly (readonly NodeId[])[] {
  const count = reader.varint();
  if (count > SHARD_ENTRIES_MAX) reader.fail("more replica sets than a shard holds entries");
  const sets: (readonly NodeId[])[] = [];
  for (let i = 0; i < count && !reader.failed; i++) sets.push(readReplicaSet(reader));
  return sets;
}

function readRow(reader: ByteReader, sets: readonly (readonly NodeId[])[]): ShardRow {
  const status = STATUS_BY_CODE[reader.uint8()];
  if (status === undefined) reader.fail("no such status");
  const key = reader.bytes(KEY_BYTES_MAX);
  if (!isKey(fromAscii(key))) reader.fail("not an idempotency key");
  const at = readTime(reader);
  const replicaSet = status === "rejected" ? [] : sets[reader.varint()];
  if (replicaSet === undefined) reader.fail("no such replica set");
  const body = reader.bytes(RECORD_BYTES_MAX);
  checkBody(reader, body, status === "rejected");
  const created = status === "pending" ? reader.bytes(CREATED_BYTES_MAX) : null;
  return { status: status ?? "pending", key, at, replicaSet: replicaSet ?? [], body, created };
}

function checkBody(reader: ByteReader, body: Uint8Array, rejected: boolean): void {
  const inner = new ByteReader(body);
  inner.skip(FINGERPRINT_BYTES);
  const jobId = inner.text(JOB_ID_BYTES_MAX);
  inner.bytes(ACK_BYTES_MAX);
  if (inner.failed || inner.remaining > 0) reader.fail("an entry's body is not one");
  const named = rejected ? jobId === "" : isJobId(jobId);
  if (!named) reader.fail("accepted entries name a job, rejected none");
}

/** Lists come one after the other, each in the order of its times: expiry relies on it. */
function checkOrder(
  reader: ByteReader,
  row: ShardRow,
  order: { status: number; at: number },
  clock: number,
): void {
  const status = STATUS_CODE[row.status];
  if (status < order.status) reader.fail("the lists are out of order");
  if (status === order.status && row.at < order.at) reader.fail("the times are out of order");
  if (row.at > clock) reader.fail("an entry is later than the state's clock");
  order.status = status;
  order.at = row.at;
}
