/** How a job is run, as bytes: the end of a job's state since its version 4. */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { readHlc, writeHlc } from "./event-codec.ts";
import type { DcResult, DispatchedDc, RunState, SetUp, Started } from "./job-state.ts";
import * as limits from "./limits.ts";
import { readShares, writeShares } from "./run-event-codec.ts";

export function writeRun(writer: ByteWriter, run: RunState): void {
  writer.varint(run.dispatched.length);
  for (const { dcId, cores, attempt, digest, fenceToken, hlc } of run.dispatched) {
    writer.text(dcId);
    writer.varint(cores);
    writer.varint(attempt);
    writer.raw(digest);
    writer.varint(fenceToken);
    writeHlc(writer, hlc);
  }
  writer.uint8(run.started === null ? 0 : 1);
  if (run.started !== null) {
    writer.varint(run.started.startAtMs);
    writer.raw(run.started.planDigest);
    writeShares(writer, run.started.shares);
  }
  writer.varint(run.permille);
  writer.varint(run.setUps.length);
  for (const { workflow, value } of run.setUps) {
    writer.text(workflow);
    writer.bytes(value);
  }
  writer.varint(run.results.length);
  for (const result of run.results) writeResult(writer, result);
  writer.uint8(run.aborted ? 1 : 0);
}

function writeResult(writer: ByteWriter, result: DcResult): void {
  writer.text(result.dcId);
  writer.text(result.finalStatus);
  writer.raw(result.digest);
  writer.varint(result.bytes);
  writer.varint(result.completed);
  writer.varint(result.failed);
  writer.varint(result.fenceToken);
  writeHlc(writer, result.hlc);
}

export function readRun(reader: ByteReader): RunState {
  const dc = (): string => reader.text(limits.DC_ID_BYTES_MAX);
  return {
    dispatched: list(reader, limits.JOB_DCS_MAX, () => readDispatched(reader, dc)),
    started: flag(reader) ? readStarted(reader, dc) : null,
    permille: reader.varint(),
    setUps: list(reader, limits.SET_UPS_MAX, () => readSetUp(reader)),
    results: list(reader, limits.JOB_DCS_MAX, () => readResult(reader, dc)),
    aborted: flag(reader),
  };
}

function list<Item>(reader: ByteReader, countMax: number, readOne: () => Item): readonly Item[] {
  const count = reader.varint();
  if (count > countMax) reader.fail(`${count} where at most ${countMax} are allowed`);
  const items: Item[] = [];
  for (let i = 0; i < count && !reader.failed; i++) items.push(readOne());
  return items;
}

function flag(reader: ByteReader): boolean {
  const value = reader.uint8();
  if (value > 1) reader.fail(`${value} where 0 or 1 is expected`);
  return value === 1;
}

function digest(reader: ByteReader): Uint8Array {
  return reader.raw(limits.DIGEST_BYTES).slice();
}

function readDispatched(reader: ByteReader, dc: () => string): DispatchedDc {
  return {
    dcId: dc(),
    cores: reader.varint(),
    attempt: reader.varint(),
    digest: digest(reader),
    fenceToken: reader.varint(),
    hlc: readHlc(reader),
  };
}

function readStarted(reader: ByteReader, dc: () => string): Started {
  const startAtMs = reader.varint();
  return { startAtMs, planDigest: digest(reader), shares: readShares(reader, dc) };
}

function readSetUp(reader: ByteReader): SetUp {
  const workflow = reader.text(limits.WORKFLOW_NAME_BYTES_MAX);
  return { workflow, value: reader.bytes(limits.SET_UP_VALUE_BYTES_MAX).slice() };
}

function readResult(reader: ByteReader, dc: () => string): DcResult {
  return {
    dcId: dc(),
    finalStatus: reader.text(limits.FINAL_STATUS_BYTES_MAX),
    digest: digest(reader),
    bytes: reader.varint(),
    completed: reader.varint(),
    failed: reader.varint(),
    fenceToken: reader.varint(),
    hlc: readHlc(reader),
  };
}
