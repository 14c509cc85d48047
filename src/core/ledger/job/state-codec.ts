/**
 * A job's state as bytes, for checkpoints and for bringing a replica up to date (CKPT-10). A restored
 * state folds on exactly as the original would: trail and chain are part of it.
 *
 *     version · jobId · status · spec · assigned · accepted · cancellation? · end? · endedAt?
 *     · fence · hlc? · seq + 1 · changed + 1 · chain · trail · forgotten · run
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import {
  type Decoded,
  readHlc,
  readOptionalHlc,
  readTexts,
  writeHlc,
  writeOptionalHlc,
  writeTexts,
} from "./event-codec.ts";
import { EVENT_KINDS, EVENT_TYPES, type EventId } from "./events.ts";
import { countForgotten, FINGERPRINT_MAX, type Forgotten, forget } from "./forgotten.ts";
import type { JobId } from "./job-id.ts";
import {
  type AcceptedDc,
  type Cancellation,
  CHAIN_BYTES,
  JOB_STATUSES,
  type JobEnd,
  type JobState,
  NO_RUN,
} from "./job-state.ts";
import * as limits from "./limits.ts";
import { readRun, writeRun } from "./run-state-codec.ts";
import {
  addToTrail,
  CHUNK_EVENTS,
  EMPTY_TRAIL,
  type Trail,
  type TrailEntry,
  type TrailOutcome,
  trailEntries,
} from "./trail.ts";

/**
 * Version 1 did not have the place of the last change; the trail gives it. Version 2 forgot old events.
 * Version 3 knew of no runs.
 */
const JOB_STATE_VERSION = 4;
const FIRST_VERSION = 1;
const FORGETFUL_VERSION = 2;
const VERSIONS = [FIRST_VERSION, FORGETFUL_VERSION, 3, JOB_STATE_VERSION];

const OUTCOMES: readonly TrailOutcome[] = ["applied", "noop", "rejected", "alreadyTerminal"];
const ENDS: readonly JobEnd["kind"][] = ["completed", "failed", "timedOut", "cancelled"];
const REJECT_REASON_BYTES_MAX = 32;

export function encodeJobState(state: JobState): Uint8Array {
  const writer = new ByteWriter(256 + state.spec.length);
  writer.uint8(JOB_STATE_VERSION);
  writer.text(state.jobId);
  writer.uint8(JOB_STATUSES.indexOf(state.status));
  writer.bytes(state.spec);
  writeTexts(writer, state.assignedDcs);
  writer.varint(state.accepted.length);
  for (const dc of state.accepted) {
    writer.text(dc.dcId);
    writer.varint(dc.workerCount);
    writer.varint(dc.fenceToken);
    writeHlc(writer, dc.hlc);
  }
  writeCancellation(writer, state.cancellation);
  writeEnd(writer, state.end);
  writeOptionalHlc(writer, state.endedAt);
  writer.varint(state.fenceToken);
  writeOptionalHlc(writer, state.hlc);
  writer.varint(state.appliedSeq + 1);
  writer.varint(state.changedSeq + 1);
  writer.raw(state.chain);
  writeTrail(writer, state.trail);
  writeRun(writer, state.run);
  assert(writer.length <= limits.JOB_STATE_BYTES_MAX, "a job's state is within its limit");
  return writer.take();
}

function writeCancellation(writer: ByteWriter, cancellation: Cancellation | null): void {
  writer.uint8(cancellation === null ? 0 : 1);
  if (cancellation === null) return;
  writer.text(cancellation.eventId);
  writer.text(cancellation.reason);
  writer.text(cancellation.requestor);
  writeTexts(writer, cancellation.ackedDcs);
  writer.varint(cancellation.workflowsCancelled);
}

function writeEnd(writer: ByteWriter, end: JobEnd | null): void {
  writer.uint8(end === null ? 0 : 1 + ENDS.indexOf(end.kind));
  switch (end?.kind) {
    case "completed":
      writer.text(end.finalStatus);
      writer.bytes(end.aggregateMetrics);
      return;
    case "failed":
      writer.text(end.error);
      writer.text(end.failedDc);
      return;
    case "timedOut":
      writer.text(end.timeoutType);
      writeOptionalHlc(writer, end.lastProgressHlc);
      return;
    case "cancelled":
      writeTexts(writer, end.unackedDcs);
      return;
  }
}

function writeTrail(writer: ByteWriter, trail: Trail): void {
  const entries = [...trailEntries(trail)];
  writer.varint(entries.length);
  for (const entry of entries) {
    writer.varint(entry.seq);
    writer.text(entry.eventId);
    writer.uint8(EVENT_TYPES[entry.kind]);
    writeHlc(writer, entry.hlc);
    writer.uint8(OUTCOMES.indexOf(entry.outcome));
    writer.text(entry.reason ?? "");
  }
  writer.varint(countForgotten(trail.forgotten));
  for (const block of trail.forgotten) for (const one of block) writer.float64(one);
}

/** Total: any bytes give a state or a problem text. */
export function decodeJobState(bytes: Uint8Array): Decoded<JobState> {
  if (bytes.length > limits.JOB_STATE_BYTES_MAX) {
    return { ok: false, problem: `${bytes.length} bytes are too many for a job's state` };
  }
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (!VERSIONS.includes(version)) {
    const problem = `state version ${version}; this build reads ${VERSIONS.join(", ")}`;
    return { ok: false, problem };
  }
  const state = readState(reader, version);
  if (reader.remaining > 0) reader.fail(`${reader.remaining} bytes too many`);
  const problem = reader.problem;
  return problem === null ? { ok: true, value: state } : { ok: false, problem };
}

function readState(reader: ByteReader, version: number): JobState {
  const dc = (): string => reader.text(limits.DC_ID_BYTES_MAX);
  const state = {
    jobId: reader.text(limits.JOB_ID_BYTES_MAX) as JobId,
    status: readOneOf(reader, JOB_STATUSES),
    // A copy: a view would keep the whole snapshot alive.
    spec: reader.bytes(limits.JOB_SPEC_BYTES_MAX).slice(),
    assignedDcs: readTexts(reader, dc),
    accepted: readAccepted(reader, dc),
    cancellation: readCancellation(reader, dc),
    end: readEnd(reader, dc),
    endedAt: readOptionalHlc(reader),
    fenceToken: reader.varint(),
    hlc: readOptionalHlc(reader),
    appliedSeq: reader.varint() - 1,
    changedSeq: version === FIRST_VERSION ? -1 : reader.varint() - 1,
    chain: reader.raw(CHAIN_BYTES).slice(),
    trail: readTrail(reader, version),
    run: version < JOB_STATE_VERSION ? NO_RUN : readRun(reader),
  };
  return version === FIRST_VERSION ? { ...state, changedSeq: lastChange(state.trail) } : state;
}

function lastChange(trail: Trail): number {
  let last = -1;
  for (const { seq, outcome } of trailEntries(trail)) if (outcome === "applied") last = seq;
  return last;
}

function readAccepted(reader: ByteReader, dc: () => string): readonly AcceptedDc[] {
  const count = reader.varint();
  if (count > limits.JOB_DCS_MAX) reader.fail(`${count} datacenters are too many`);
  const accepted: AcceptedDc[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    accepted.push({
      dcId: dc(),
      workerCount: reader.varint(),
      fenceToken: reader.varint(),
      hlc: readHlc(reader),
    });
  }
  return accepted;
}

function readCancellation(reader: ByteReader, dc: () => string): Cancellation | null {
  const present = reader.uint8();
  if (present > 1) reader.fail(`${present} where 0 or 1 is expected`);
  if (present !== 1) return null;
  return {
    eventId: reader.text(limits.EVENT_ID_BYTES_MAX) as EventId,
    reason: reader.text(limits.REASON_BYTES_MAX),
    requestor: reader.text(limits.REQUESTOR_BYTES_MAX),
    ackedDcs: readTexts(reader, dc),
    workflowsCancelled: reader.varint(),
  };
}

function readEnd(reader: ByteReader, dc: () => string): JobEnd | null {
  const type = reader.uint8();
  if (type === 0) return null;
  const kind = ENDS[type - 1];
  switch (kind) {
    case "completed": {
      const finalStatus = reader.text(limits.FINAL_STATUS_BYTES_MAX);
      const metrics = reader.bytes(limits.AGGREGATE_METRICS_BYTES_MAX).slice();
      return { kind, finalStatus, aggregateMetrics: metrics };
    }
    case "failed":
      return { kind, error: reader.text(limits.ERROR_BYTES_MAX), failedDc: dc() };
    case "timedOut": {
      const timeoutType = reader.text(limits.TIMEOUT_TYPE_BYTES_MAX);
      return { kind, timeoutType, lastProgressHlc: readOptionalHlc(reader) };
    }
    case "cancelled":
      return { kind, unackedDcs: readTexts(reader, dc) };
    default:
      reader.fail(`unknown end ${type}`);
      return null;
  }
}

function readTrail(reader: ByteReader, version: number): Trail {
  const count = reader.varint();
  if (count > limits.TRAIL_EVENTS_MAX) reader.fail(`a trail of ${count} is too long`);
  let trail = EMPTY_TRAIL;
  for (let i = 0; i < count && !reader.failed; i++) trail = addToTrail(trail, readEntry(reader));
  return version <= FORGETFUL_VERSION ? trail : { ...trail, forgotten: readForgotten(reader) };
}

/** In the chunks that they were forgotten in, so that the blocks become the same. */
function readForgotten(reader: ByteReader): Forgotten {
  const count = reader.varint();
  if (count > limits.FORGOTTEN_EVENTS_MAX) reader.fail(`${count} forgotten events are too many`);
  let forgotten: Forgotten = [];
  for (let at = 0; at < count && !reader.failed; at += CHUNK_EVENTS) {
    const chunk = new Set<number>();
    for (let i = at; i < Math.min(count, at + CHUNK_EVENTS); i++)
      chunk.add(readFingerprint(reader));
    forgotten = forget(forgotten, chunk);
  }
  return forgotten;
}

function readFingerprint(reader: ByteReader): number {
  const value = reader.float64();
  if (Number.isInteger(value) && value >= 0 && value <= FINGERPRINT_MAX) return value;
  reader.fail("a fingerprint is a whole number of 52 bits");
  return 0;
}

function readEntry(reader: ByteReader): TrailEntry {
  const seq = reader.varint();
  const eventId = reader.text(limits.EVENT_ID_BYTES_MAX) as EventId;
  const type = reader.uint8();
  const kind = EVENT_KINDS[type - 1];
  if (kind === undefined) reader.fail(`unknown event type ${type}`);
  const hlc = readHlc(reader);
  const outcome = readOneOf(reader, OUTCOMES);
  const reason = reader.text(REJECT_REASON_BYTES_MAX);
  return {
    seq,
    eventId,
    kind: kind ?? "JobCreated",
    hlc,
    outcome,
    reason: reason === "" ? null : reason,
  };
}

function readOneOf<Name extends string>(reader: ByteReader, names: readonly Name[]): Name {
  const at = reader.uint8();
  const name = names[at] ?? names[0];
  if (names[at] === undefined)
    reader.fail(`${at} where a number below ${names.length} is expected`);
  assert(name !== undefined, "a list of names is not empty");
  return name;
}
