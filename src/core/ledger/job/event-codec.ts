/**
 * Job events as bytes: a version, the type, the head, the fields in the order of their declaration.
 *
 *     version(1) · type(1) · jobId · eventId · fenceToken · hlc · condition? · fields
 *
 * Version 1 has no condition and version 2 has one; an event is written in the lowest version that can express it, so
 * its bytes are those of the build that first knew it. Texts and bytes carry their length, numbers are varints. The
 * decoder is total: any bytes give an event or a problem text, never an exception, and nothing longer than its limit is
 * accepted. One event has one encoding, so equal bytes and equal events are the same thing for the chain of hashes.
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { HLC_LOGICAL_MAX, HLC_WALL_MS_MAX, type Hlc } from "../../base/hlc.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import type { Condition } from "./condition.ts";
import {
  EVENT_KINDS,
  EVENT_TYPES,
  type EventId,
  type JobEvent,
  type JobEventKind,
  problemOf,
} from "./events.ts";
import type { JobId } from "./job-id.ts";
import * as limits from "./limits.ts";
import { readRunBody, writeRunBody } from "./run-event-codec.ts";

export const EVENT_VERSION = 1;
const CONDITIONAL_VERSION = 2;
/** Which parts a condition has. */
const IF_SEQ = 1;
const IF_FENCE = 2;

export type Decoded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

/** The event must have passed `problemOf` at the edge; one that has not is a defect here. */
export function encodeEvent(event: JobEvent): Uint8Array {
  const problem = problemOf(event);
  assert(problem === null, `an event is within its limits: ${problem}`);
  const writer = new ByteWriter(128);
  writer.uint8(event.condition === undefined ? EVENT_VERSION : CONDITIONAL_VERSION);
  writer.uint8(EVENT_TYPES[event.kind]);
  writer.text(event.jobId);
  writer.text(event.eventId);
  writer.varint(event.fenceToken);
  writeHlc(writer, event.hlc);
  if (event.condition !== undefined) writeCondition(writer, event.condition);
  writeBody(writer, event);
  return writer.take();
}

function writeCondition(writer: ByteWriter, { ifSeq, ifFence }: Condition): void {
  writer.uint8((ifSeq === null ? 0 : IF_SEQ) | (ifFence === null ? 0 : IF_FENCE));
  if (ifSeq !== null) writer.varint(ifSeq);
  if (ifFence !== null) writer.varint(ifFence);
}

function readCondition(reader: ByteReader): Condition {
  const flags = reader.uint8();
  if (flags === 0 || flags > (IF_SEQ | IF_FENCE)) reader.fail(`${flags} is no condition`);
  const ifSeq = (flags & IF_SEQ) === 0 ? null : reader.varint();
  return { ifSeq, ifFence: (flags & IF_FENCE) === 0 ? null : reader.varint() };
}

function writeBody(writer: ByteWriter, event: JobEvent): void {
  switch (event.kind) {
    case "JobCreated":
      writer.bytes(event.spec);
      writeTexts(writer, event.assignedDcs);
      return;
    case "JobAccepted":
      writer.text(event.dcId);
      writer.varint(event.workerCount);
      return;
    case "JobProgressReported":
      writer.text(event.dcId);
      writer.varint(event.completed);
      writer.varint(event.failed);
      return;
    case "JobCancellationRequested":
      writer.text(event.reason);
      writer.text(event.requestor);
      return;
    case "JobCancellationAcked":
      writer.text(event.dcId);
      writer.varint(event.workflowsCancelled);
      return;
    case "JobCompleted":
      writer.text(event.finalStatus);
      writer.bytes(event.aggregateMetrics);
      return;
    case "JobFailed":
      writer.text(event.error);
      writer.text(event.failedDc);
      return;
    case "JobTimedOut":
      writer.text(event.timeoutType);
      writeOptionalHlc(writer, event.lastProgressHlc);
      return;
    default:
      writeRunBody(writer, event);
  }
}

export function decodeEvent(bytes: Uint8Array): Decoded<JobEvent> {
  const tooLong = bytes.length > limits.EVENT_BYTES_MAX;
  if (tooLong) return { ok: false, problem: `${bytes.length} bytes are too many for an event` };
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== EVENT_VERSION && version !== CONDITIONAL_VERSION) {
    const known = `${EVENT_VERSION} and ${CONDITIONAL_VERSION}`;
    return { ok: false, problem: `event version ${version}; this build reads ${known}` };
  }
  const type = reader.uint8();
  const kind = EVENT_KINDS[type - 1];
  if (kind === undefined) return { ok: false, problem: `unknown event type ${type}` };
  const event = readEvent(reader, kind, version === CONDITIONAL_VERSION);
  if (reader.remaining > 0) reader.fail(`${reader.remaining} bytes too many`);
  const problem = reader.problem ?? problemOf(event);
  return problem === null ? { ok: true, value: event } : { ok: false, problem };
}

function readEvent(reader: ByteReader, kind: JobEventKind, conditional: boolean): JobEvent {
  const head = {
    jobId: reader.text(limits.JOB_ID_BYTES_MAX) as JobId,
    eventId: reader.text(limits.EVENT_ID_BYTES_MAX) as EventId,
    fenceToken: reader.varint(),
    hlc: readHlc(reader),
    ...(conditional ? { condition: readCondition(reader) } : {}),
  };
  const dc = (): string => reader.text(limits.DC_ID_BYTES_MAX);
  switch (kind) {
    case "JobCreated": {
      // A copy: a view would keep the whole packet or segment alive for as long as the job.
      const spec = reader.bytes(limits.JOB_SPEC_BYTES_MAX).slice();
      return { kind, ...head, spec, assignedDcs: readTexts(reader, dc) };
    }
    case "JobAccepted":
      return { kind, ...head, dcId: dc(), workerCount: reader.varint() };
    case "JobProgressReported":
      return { kind, ...head, dcId: dc(), completed: reader.varint(), failed: reader.varint() };
    case "JobCancellationRequested": {
      const reason = reader.text(limits.REASON_BYTES_MAX);
      return { kind, ...head, reason, requestor: reader.text(limits.REQUESTOR_BYTES_MAX) };
    }
    case "JobCancellationAcked":
      return { kind, ...head, dcId: dc(), workflowsCancelled: reader.varint() };
    case "JobCompleted": {
      const finalStatus = reader.text(limits.FINAL_STATUS_BYTES_MAX);
      const aggregateMetrics = reader.bytes(limits.AGGREGATE_METRICS_BYTES_MAX).slice();
      return { kind, ...head, finalStatus, aggregateMetrics };
    }
    case "JobFailed":
      return { kind, ...head, error: reader.text(limits.ERROR_BYTES_MAX), failedDc: dc() };
    case "JobTimedOut": {
      const timeoutType = reader.text(limits.TIMEOUT_TYPE_BYTES_MAX);
      return { kind, ...head, timeoutType, lastProgressHlc: readOptionalHlc(reader) };
    }
    default:
      return { ...head, ...readRunBody(reader, kind) };
  }
}

export function writeHlc(writer: ByteWriter, hlc: Hlc): void {
  writer.varint(hlc.wallMs);
  writer.varint(hlc.logical);
  writer.text(hlc.node);
}

export function readHlc(reader: ByteReader): Hlc {
  const wallMs = reader.varint();
  const logical = reader.varint();
  if (wallMs > HLC_WALL_MS_MAX || logical > HLC_LOGICAL_MAX) reader.fail("a time beyond its bound");
  return { wallMs, logical, node: reader.text(NODE_ID_BYTES_MAX) as NodeId };
}

export function writeOptionalHlc(writer: ByteWriter, hlc: Hlc | null): void {
  writer.uint8(hlc === null ? 0 : 1);
  if (hlc !== null) writeHlc(writer, hlc);
}

export function readOptionalHlc(reader: ByteReader): Hlc | null {
  const present = reader.uint8();
  if (present > 1) reader.fail(`${present} where 0 or 1 is expected`);
  return present === 1 ? readHlc(reader) : null;
}

export function writeTexts(writer: ByteWriter, texts: readonly string[]): void {
  writer.varint(texts.length);
  for (const text of texts) writer.text(text);
}

export function readTexts(reader: ByteReader, readOne: () => string): readonly string[] {
  const count = reader.varint();
  if (count > limits.JOB_DCS_MAX) reader.fail(`${count} names are too many`);
  const texts: string[] = [];
  for (let i = 0; i < count && !reader.failed; i++) texts.push(readOne());
  return texts;
}
