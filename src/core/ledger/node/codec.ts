/**
 * Binary encoding of messages between ledger nodes: batches of replication messages, forwarded requests, and answers.
 * Total like all decoders: a batch is complete and within bounds, or rejected.
 */

import { assertNever } from "../../base/assert.ts";
import { ByteReader, type ByteWriter } from "../../base/bytes.ts";
import { readMessage, writeMessage } from "../group/codec.ts";
import { GROUP_ID_BYTES_MAX, type GroupId } from "../group/messages.ts";
import { encodeEvent } from "../job/event-codec.ts";
import { encodeJobState } from "../job/state-codec.ts";
import { readAnswer, readJobState, writeAnswer } from "./answer-codec.ts";
import { readComparison, writeComparison } from "./comparison-codec.ts";
import { BATCH_MESSAGES_MAX } from "./config.ts";
import type { NodeMessage } from "./messages.ts";
import { readEvent, readRequest, writeRequest } from "./request-codec.ts";
import { readItem, readWatch, writeItem, writeWatch } from "./watch-codec.ts";

const KINDS: readonly NodeMessage["kind"][] = [
  "vsr",
  "request",
  "answer",
  "compare",
  "introduction",
  "acquainted",
  "watch",
  "watched",
  "archived",
  "stop",
];
const END_OF_BATCH = 255;

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
    case "stop":
      out.bytes(encodeEvent(message.event));
      return;
    case "watch":
      out.varint(message.id);
      writeWatch(out, message.request);
      return;
    case "watched":
      out.varint(message.id);
      writeItem(out, message.item);
      return;
    case "archived":
      out.bytes(encodeJobState(message.state));
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
    case "stop":
      return { kind, event: readEvent(from) };
    case "watch":
      return { kind, id: from.varint(), request: readWatch(from) };
    case "watched":
      return { kind, id: from.varint(), item: readItem(from) };
    case "archived":
      return { kind, state: readJobState(from) };
    case "introduction":
    case "acquainted":
      return { kind };
    default:
      return assertNever(kind);
  }
}
