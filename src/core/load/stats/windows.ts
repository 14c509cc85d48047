/**
 * Content of one short stretch of time: of one step (`StepWindow`), and of the load as a whole (`LoadWindow`). Both are
 * immutable, add up over the parts of a run and over neighbours in time, and travel in frames. (AD-23.5)
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { SparseCells } from "./sparse-cells.ts";

/** Kinds of errors that a window may distinguish; a frame with more is rejected. */
const KINDS_MAX = 64;
/** As measured in V8: size of a window beside its cells, and of each cell. */
const STEP_WINDOW_BYTES = 320;
const LOAD_WINDOW_BYTES = 160;
const CELL_BYTES = 8;

export interface StepWindow {
  /** Ended in the window and inside the measured time. */
  readonly calls: number;
  readonly failed: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** All recorded calls: excludes the warm-up, includes the graceful stop. */
  readonly requests: number;
  /** Answered calls, and the duration of their phases: sums of microseconds. */
  readonly answers: number;
  readonly answeredUs: number;
  readonly firstByteUs: number;
  readonly connectUs: number;
  readonly tlsUs: number;
  /** All recorded failures by kind, including those of the graceful stop. */
  readonly kinds: readonly number[];
  /** Latencies in microseconds, and those of failures among them. */
  readonly latency: SparseCells;
  readonly failedLatency: SparseCells;
}

const COUNTS = [
  ...(["calls", "failed", "bytesIn", "bytesOut", "requests"] as const),
  ...(["answers", "answeredUs", "firstByteUs", "connectUs", "tlsUs"] as const),
] as const;
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;
const NO_KINDS: readonly number[] = [];
const NO_COUNTS: Counts = {
  ...{ calls: 0, failed: 0, bytesIn: 0, bytesOut: 0, requests: 0 },
  ...{ answers: 0, answeredUs: 0, firstByteUs: 0, connectUs: 0, tlsUs: 0 },
};
/** Scratch object for sums: each is copied into its window. */
const sums: { -readonly [Key in keyof Counts]: number } = { ...NO_COUNTS };

export function stepWindow(
  counts: Partial<Counts>,
  kinds: Iterable<number>,
  latency: SparseCells,
  failedLatency: SparseCells,
): StepWindow {
  return windowOf({ ...NO_COUNTS, ...counts }, [...kinds], latency, failedLatency);
}

/**
 * Field by field: spreading and then adding fields gives the object a hidden class of its own in V8, which cost 400
 * bytes for each of tens of thousands of windows.
 */
function windowOf(
  counts: Counts,
  kinds: readonly number[],
  latency: SparseCells,
  failedLatency: SparseCells,
): StepWindow {
  return {
    calls: counts.calls,
    failed: counts.failed,
    bytesIn: counts.bytesIn,
    bytesOut: counts.bytesOut,
    requests: counts.requests,
    answers: counts.answers,
    answeredUs: counts.answeredUs,
    firstByteUs: counts.firstByteUs,
    connectUs: counts.connectUs,
    tlsUs: counts.tlsUs,
    kinds: kinds.some((one) => one > 0) ? kinds : NO_KINDS,
    latency,
    failedLatency,
  };
}

/** How windows of one kind add up. */
export interface WindowRules<Content> {
  /** Parts at the same time, or neighbours in time; at least one. */
  sum(contents: readonly Content[]): Content;
  /** Approximate size in memory. */
  bytes(content: Content): number;
}

function sumSteps(all: readonly StepWindow[]): StepWindow {
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  clearCounts();
  let kinds = NO_KINDS;
  for (const one of all) {
    addCounts(one);
    if (one.kinds.length > 0) kinds = sumKinds(kinds, one.kinds);
  }
  return windowOf(
    sums,
    kinds,
    SparseCells.sum(all.map(({ latency }) => latency)),
    SparseCells.sum(all.map(({ failedLatency }) => failedLatency)),
  );
}

function clearCounts(): void {
  sums.calls = 0;
  sums.failed = 0;
  sums.bytesIn = 0;
  sums.bytesOut = 0;
  sums.requests = 0;
  sums.answers = 0;
  sums.answeredUs = 0;
  sums.firstByteUs = 0;
  sums.connectUs = 0;
  sums.tlsUs = 0;
}

function addCounts(more: Counts): void {
  sums.calls += more.calls;
  sums.failed += more.failed;
  sums.bytesIn += more.bytesIn;
  sums.bytesOut += more.bytesOut;
  sums.requests += more.requests;
  sums.answers += more.answers;
  sums.answeredUs += more.answeredUs;
  sums.firstByteUs += more.firstByteUs;
  sums.connectUs += more.connectUs;
  sums.tlsUs += more.tlsUs;
}

function sumKinds(some: readonly number[], others: readonly number[]): number[] {
  const length = Math.max(some.length, others.length);
  return Array.from({ length }, (_, kind) => (some[kind] ?? 0) + (others[kind] ?? 0));
}

/** Number of non-empty cells in its histograms. */
export function windowCells({ failedLatency, latency }: StepWindow): number {
  return latency.size + failedLatency.size;
}

export const STEP_RULES: WindowRules<StepWindow> = {
  sum: sumSteps,
  bytes: (window) => STEP_WINDOW_BYTES + CELL_BYTES * windowCells(window),
};

export function writeStepWindow(writer: ByteWriter, window: StepWindow): void {
  for (const key of COUNTS) writer.varint(window[key]);
  writer.varint(window.kinds.length);
  for (const count of window.kinds) writer.varint(count);
  window.latency.encode(writer);
  window.failedLatency.encode(writer);
}

/** In the order of `COUNTS`, unrolled: a lookup by name costs more than the number. Undefined when invalid. */
export function readStepWindow(reader: ByteReader): StepWindow | undefined {
  sums.calls = reader.varint();
  sums.failed = reader.varint();
  sums.bytesIn = reader.varint();
  sums.bytesOut = reader.varint();
  sums.requests = reader.varint();
  sums.answers = reader.varint();
  sums.answeredUs = reader.varint();
  sums.firstByteUs = reader.varint();
  sums.connectUs = reader.varint();
  sums.tlsUs = reader.varint();
  const length = reader.varint();
  if (reader.failed || length > KINDS_MAX) return undefined;
  const kinds = length === 0 ? NO_KINDS : Array.from({ length }, () => reader.varint());
  const latency = SparseCells.decode(reader);
  const failedLatency = SparseCells.decode(reader);
  if (reader.failed || latency === undefined || failedLatency === undefined) return undefined;
  return windowOf(sums, kinds, latency, failedLatency);
}

/** The load and the resources it took. Integrals over the window, so that windows add up. */
export interface LoadWindow {
  /** Virtual users at work, times milliseconds. */
  readonly userMs: number;
  /** Users, or arrivals per second, required by the plan, times milliseconds. */
  readonly targetMs: number;
  /** Arrivals that began in the window; 0 in closed models. */
  readonly arrivals: number;
  readonly iterations: number;
  /** CPU time of the cores. */
  readonly cpuMs: number;
  /** The latest timer of any event loop. */
  readonly lagMsMax: number;
}

const LOAD_KEYS = ["userMs", "targetMs", "arrivals", "iterations", "cpuMs", "lagMsMax"] as const;

export const LOAD_RULES: WindowRules<LoadWindow> = {
  sum: (all) =>
    all.reduce((a, b) => ({
      userMs: a.userMs + b.userMs,
      targetMs: a.targetMs + b.targetMs,
      arrivals: a.arrivals + b.arrivals,
      iterations: a.iterations + b.iterations,
      cpuMs: a.cpuMs + b.cpuMs,
      lagMsMax: Math.max(a.lagMsMax, b.lagMsMax),
    })),
  bytes: () => LOAD_WINDOW_BYTES,
};

export function writeLoadWindow(writer: ByteWriter, window: LoadWindow): void {
  for (const key of LOAD_KEYS) writer.float64(window[key]);
}

/** In the order of `LOAD_KEYS`, unrolled. Undefined when the bytes are not a load window. */
export function readLoadWindow(reader: ByteReader): LoadWindow | undefined {
  const userMs = reader.float64();
  const targetMs = reader.float64();
  const arrivals = reader.float64();
  const iterations = reader.float64();
  const cpuMs = reader.float64();
  const lagMsMax = reader.float64();
  const isSound = isAmount(userMs) && isAmount(targetMs) && isAmount(arrivals);
  if (reader.failed || !isSound) return undefined;
  if (!isAmount(iterations) || !isAmount(cpuMs) || !isAmount(lagMsMax)) return undefined;
  return { userMs, targetMs, arrivals, iterations, cpuMs, lagMsMax };
}

function isAmount(value: number): boolean {
  return value >= 0 && value < Number.POSITIVE_INFINITY;
}
