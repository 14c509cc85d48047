/**
 * Metrics of one step: recorded on an executor core, folded into totals when a window of time ends, carried in frames,
 * and merged by receivers.
 *
 *   record ─► StepRecorder ─ fold ─► StepTotals + the window's StepWindow ─ frames ─► …
 *
 * `record` is on the hot path of every request: no allocation, some 40 ns with time to first byte on a busy machine
 * (bench/micro/README.md).
 */

import { CellRecorder } from "./cell-recorder.ts";
import type { Histogram } from "./histogram.ts";
import { Tally, type TallyShape } from "./tally.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";
import { TwinRecorder } from "./twin-recorder.ts";
import { type StepWindow, stepWindow } from "./windows.ts";

/** Statuses below this have a counter of their own; rarer ones share a map. */
const STATUS_TABLE = 600;
/** Distinct statuses outside the table, per step; a peer that invents more is counted under `STATUS_OTHER`. */
const STATUS_MAP_MAX = 64;
export const STATUS_OTHER = 0xffff;
const STATUS_MAX = 0xffff;

const OK = 0;
const INTERRUPTED = 1;
const BYTES_IN = 2;
const BYTES_OUT = 3;
/** Calls among those that ended after the measured time: four counts, see `Outside`. */
const LATE = 4;
/** Calls not among those: due in the warm-up, ended in the measured time. */
const EARLY = 8;
/** Requests on the wire at any time: not only of the calls that are counted here. */
const SENT = 12;
/** Errors by kind follow. */
const KINDS = 13;

/** In the order of a step's histograms. */
const LATENCY = 0;
const FIRST_BYTE = 1;
const CONNECT = 2;
const TLS = 3;
const FAILED_LATENCY = 4;
const SERVICE = 5;

/** `corrected`: latency (from the intended start) and service time differ, and both are kept. */
export function stepShape(errorKinds: number, corrected: boolean): TallyShape {
  return {
    counts: KINDS + errorKinds,
    histograms: corrected ? SERVICE + 1 : SERVICE,
    keysMax: STATUS_TABLE + STATUS_MAP_MAX + 1,
    keyMax: STATUS_MAX,
  };
}

/** Finished calls, or requests on the wire where those are more. */
export function requestsOf(counts: Float64Array): number {
  let calls = counts[OK] ?? 0;
  for (let kind = KINDS; kind < counts.length; kind++) calls += counts[kind] ?? 0;
  return Math.max(calls, counts[SENT] ?? 0);
}

/** Calls excluded from or added to rates: all, failed ones among them, and their bytes. */
interface Outside {
  readonly calls: number;
  readonly failed: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export class StepRecorder {
  readonly #corrected: boolean;
  readonly #counts: Float64Array;
  readonly #statuses = new Float64Array(STATUS_TABLE);
  readonly #statusTouched = new Uint8Array(STATUS_TABLE);
  readonly #rareStatuses = new Map<number, number>();
  /** Only where latency and service time differ. */
  readonly #latency = new CellRecorder();
  /** Service time and time to first byte: the same for an answer that arrives in one piece. */
  readonly #service = new TwinRecorder();
  readonly #connect = new CellRecorder();
  readonly #tls = new CellRecorder();
  /** Failures are few: latencies of successes are all minus these. */
  readonly #failedLatency = new CellRecorder();
  /** Service time of the window's answered calls, in microseconds. */
  readonly #answeredUs = new Float64Array(1);
  #changed = false;

  constructor(errorKinds: number, corrected: boolean) {
    this.#corrected = corrected;
    this.#counts = new Float64Array(KINDS + errorKinds);
  }

  /**
   * Times in microseconds, negative for none (no latency: never on the wire, and no first byte); `errorKind` -1 for
   * success; `status` 0 for none.
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
      this.#service.record(this.#corrected ? serviceUs : latencyUs, firstByteUs);
      if (this.#corrected) this.#latency.record(latencyUs);
      if (errorKind >= 0) this.#failedLatency.record(latencyUs);
    }
    if (firstByteUs >= 0) this.#answeredUs[0] = (this.#answeredUs[0] as number) + serviceUs;
    if (connectUs >= 0) this.#connect.record(connectUs);
    if (tlsUs >= 0) this.#tls.record(tlsUs);
  }

  /** The call just recorded ended after the measured time. */
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

  get ok(): number {
    return this.#counts[OK] ?? 0;
  }

  /** Requests sent for any call, including those of the warm-up and interrupted ones. */
  sent(count: number): void {
    if (count === 0) return;
    this.#counts[SENT] = (this.#counts[SENT] as number) + count;
    this.#changed = true;
  }

  /** Calls that were started and cut off at the end. */
  interrupted(count: number): void {
    this.#counts[INTERRUPTED] = (this.#counts[INTERRUPTED] ?? 0) + count;
    this.#changed = true;
  }

  /** Adds the values recorded since the last fold to the totals, to be reported by this frame; null for none. */
  fold(into: StepTotals, frame: number): StepWindow | null {
    if (!this.#changed) return null;
    this.#changed = false;
    const before = into.inside;
    const failedBefore = Array.from(into.failed);
    const requestsBefore = into.requests;
    const answersBefore = into.firstByte.count;
    const timesBefore = [into.firstByte, into.connect, into.tls].map(({ sum }) => sum);
    const { counts, histograms, keyed } = into.tally;
    counts.set(this.#counts);
    this.#foldStatuses(keyed);
    into.tally.changedIn = frame;
    const fold = (recorder: CellRecorder, at: number) =>
      recorder.fold(histograms[at] as TrackedHistogram, frame);
    const service = this.#service.fold(
      histograms[this.#corrected ? SERVICE : LATENCY] as TrackedHistogram,
      histograms[FIRST_BYTE] as TrackedHistogram,
      frame,
    );
    const latency = this.#corrected ? fold(this.#latency, LATENCY) : service;
    fold(this.#connect, CONNECT);
    fold(this.#tls, TLS);
    const failedLatency = fold(this.#failedLatency, FAILED_LATENCY);
    const after = into.inside;
    const [firstByteUs = 0, connectUs = 0, tlsUs = 0] = [
      into.firstByte,
      into.connect,
      into.tls,
    ].map(({ sum }, at) => Math.round(sum - (timesBefore[at] ?? 0)));
    const answeredUs = Math.round(this.#answeredUs[0] as number);
    this.#answeredUs[0] = 0;
    return stepWindow(
      {
        calls: after.calls - before.calls,
        failed: after.failed - before.failed,
        bytesIn: after.bytesIn - before.bytesIn,
        bytesOut: after.bytesOut - before.bytesOut,
        requests: into.requests - requestsBefore,
        answers: into.firstByte.count - answersBefore,
        answeredUs,
        firstByteUs,
        connectUs,
        tlsUs,
      },
      into.failed.map((count, kind) => count - (failedBefore[kind] ?? 0)),
      latency,
      failedLatency,
    );
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

  #foldStatuses(into: Map<number, number>): void {
    for (let status = this.#statusTouched.indexOf(1); status >= 0; ) {
      into.set(status, this.#statuses[status] ?? 0);
      this.#statusTouched[status] = 0;
      status = this.#statusTouched.indexOf(1, status + 1);
    }
    for (const [status, count] of this.#rareStatuses) into.set(status, count);
  }
}

/** A step's tally with named fields. */
export class StepTotals {
  readonly corrected: boolean;
  readonly tally: Tally;
  /** By kind, in the order of the kinds. */
  readonly failed: Float64Array;

  constructor(errorKinds: number, corrected: boolean) {
    this.corrected = corrected;
    this.tally = new Tally(stepShape(errorKinds, corrected));
    this.failed = this.tally.counts.subarray(KINDS);
  }

  get ok(): number {
    return this.#count(OK);
  }

  get interrupted(): number {
    return this.#count(INTERRUPTED);
  }

  get sent(): number {
    return this.#count(SENT);
  }

  get bytesIn(): number {
    return this.#count(BYTES_IN);
  }

  get bytesOut(): number {
    return this.#count(BYTES_OUT);
  }

  get statuses(): ReadonlyMap<number, number> {
    return this.tally.keyed;
  }

  get failedCount(): number {
    return this.failed.reduce((sum, count) => sum + count, 0);
  }

  /** A call succeeded, or an answer to one began. */
  get isAnswered(): boolean {
    return this.ok > 0 || this.firstByte.count > 0;
  }

  /** Finished calls: successes and failures. */
  get requests(): number {
    return this.ok + this.failedCount;
  }

  /** Calls that ended inside the measured time, whenever they were due: the numerators of rates. */
  get inside(): Outside {
    const [early, late] = [this.#outside(EARLY), this.#outside(LATE)];
    return {
      calls: this.requests - late.calls + early.calls,
      failed: this.failedCount - late.failed + early.failed,
      bytesIn: this.bytesIn - late.bytesIn + early.bytesIn,
      bytesOut: this.bytesOut - late.bytesOut + early.bytesOut,
    };
  }

  /** Microseconds, like all below. */
  get latency(): Histogram {
    return this.#histogram(LATENCY);
  }

  /** Identical to the latency when nothing is corrected. */
  get service(): Histogram {
    return this.#histogram(this.corrected ? SERVICE : LATENCY);
  }

  get firstByte(): Histogram {
    return this.#histogram(FIRST_BYTE);
  }

  get connect(): Histogram {
    return this.#histogram(CONNECT);
  }

  get tls(): Histogram {
    return this.#histogram(TLS);
  }

  get failedLatency(): Histogram {
    return this.#histogram(FAILED_LATENCY);
  }

  /** Latencies of successes; extremes are known to the width of a cell once something failed. */
  get okLatency(): Histogram {
    return this.failedLatency.count === 0 ? this.latency : this.latency.without(this.failedLatency);
  }

  #count(at: number): number {
    return this.tally.counts[at] ?? 0;
  }

  #outside(at: number): Outside {
    return {
      calls: this.#count(at),
      failed: this.#count(at + 1),
      bytesIn: this.#count(at + 2),
      bytesOut: this.#count(at + 3),
    };
  }

  #histogram(at: number): Histogram {
    return (this.tally.histograms[at] as TrackedHistogram).histogram;
  }
}
