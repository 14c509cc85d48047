/**
 * The numbers of one step: recorded on an executor core, carried in small frames, held per core by
 * the coordinator and merged there.
 *
 *   core 0  StepRecorder ─ frame ─► StepTotals(core 0) ─┐
 *   core 1  StepRecorder ─ frame ─► StepTotals(core 1) ─┴─ mergeInto ─► StepTotals (all)
 *                                        └─ differences ─► WindowSink (series over time)
 *
 * A frame carries absolute values of what changed, so it may come twice; a core that dies leaves
 * behind exactly what it last sent. `record` is on the hot path of every request: no allocation,
 * some 40 ns with time to first byte on a busy machine (bench/micro/README.md).
 *
 * A reset (the end of the warm-up) raises the generation: the receiver drops what it held from the
 * generation before and ignores frames of it that arrive late.
 */

import { assert } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import {
  applyCellChanges,
  type CellChanges,
  CellRecorder,
  readCellChanges,
} from "./cell-recorder.ts";
import { Histogram } from "./histogram.ts";

/** Statuses below this have a counter of their own; rarer ones share a map. */
const STATUS_TABLE = 600;
/** Distinct statuses outside the table, per step; a peer that invents more is counted under `STATUS_OTHER`. */
const STATUS_MAP_MAX = 64;
export const STATUS_OTHER = 0xffff;
const STATUS_MAX = 0xffff;

/** Receives what came in since the last frame, for the window of time it arrived in. */
export interface WindowSink {
  addRequests(requests: number, failed: number): void;
  /** So many latencies more in this cell of the histogram. */
  addLatency(cell: number, count: number): void;
}

const OK = 0;
const INTERRUPTED = 1;
const BYTES_IN = 2;
const BYTES_OUT = 3;
/** Of those, ended when the measured time was over: four counts, see `Outside`. */
const LATE = 4;
/** Not of those: due in the warm-up, ended in the measured time. */
const EARLY = 8;
/** Errors by kind follow. */
const KINDS = 12;

/** What rates leave out, or take in: calls, failed ones among them, and their bytes. */
interface Outside {
  calls: number;
  failed: number;
  bytesIn: number;
  bytesOut: number;
}

export class StepRecorder {
  readonly #corrected: boolean;
  readonly #counts: Float64Array;
  readonly #statuses = new Float64Array(STATUS_TABLE);
  readonly #statusTouched = new Uint8Array(STATUS_TABLE);
  readonly #rareStatuses = new Map<number, number>();
  readonly #latency = new CellRecorder();
  readonly #service = new CellRecorder();
  readonly #firstByte = new CellRecorder();
  readonly #connect = new CellRecorder();
  readonly #tls = new CellRecorder();
  /** Failures are few: latencies of successes are all without these. */
  readonly #failedLatency = new CellRecorder();
  #generation = 0;
  #changed = false;

  /** `corrected`: latency (from the intended start) and service time differ, and both are kept. */
  constructor(errorKinds: number, corrected: boolean) {
    this.#corrected = corrected;
    this.#counts = new Float64Array(KINDS + errorKinds);
  }

  /** Something was recorded since the last frame. */
  get changed(): boolean {
    return this.#changed;
  }

  /**
   * Times in microseconds, negative where there was none (no latency: never on the wire);
   * `errorKind` -1 for success; `status` 0 for none.
   */
  record(
    errorKind: number,
    status: number,
    latencyUs: number,
    serviceUs: number,
    firstByteUs: number,
    connectUs: number,
    tlsUs: number,
    bytesIn: number,
    bytesOut: number,
  ): void {
    const counts = this.#counts;
    this.#changed = true;
    const outcome = errorKind < 0 ? OK : KINDS + errorKind;
    counts[outcome] = (counts[outcome] as number) + 1;
    counts[BYTES_IN] = (counts[BYTES_IN] as number) + bytesIn;
    counts[BYTES_OUT] = (counts[BYTES_OUT] as number) + bytesOut;
    if (status > 0) this.#countStatus(status);
    if (latencyUs >= 0) {
      this.#latency.record(latencyUs);
      if (this.#corrected) this.#service.record(serviceUs);
      if (errorKind >= 0) this.#failedLatency.record(latencyUs);
    }
    if (firstByteUs >= 0) this.#firstByte.record(firstByteUs);
    if (connectUs >= 0) this.#connect.record(connectUs);
    if (tlsUs >= 0) this.#tls.record(tlsUs);
  }

  /** The call just recorded ended when the measured time was over. */
  late(failed: boolean, bytesIn: number, bytesOut: number): void {
    this.#outside(LATE, failed, bytesIn, bytesOut);
  }

  /** A call of the warm-up, not recorded, ended in the measured time. */
  early(failed: boolean, bytesIn: number, bytesOut: number): void {
    this.#outside(EARLY, failed, bytesIn, bytesOut);
  }

  #outside(at: number, failed: boolean, bytesIn: number, bytesOut: number): void {
    const more = [1, failed ? 1 : 0, bytesIn, bytesOut];
    for (const [i, amount] of more.entries())
      this.#counts[at + i] = (this.#counts[at + i] ?? 0) + amount;
    this.#changed = true;
  }

  /** Calls that were started and cut off at the end. */
  interrupted(count: number): void {
    this.#counts[INTERRUPTED] = (this.#counts[INTERRUPTED] ?? 0) + count;
    this.#changed = true;
  }

  writeChanges(writer: ByteWriter): void {
    writer.varint(this.#generation);
    writer.uint8(this.#corrected ? 1 : 0);
    writer.varint(this.#counts.length);
    for (const count of this.#counts) writer.varint(count);
    this.#writeStatuses(writer);
    this.#latency.writeChanges(writer);
    this.#firstByte.writeChanges(writer);
    this.#connect.writeChanges(writer);
    this.#tls.writeChanges(writer);
    this.#failedLatency.writeChanges(writer);
    if (this.#corrected) this.#service.writeChanges(writer);
    this.#changed = false;
  }

  /** Forgets everything; the next frame says so. */
  reset(): void {
    this.#generation++;
    this.#counts.fill(0);
    this.#statuses.fill(0);
    this.#statusTouched.fill(0);
    this.#rareStatuses.clear();
    for (const one of [this.#latency, this.#service, this.#firstByte, this.#connect, this.#tls]) {
      one.reset();
    }
    this.#failedLatency.reset();
    this.#changed = true;
  }

  #countStatus(status: number): void {
    if (status < STATUS_TABLE) {
      this.#statuses[status] = (this.#statuses[status] as number) + 1;
      this.#statusTouched[status] = 1;
      return;
    }
    const known = this.#rareStatuses.get(status);
    const fits = status < STATUS_MAX && this.#rareStatuses.size < STATUS_MAP_MAX;
    const key = known !== undefined || fits ? status : STATUS_OTHER;
    this.#rareStatuses.set(key, (this.#rareStatuses.get(key) ?? 0) + 1);
  }

  #writeStatuses(writer: ByteWriter): void {
    let length = this.#rareStatuses.size;
    for (const touched of this.#statusTouched) length += touched;
    writer.varint(length);
    for (const [status, touched] of this.#statusTouched.entries()) {
      if (touched === 0) continue;
      writer.varint(status);
      writer.varint(this.#statuses[status] ?? 0);
    }
    for (const [status, count] of this.#rareStatuses) {
      writer.varint(status);
      writer.varint(count);
    }
    this.#statusTouched.fill(0);
  }
}

export class StepTotals {
  readonly corrected: boolean;
  ok = 0;
  /** By kind, in the order of the kinds. */
  readonly failed: number[];
  interrupted = 0;
  readonly statuses = new Map<number, number>();
  bytesIn = 0;
  bytesOut = 0;
  /** Microseconds, like all below. */
  readonly latency = new Histogram();
  /** The very same histogram when nothing is corrected. */
  readonly service: Histogram;
  readonly firstByte = new Histogram();
  readonly connect = new Histogram();
  readonly tls = new Histogram();
  readonly failedLatency = new Histogram();
  readonly late: Outside = { calls: 0, failed: 0, bytesIn: 0, bytesOut: 0 };
  readonly early: Outside = { calls: 0, failed: 0, bytesIn: 0, bytesOut: 0 };
  #generation = 0;

  constructor(errorKinds: number, corrected: boolean) {
    this.corrected = corrected;
    this.failed = new Array<number>(errorKinds).fill(0);
    this.service = corrected ? new Histogram() : this.latency;
  }

  get failedCount(): number {
    return this.failed.reduce((sum, count) => sum + count, 0);
  }

  /** Finished calls: successes and failures. */
  get requests(): number {
    return this.ok + this.failedCount;
  }

  /** What ended inside the measured time, whenever it was due: the numerators of rates. */
  get inside(): Outside {
    const { early, late } = this;
    return {
      calls: this.requests - late.calls + early.calls,
      failed: this.failedCount - late.failed + early.failed,
      bytesIn: this.bytesIn - late.bytesIn + early.bytesIn,
      bytesOut: this.bytesOut - late.bytesOut + early.bytesOut,
    };
  }

  /** Latencies of successes; extremes are known to the width of a cell once something failed. */
  get okLatency(): Histogram {
    return this.failedLatency.count === 0 ? this.latency : this.latency.without(this.failedLatency);
  }

  /** False, and nothing changed, when the bytes are not a frame of such a step. */
  applyChanges(reader: ByteReader, window: WindowSink | null): boolean {
    const frame = readFrame(reader, this.failed.length, this.corrected);
    if (frame === undefined) return false;
    if (frame.generation < this.#generation) return true;
    if (frame.generation > this.#generation) {
      this.clear();
      this.#generation = frame.generation;
    }
    this.#applyCounts(frame, window);
    const latencyGrew =
      window === null ? null : (cell: number, count: number) => window.addLatency(cell, count);
    const [latency, firstByte, connect, tls, failedLatency, service] = frame.histograms;
    if (latency !== undefined) applyCellChanges(this.latency, latency, latencyGrew);
    if (firstByte !== undefined) applyCellChanges(this.firstByte, firstByte, null);
    if (connect !== undefined) applyCellChanges(this.connect, connect, null);
    if (tls !== undefined) applyCellChanges(this.tls, tls, null);
    if (failedLatency !== undefined) applyCellChanges(this.failedLatency, failedLatency, null);
    if (service !== undefined) applyCellChanges(this.service, service, null);
    return true;
  }

  /** Adds these totals to others of the same shape. */
  mergeInto(other: StepTotals): void {
    assert(other.failed.length === this.failed.length, "merged totals know the same kinds");
    assert(other.corrected === this.corrected, "merged totals are corrected alike");
    other.ok += this.ok;
    for (const [kind, count] of this.failed.entries()) {
      other.failed[kind] = (other.failed[kind] ?? 0) + count;
    }
    other.interrupted += this.interrupted;
    other.bytesIn += this.bytesIn;
    other.bytesOut += this.bytesOut;
    for (const [status, count] of this.statuses) {
      other.statuses.set(status, (other.statuses.get(status) ?? 0) + count);
    }
    other.latency.merge(this.latency);
    if (this.corrected) other.service.merge(this.service);
    other.firstByte.merge(this.firstByte);
    other.connect.merge(this.connect);
    other.tls.merge(this.tls);
    other.failedLatency.merge(this.failedLatency);
    for (const key of OUTSIDE) {
      other.late[key] += this.late[key];
      other.early[key] += this.early[key];
    }
  }

  clear(): void {
    this.ok = 0;
    this.failed.fill(0);
    this.interrupted = 0;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.statuses.clear();
    for (const one of [this.latency, this.service, this.firstByte, this.connect, this.tls]) {
      one.clear();
    }
    this.failedLatency.clear();
    for (const key of OUTSIDE) {
      this.late[key] = 0;
      this.early[key] = 0;
    }
  }

  #applyCounts(frame: Frame, window: WindowSink | null): void {
    const before = this.inside;
    const { counts } = frame;
    const most = (held: number, at: number): number => Math.max(held, counts[at] ?? 0);
    this.ok = most(this.ok, OK);
    this.interrupted = most(this.interrupted, INTERRUPTED);
    this.bytesIn = most(this.bytesIn, BYTES_IN);
    this.bytesOut = most(this.bytesOut, BYTES_OUT);
    for (const [kind, held] of this.failed.entries()) this.failed[kind] = most(held, KINDS + kind);
    for (const [status, count] of frame.statuses) {
      this.statuses.set(status, Math.max(this.statuses.get(status) ?? 0, count));
    }
    for (const [at, key] of OUTSIDE.entries()) {
      this.late[key] = most(this.late[key], LATE + at);
      this.early[key] = most(this.early[key], EARLY + at);
    }
    const { calls, failed } = this.inside;
    if (calls > before.calls)
      window?.addRequests(calls - before.calls, Math.max(0, failed - before.failed));
  }
}

/** In the order of the counts. */
const OUTSIDE = ["calls", "failed", "bytesIn", "bytesOut"] as const;

interface Frame {
  readonly generation: number;
  readonly counts: readonly number[];
  readonly statuses: readonly (readonly [status: number, count: number])[];
  /** Latency, first byte, connect, TLS, latency of failures, and service time when it is apart. */
  readonly histograms: readonly CellChanges[];
}

function readFrame(reader: ByteReader, kinds: number, corrected: boolean): Frame | undefined {
  const generation = reader.varint();
  if (reader.uint8() !== (corrected ? 1 : 0)) return undefined;
  if (reader.varint() !== KINDS + kinds) return undefined;
  const counts: number[] = [];
  for (let i = 0; i < KINDS + kinds; i++) counts.push(reader.varint());
  const statusCount = reader.varint();
  if (reader.failed || statusCount > STATUS_TABLE + STATUS_MAP_MAX + 1) return undefined;
  const statuses: (readonly [number, number])[] = [];
  for (let i = 0; i < statusCount; i++) statuses.push([reader.varint(), reader.varint()]);
  if (reader.failed || statuses.some(([status]) => status > STATUS_MAX)) return undefined;
  const read: (CellChanges | undefined)[] = [];
  for (let i = 0; i < (corrected ? 6 : 5); i++) read.push(readCellChanges(reader));
  if (reader.failed) return undefined;
  const histograms = read.filter((one) => one !== undefined);
  if (histograms.length < read.length) return undefined;
  return { generation, counts, statuses, histograms };
}
