/**
 * The bytes of entries, records and messages. Decoders are total: anything that is not a whole, bounded
 * value turns the reader `failed`, which the caller checks once at the end.
 */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { HLC_LOGICAL_MAX, HLC_WALL_MS_MAX } from "../../base/hlc.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { BROKEN_TEXT_MAX, EPOCH_MAX, SEQ_MAX, TIME_MS_MAX, VIEW_MAX } from "./limits.ts";
import type {
  EntryKind,
  GroupSnapshot,
  LogEntry,
  PrepareStatus,
  VsrMessage,
  VsrMessageKind,
} from "./messages.ts";
import { EVENT_ID_BYTES_MAX, MEMBERS_MAX } from "./messages.ts";
import type { GroupImage, VsrRecord } from "./types.ts";

/** Data of one entry: a job's description, or a reservation with one in it. */
const ENTRY_DATA_BYTES_MAX = 2 * 1_048_576;
/** With a window of entries beside it it must fit one record of the log. */
export const SNAPSHOT_BYTES_MAX = 12 * 1_048_576;
/** Entries of one message or record. */
const ENTRIES_MAX = 65_536;
/** Most bytes of a UTF-8 text of `BROKEN_TEXT_MAX` characters. */
const BROKEN_BYTES_MAX = 4 * BROKEN_TEXT_MAX;

const ENTRY_KINDS: readonly EntryKind[] = ["op", "noop", "reconfigure"];
const STATUSES: readonly PrepareStatus[] = ["success", "staleView", "wrongSequence", "notOwner"];
/** Places are numbers on the wire: only ever append. */
const MESSAGE_KINDS: readonly VsrMessageKind[] = [
  "prepare",
  "prepareResponse",
  "commit",
  "viewChange",
  "viewChangeResponse",
  "newView",
  "fetchLog",
  "logSuffix",
  "found",
  "unknownGroup",
  "newerEpoch",
  "resign",
];

function writeMembers(out: ByteWriter, members: readonly NodeId[]): void {
  out.varint(members.length);
  for (const member of members) out.text(member);
}

function readMembers(from: ByteReader): NodeId[] {
  const count = from.varint();
  if (count > MEMBERS_MAX) from.fail("too many replicas");
  const members: NodeId[] = [];
  for (let i = 0; i < count && !from.failed; i++) {
    members.push(from.text(NODE_ID_BYTES_MAX) as NodeId);
  }
  if (new Set(members).size !== members.length) from.fail("a replica is named twice");
  return members;
}

/** At least one replica: a group without any has no owner of a view. */
function readGroupMembers(from: ByteReader): NodeId[] {
  const members = readMembers(from);
  if (members.length === 0) from.fail("a group without replicas");
  return members;
}

/** Sequence numbers begin at -1 for "none". */
function writeSeq(out: ByteWriter, seq: number): void {
  out.varint(seq + 1);
}

function readSeq(from: ByteReader): number {
  return readCounter(from, SEQ_MAX + 1, "a place") - 1;
}

/** A number that somebody will add to. (SECURITY.md: decoded within limits) */
function readCounter(from: ByteReader, max: number, what: string): number {
  const value = from.varint();
  if (value > max) from.fail(`${what} beyond its bound`);
  return value;
}

function readEpoch(from: ByteReader): number {
  return readCounter(from, EPOCH_MAX, "an epoch");
}

/** A view, or 0 for none. */
function readViewOrNone(from: ByteReader): number {
  return readCounter(from, VIEW_MAX, "a view");
}

function writeEntry(out: ByteWriter, entry: LogEntry): void {
  writeSeq(out, entry.seq);
  out.varint(entry.epoch);
  out.varint(entry.view);
  out.uint8(ENTRY_KINDS.indexOf(entry.kind));
  out.text(entry.eventId);
  out.varint(entry.wall);
  out.varint(entry.logical);
  out.bytes(entry.data);
  if (entry.kind === "reconfigure") writeMembers(out, entry.members);
}

const NOBODY: readonly NodeId[] = [];

function readEntry(from: ByteReader): LogEntry {
  const seq = readSeq(from);
  const epoch = readEpoch(from);
  const view = readViewOrNone(from);
  const kind = ENTRY_KINDS[from.uint8()];
  if (kind === undefined) from.fail("an unknown kind of entry");
  const eventId = from.text(EVENT_ID_BYTES_MAX);
  const wall = readCounter(from, HLC_WALL_MS_MAX, "a time");
  const logical = readCounter(from, HLC_LOGICAL_MAX, "a time's counter");
  // A copy: the frame it came in is far larger and would live as long as the log.
  const data = from.bytes(ENTRY_DATA_BYTES_MAX).slice();
  const members = kind === "reconfigure" ? readGroupMembers(from) : NOBODY;
  return { seq, epoch, view, kind: kind ?? "noop", eventId, wall, logical, data, members };
}

function writeEntries(out: ByteWriter, entries: readonly LogEntry[]): void {
  out.varint(entries.length);
  for (const entry of entries) writeEntry(out, entry);
}

function readEntries(from: ByteReader): LogEntry[] {
  const count = from.varint();
  if (count > ENTRIES_MAX || count > from.remaining) from.fail("more entries than bytes");
  const entries: LogEntry[] = [];
  for (let i = 0; i < count && !from.failed; i++) {
    const entry = readEntry(from);
    const last = entries.at(-1);
    if (last !== undefined && entry.seq !== last.seq + 1) from.fail("entries with a hole");
    entries.push(entry);
  }
  return entries;
}

function writeSnapshot(out: ByteWriter, snapshot: GroupSnapshot | null): void {
  out.uint8(snapshot === null ? 0 : 1);
  if (snapshot === null) return;
  writeSeq(out, snapshot.seq);
  out.bytes(snapshot.bytes);
}

function readSnapshot(from: ByteReader): GroupSnapshot | null {
  const present = from.uint8();
  if (present === 0) return null;
  if (present !== 1) from.fail("neither a snapshot nor none");
  const seq = readSeq(from);
  return { seq, bytes: from.bytes(SNAPSHOT_BYTES_MAX).slice() };
}

function readFlag(from: ByteReader): boolean {
  const value = from.uint8();
  if (value > 1) from.fail("a yes/no value is neither 0 nor 1");
  return value === 1;
}

export function writeRecord(out: ByteWriter, record: VsrRecord): void {
  switch (record.kind) {
    case "entry":
      writeEntry(out, record.entry);
      return;
    case "promise":
      out.varint(record.view);
      return;
    case "newView":
      out.varint(record.epoch);
      writeMembers(out, record.members);
      out.varint(record.view);
      writeSeq(out, record.keep);
      writeSnapshot(out, record.snapshot);
      writeEntries(out, record.entries);
      return;
    case "commitMark":
      writeSeq(out, record.seq);
      return;
    case "epoch":
      out.varint(record.epoch);
      writeMembers(out, record.members);
      out.uint8(record.learner ? 1 : 0);
      return;
    case "broken":
      out.text(record.why);
      return;
    default:
      assertNever(record);
  }
}

export function readRecord(from: ByteReader, kind: VsrRecord["kind"]): VsrRecord {
  switch (kind) {
    case "entry":
      return { kind, entry: readEntry(from) };
    case "promise":
      return { kind, view: readViewOrNone(from) };
    case "newView":
      return {
        kind,
        epoch: readEpoch(from),
        members: readGroupMembers(from),
        view: readViewOrNone(from),
        keep: readSeq(from),
        snapshot: readSnapshot(from),
        entries: readEntries(from),
      };
    case "commitMark":
      return { kind, seq: readSeq(from) };
    case "epoch":
      return {
        kind,
        epoch: readEpoch(from),
        members: readGroupMembers(from),
        learner: readFlag(from),
      };
    case "broken":
      return { kind, why: from.text(BROKEN_BYTES_MAX) };
    default:
      return assertNever(kind);
  }
}

/** A whole group, for checkpoints. */
export function writeImage(out: ByteWriter, image: GroupImage): void {
  out.varint(image.epoch);
  writeMembers(out, image.members);
  out.uint8(image.learner ? 1 : 0);
  out.varint(image.knownView);
  out.varint(image.lastNormalView);
  writeSnapshot(out, image.snapshot);
  writeEntries(out, image.entries);
  writeSeq(out, image.commitMark);
  out.uint8(image.broken === null ? 0 : 1);
  if (image.broken !== null) out.text(image.broken);
}

export function readImage(from: ByteReader): GroupImage {
  return {
    epoch: readEpoch(from),
    members: readGroupMembers(from),
    learner: readFlag(from),
    knownView: readViewOrNone(from),
    lastNormalView: readViewOrNone(from),
    snapshot: readSnapshot(from),
    entries: readEntries(from),
    commitMark: readSeq(from),
    broken: readFlag(from) ? from.text(BROKEN_BYTES_MAX) : null,
  };
}

export function writeMessage(out: ByteWriter, message: VsrMessage): void {
  out.uint8(MESSAGE_KINDS.indexOf(message.kind));
  out.varint(message.epoch);
  switch (message.kind) {
    case "prepare":
      out.varint(message.view);
      writeEntries(out, message.entries);
      writeSeq(out, message.commit);
      out.float64(message.sentAt);
      return;
    case "prepareResponse":
      out.uint8(STATUSES.indexOf(message.status));
      out.varint(message.view);
      writeSeq(out, message.expected);
      writeSeq(out, message.acked);
      out.float64(message.sentAt);
      out.varint(message.round);
      return;
    case "commit":
      out.varint(message.view);
      writeSeq(out, message.commit);
      writeSeq(out, message.last);
      out.float64(message.sentAt);
      out.varint(message.round);
      out.uint8(message.sleeps ? 1 : 0);
      return;
    case "viewChange":
      out.varint(message.view);
      out.uint8(message.probe ? 1 : 0);
      return;
    case "viewChangeResponse":
      writeGrant(out, message);
      return;
    case "newView":
      out.varint(message.view);
      writeSeq(out, message.startSeq);
      writeSeq(out, message.commit);
      writeEntries(out, message.entries);
      return;
    case "fetchLog":
      out.varint(message.view);
      writeSeq(out, message.from);
      return;
    case "logSuffix":
      writeMembers(out, message.members);
      out.varint(message.view);
      out.varint(message.lastNormalView);
      writeSnapshot(out, message.snapshot);
      writeEntries(out, message.entries);
      writeSeq(out, message.lastSeq);
      writeSeq(out, message.commit);
      return;
    case "found":
    case "newerEpoch":
      writeMembers(out, message.members);
      return;
    case "unknownGroup":
      return;
    case "resign":
      out.varint(message.view);
      out.text(message.successor);
      return;
    default:
      assertNever(message);
  }
}

function writeGrant(
  out: ByteWriter,
  message: Extract<VsrMessage, { kind: "viewChangeResponse" }>,
): void {
  out.varint(message.view);
  out.uint8(message.probe ? 1 : 0);
  out.uint8(message.granted ? 1 : 0);
  out.varint(message.currentView);
  out.varint(message.lastNormalView);
  writeSeq(out, message.lastSeq);
  writeSeq(out, message.commit);
  writeEntries(out, message.entries);
  out.float64(message.leaseLeftMs);
}

export function readMessage(from: ByteReader): VsrMessage {
  const kind = MESSAGE_KINDS[from.uint8()];
  const epoch = readEpoch(from);
  if (kind === undefined) {
    from.fail("an unknown kind of message");
    return { kind: "unknownGroup", epoch };
  }
  return readBody(from, kind, epoch);
}

/** A view below 1 has no owner. */
function readView(from: ByteReader): number {
  const view = readViewOrNone(from);
  if (view === 0) from.fail("views begin at 1");
  return view;
}

function readTime(from: ByteReader): number {
  const value = from.float64();
  // -1 stands for "none".
  if (!(value >= -1 && value <= TIME_MS_MAX)) from.fail("a time beyond its bound");
  return value;
}

function readBody(from: ByteReader, kind: VsrMessageKind, epoch: number): VsrMessage {
  switch (kind) {
    case "prepare":
      return {
        kind,
        epoch,
        view: readView(from),
        entries: readEntries(from),
        commit: readSeq(from),
        sentAt: readTime(from),
      };
    case "prepareResponse":
      return {
        kind,
        epoch,
        status: readStatus(from),
        view: readViewOrNone(from),
        expected: readSeq(from),
        acked: readSeq(from),
        sentAt: readTime(from),
        round: from.varint(),
      };
    case "commit":
      return {
        kind,
        epoch,
        view: readView(from),
        commit: readSeq(from),
        last: readSeq(from),
        sentAt: readTime(from),
        round: from.varint(),
        sleeps: readFlag(from),
      };
    case "viewChange":
      return { kind, epoch, view: readView(from), probe: readFlag(from) };
    case "viewChangeResponse":
      return {
        kind,
        epoch,
        view: readView(from),
        probe: readFlag(from),
        granted: readFlag(from),
        currentView: readViewOrNone(from),
        lastNormalView: readViewOrNone(from),
        lastSeq: readSeq(from),
        commit: readSeq(from),
        entries: readEntries(from),
        leaseLeftMs: readTime(from),
      };
    default:
      return readLogMessage(from, kind, epoch);
  }
}

type LogMessageKind = Exclude<
  VsrMessageKind,
  "prepare" | "prepareResponse" | "commit" | "viewChange" | "viewChangeResponse"
>;

function readLogMessage(from: ByteReader, kind: LogMessageKind, epoch: number): VsrMessage {
  switch (kind) {
    case "newView":
      return {
        kind,
        epoch,
        view: readView(from),
        startSeq: readSeq(from),
        commit: readSeq(from),
        entries: readEntries(from),
      };
    case "fetchLog":
      return { kind, epoch, view: readViewOrNone(from), from: readSeq(from) };
    case "logSuffix":
      return {
        kind,
        epoch,
        members: readMembers(from),
        view: readView(from),
        lastNormalView: readViewOrNone(from),
        snapshot: readSnapshot(from),
        entries: readEntries(from),
        lastSeq: readSeq(from),
        commit: readSeq(from),
      };
    case "found":
    case "newerEpoch":
      return { kind, epoch, members: readGroupMembers(from) };
    case "unknownGroup":
      return { kind, epoch };
    case "resign":
      return {
        kind,
        epoch,
        view: readView(from),
        successor: from.text(NODE_ID_BYTES_MAX) as NodeId,
      };
    default:
      return assertNever(kind);
  }
}

function readStatus(from: ByteReader): PrepareStatus {
  const status = STATUSES[from.uint8()];
  if (status === undefined) from.fail("an unknown status");
  return status ?? "notOwner";
}
