/**
 * The bytes of what ledger nodes say to each other: batches of replication messages, requests sent on,
 * and answers. Total like all decoders: a batch is whole and within bounds, or refused.
 */

import { assertNever } from "../../base/assert.ts";
import { ByteReader, type ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { readMessage, writeMessage } from "../group/codec.ts";
import {
  EVENT_ID_BYTES_MAX,
  GROUP_ID_BYTES_MAX,
  type GroupId,
  MEMBERS_MAX,
} from "../group/messages.ts";
import type { ConditionFailure } from "../job/condition.ts";
import { DURABILITY_LEVELS, type Durability } from "../job/durability.ts";
import { decodeEvent, encodeEvent } from "../job/event-codec.ts";
import type { JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import {
  DC_ID_BYTES_MAX,
  EVENT_BYTES_MAX,
  JOB_DCS_MAX,
  JOB_ID_BYTES_MAX,
  JOB_SPEC_BYTES_MAX,
  JOB_STATE_BYTES_MAX,
} from "../job/limits.ts";
import { decodeJobState, encodeJobState } from "../job/state-codec.ts";
import type { SubmissionAnswer } from "../keys/decide.ts";
import { KEY_BYTES_MAX } from "../keys/key.ts";
import { readComparison, writeComparison } from "./comparison-codec.ts";
import { BATCH_MESSAGES_MAX } from "./config.ts";
import { type LedgerAnswer, type NodeMessage, type PeerRequest, READ_LEVELS } from "./messages.ts";
import { readItem, readWatch, writeItem, writeWatch } from "./watch-codec.ts";

const TEXT_BYTES_MAX = 4_096;
const RESULT_BYTES_MAX = 4_096;
const LEVELS = Object.keys(DURABILITY_LEVELS) as readonly Durability[];
const KINDS: readonly NodeMessage["kind"][] = [
  "vsr",
  "request",
  "answer",
  "compare",
  "introduction",
  "acquainted",
  "watch",
  "watched",
];
const END_OF_BATCH = 255;
const REQUESTS: readonly PeerRequest["kind"][] = ["submit", "append", "read", "replace", "found"];
const ANSWERS: readonly LedgerAnswer["kind"][] = [
  "committed",
  "unknown",
  "submitted",
  "job",
  "founded",
  "notFound",
  "redirect",
  "retry",
  "refused",
  "conflict",
];
const FAILURES: readonly ConditionFailure[] = ["SEQ_MOVED", "FENCE_MOVED"];
const SUBMISSIONS: readonly SubmissionAnswer["kind"][] = [
  "accepted",
  "rejected",
  "keyReused",
  "retry",
];

/** One message after the other, then a mark: a batch that was cut is none. */
export function encodeBatch(out: ByteWriter, messages: readonly NodeMessage[]): Uint8Array {
  out.clear();
  for (const message of messages) writeNodeMessage(out, message);
  return closeBatch(out);
}

/** The same in as many batches as it takes for none to grow past `bytesMax` by more than a message. */
export function encodeBatches(
  out: ByteWriter,
  messages: readonly NodeMessage[],
  bytesMax: number,
): Uint8Array[] {
  const batches: Uint8Array[] = [];
  out.clear();
  for (const message of messages) {
    writeNodeMessage(out, message);
    if (out.length >= bytesMax) batches.push(closeBatch(out));
  }
  if (out.length > 0) batches.push(closeBatch(out));
  return batches;
}

function closeBatch(out: ByteWriter): Uint8Array {
  out.uint8(END_OF_BATCH);
  const batch = out.take();
  out.clear();
  return batch;
}

function writeNodeMessage(out: ByteWriter, message: NodeMessage): void {
  out.uint8(KINDS.indexOf(message.kind));
  switch (message.kind) {
    case "vsr":
      out.text(message.group);
      writeMessage(out, message.message);
      return;
    case "request":
      out.varint(message.id);
      writeRequest(out, message.request);
      return;
    case "answer":
      out.varint(message.id);
      writeAnswer(out, message.answer);
      return;
    case "compare":
      writeComparison(out, message.message);
      return;
    case "watch":
      out.varint(message.id);
      writeWatch(out, message.request);
      return;
    case "watched":
      out.varint(message.id);
      writeItem(out, message.item);
      return;
    case "introduction":
    case "acquainted":
      return;
    default:
      assertNever(message);
  }
}

type DecodedBatch =
  | { readonly ok: true; readonly messages: readonly NodeMessage[] }
  | { readonly ok: false; readonly problem: string };

export function decodeBatch(bytes: Uint8Array): DecodedBatch {
  const from = new ByteReader(bytes);
  const messages: NodeMessage[] = [];
  for (let kind = from.uint8(); kind !== END_OF_BATCH && !from.failed; kind = from.uint8()) {
    if (messages.length === BATCH_MESSAGES_MAX) from.fail("too many messages in a batch");
    messages.push(readNodeMessage(from, kind));
  }
  if (from.remaining > 0) from.fail("bytes after the end of a batch");
  return from.problem === null ? { ok: true, messages } : { ok: false, problem: from.problem };
}

function readNodeMessage(from: ByteReader, place: number): NodeMessage {
  const kind = KINDS[place] ?? "vsr";
  if (kind !== KINDS[place]) from.fail("an unknown value of a fixed list");
  switch (kind) {
    case "vsr": {
      const group = from.text(GROUP_ID_BYTES_MAX) as GroupId;
      return { kind, group, message: readMessage(from) };
    }
    case "request":
      return { kind, id: from.varint(), request: readRequest(from) };
    case "answer":
      return { kind, id: from.varint(), answer: readAnswer(from) };
    case "compare":
      return { kind, message: readComparison(from) };
    case "watch":
      return { kind, id: from.varint(), request: readWatch(from) };
    case "watched":
      return { kind, id: from.varint(), item: readItem(from) };
    case "introduction":
    case "acquainted":
      return { kind };
    default:
      return assertNever(kind);
  }
}

function pick<Choice extends string>(from: ByteReader, choices: readonly Choice[]): Choice {
  const choice = choices[from.uint8()];
  if (choice === undefined) from.fail("an unknown value of a fixed list");
  return choice ?? (choices[0] as Choice);
}

function put<Choice extends string>(
  out: ByteWriter,
  choices: readonly Choice[],
  choice: Choice,
): void {
  out.uint8(choices.indexOf(choice));
}

function writeTexts(out: ByteWriter, texts: readonly string[]): void {
  out.varint(texts.length);
  for (const text of texts) out.text(text);
}

function readTexts(from: ByteReader, countMax: number, bytesMax: number): string[] {
  const count = from.varint();
  if (count > countMax) from.fail("too many texts in a list");
  const texts: string[] = [];
  for (let i = 0; i < count && !from.failed; i++) texts.push(from.text(bytesMax));
  return texts;
}

function readNodes(from: ByteReader): NodeId[] {
  const nodes = readTexts(from, MEMBERS_MAX, NODE_ID_BYTES_MAX) as NodeId[];
  if (new Set(nodes).size !== nodes.length) from.fail("a node is named twice");
  return nodes;
}

function writeOptional(out: ByteWriter, text: string | null): void {
  out.uint8(text === null ? 0 : 1);
  if (text !== null) out.text(text);
}

function readOptional(from: ByteReader): string | null {
  return from.uint8() === 0 ? null : from.text(TEXT_BYTES_MAX);
}

const NO_EVENT = { kind: "JobCreated" } as JobEvent;

function readEvent(from: ByteReader): JobEvent {
  const decoded = decodeEvent(from.bytes(EVENT_BYTES_MAX));
  if (decoded.ok) return decoded.value;
  from.fail(decoded.problem);
  return NO_EVENT;
}

function writeRequest(out: ByteWriter, request: PeerRequest): void {
  put(out, REQUESTS, request.kind);
  switch (request.kind) {
    case "submit":
      out.text(request.key);
      out.bytes(request.spec);
      writeTexts(out, request.assignedDcs);
      return;
    case "append":
      out.bytes(encodeEvent(request.event));
      put(out, LEVELS, request.durability);
      return;
    case "read":
      out.text(request.jobId);
      put(out, READ_LEVELS, request.level);
      out.varint(request.minSeq + 1);
      out.varint(Math.floor(request.staleMs));
      return;
    case "replace":
      out.text(request.group);
      out.text(request.eventId);
      out.text(request.leaving);
      out.text(request.joining);
      return;
    case "found":
      writeTexts(out, request.members);
      out.bytes(encodeEvent(request.created));
      put(out, LEVELS, request.required);
      return;
    default:
      assertNever(request);
  }
}

function readRequest(from: ByteReader): PeerRequest {
  const kind = pick(from, REQUESTS);
  switch (kind) {
    case "submit":
      return {
        kind,
        key: from.text(KEY_BYTES_MAX),
        spec: from.bytes(JOB_SPEC_BYTES_MAX).slice(),
        assignedDcs: readTexts(from, JOB_DCS_MAX, DC_ID_BYTES_MAX),
      };
    case "append":
      return { kind, event: readEvent(from), durability: pick(from, LEVELS) };
    case "read":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX) as JobId,
        level: pick(from, READ_LEVELS),
        minSeq: from.varint() - 1,
        staleMs: from.varint(),
      };
    case "replace":
      return {
        kind,
        group: from.text(GROUP_ID_BYTES_MAX) as GroupId,
        eventId: from.text(EVENT_ID_BYTES_MAX),
        leaving: from.text(NODE_ID_BYTES_MAX) as NodeId,
        joining: from.text(NODE_ID_BYTES_MAX) as NodeId,
      };
    case "found": {
      const members = readNodes(from);
      const created = readEvent(from);
      const required = pick(from, LEVELS);
      if (created.kind === "JobCreated") return { kind, members, created, required };
      from.fail("a group is founded by the creation of its job");
      return { kind: "read", jobId: created.jobId, level: "EVENTUAL", minSeq: -1, staleMs: 0 };
    }
    default:
      return assertNever(kind);
  }
}

function writeAnswer(out: ByteWriter, answer: LedgerAnswer): void {
  put(out, ANSWERS, answer.kind);
  switch (answer.kind) {
    case "committed":
      out.text(answer.jobId);
      out.text(answer.eventId);
      out.varint(answer.seq + 1);
      out.text(answer.outcome);
      writeOptional(out, answer.reason);
      out.uint8(answer.duplicate ? 1 : 0);
      put(out, LEVELS, answer.level);
      put(out, LEVELS, answer.required);
      out.varint(answer.view);
      return;
    case "unknown":
      out.text(answer.eventId);
      put(out, LEVELS, answer.level);
      out.text(answer.why);
      return;
    case "submitted":
      writeSubmission(out, answer.answer);
      return;
    case "job":
      out.bytes(encodeJobState(answer.state));
      out.text(answer.servedBy);
      writeOptional(out, answer.primary);
      out.varint(answer.view);
      writeTexts(out, answer.members);
      return;
    case "founded":
      out.varint(answer.seq + 1);
      put(out, LEVELS, answer.level);
      return;
    case "notFound":
      out.text(answer.jobId);
      return;
    case "redirect":
      writeOptional(out, answer.primary);
      return;
    case "retry":
      out.text(answer.why);
      return;
    case "refused":
      out.text(answer.code);
      out.text(answer.message);
      return;
    case "conflict":
      out.text(answer.jobId);
      out.text(answer.eventId);
      put(out, FAILURES, answer.reason);
      out.varint(answer.seq + 1);
      out.varint(answer.fence);
      return;
    default:
      assertNever(answer);
  }
}

function readAnswer(from: ByteReader): LedgerAnswer {
  const kind = pick(from, ANSWERS);
  switch (kind) {
    case "committed":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        eventId: from.text(EVENT_ID_BYTES_MAX),
        seq: from.varint() - 1,
        outcome: from.text(TEXT_BYTES_MAX),
        reason: readOptional(from),
        duplicate: from.uint8() === 1,
        level: pick(from, LEVELS),
        required: pick(from, LEVELS),
        view: from.varint(),
      };
    case "unknown":
      return {
        kind,
        eventId: from.text(EVENT_ID_BYTES_MAX),
        level: pick(from, LEVELS),
        why: from.text(TEXT_BYTES_MAX),
      };
    case "submitted":
      return { kind, answer: readSubmission(from) };
    case "job":
      return readJob(from);
    case "founded":
      return { kind, seq: from.varint() - 1, level: pick(from, LEVELS) };
    case "notFound":
      return { kind, jobId: from.text(GROUP_ID_BYTES_MAX) };
    case "redirect":
      return { kind, primary: readOptional(from) as NodeId | null };
    case "retry":
      return { kind, why: from.text(TEXT_BYTES_MAX) };
    case "refused":
      return { kind, code: from.text(TEXT_BYTES_MAX), message: from.text(TEXT_BYTES_MAX) };
    case "conflict":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        eventId: from.text(EVENT_ID_BYTES_MAX),
        reason: pick(from, FAILURES),
        seq: from.varint() - 1,
        fence: from.varint(),
      };
    default:
      return assertNever(kind);
  }
}

function readJob(from: ByteReader): LedgerAnswer {
  const decoded = decodeJobState(from.bytes(JOB_STATE_BYTES_MAX));
  const servedBy = from.text(NODE_ID_BYTES_MAX) as NodeId;
  const primary = readOptional(from) as NodeId | null;
  const view = from.varint();
  const members = readNodes(from);
  if (decoded.ok) return { kind: "job", state: decoded.value, servedBy, primary, view, members };
  from.fail(decoded.problem);
  return { kind: "retry", why: decoded.problem };
}

function writeSubmission(out: ByteWriter, answer: SubmissionAnswer): void {
  put(out, SUBMISSIONS, answer.kind);
  switch (answer.kind) {
    case "accepted":
      out.text(answer.jobId);
      out.bytes(answer.ack);
      out.uint8(answer.duplicate ? 1 : 0);
      return;
    case "rejected":
      out.bytes(answer.result);
      out.uint8(answer.duplicate ? 1 : 0);
      return;
    case "keyReused":
      return;
    case "retry":
      out.text(answer.why);
      return;
    default:
      assertNever(answer);
  }
}

function readSubmission(from: ByteReader): SubmissionAnswer {
  const kind = pick(from, SUBMISSIONS);
  switch (kind) {
    case "accepted":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        ack: from.bytes(RESULT_BYTES_MAX).slice(),
        duplicate: from.uint8() === 1,
      };
    case "rejected":
      return {
        kind,
        result: from.bytes(RESULT_BYTES_MAX).slice(),
        duplicate: from.uint8() === 1,
      };
    case "keyReused":
      return { kind };
    case "retry":
      return { kind, why: from.text(TEXT_BYTES_MAX) };
    default:
      return assertNever(kind);
  }
}
