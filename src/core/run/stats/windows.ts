/**
 * What happened in one short stretch of time: of one step (`StepWindow`), and to the load as a whole
 * (`LoadWindow`). Both are immutable, add up over the parts of a run and over neighbours in time,
 * and travel in frames.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { SparseCells } from "./sparse-cells.ts";

/** Kinds of errors that a window may tell apart; a frame with more is no frame. */
const KINDS_MAX = 64;

export interface StepWindow {
  /** Ended in the window and inside the measured time. */
  readonly calls: number;
  readonly failed: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** All that were recorded: not those of the warm-up, but those of the graceful stop. */
  readonly requests: number;
  /** Calls of which an answer began, and where their time went: sums of microseconds. */
  readonly answers: number;
  readonly answeredUs: number;
  readonly firstByteUs: number;
  readonly connectUs: number;
  readonly tlsUs: number;
  /** All failures that were recorded, by kind; those of the graceful stop too. */
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

export function stepWindow(
  counts: Partial<Counts>,
  kinds: Iterable<number>,
  latency: SparseCells,
  failedLatency: SparseCells,
): StepWindow {
  const byKind = [...kinds];
  return {
    ...countsOf((key) => counts[key] ?? 0),
    kinds: byKind.some((count) => count > 0) ? byKind : NO_KINDS,
    latency,
    failedLatency,
  };
}

function countsOf(count: (key: (typeof COUNTS)[number]) => number): Counts {
  return {
    calls: count("calls"),
    failed: count("failed"),
    bytesIn: count("bytesIn"),
    bytesOut: count("bytesOut"),
    requests: count("requests"),
    answers: count("answers"),
    answeredUs: count("answeredUs"),
    firstByteUs: count("firstByteUs"),
    connectUs: count("connectUs"),
    tlsUs: count("tlsUs"),
  };
}

/** How windows of one sort add up. */
export interface WindowRules<Content> {
  /** Two parts at the same time, or two neighbours in time. */
  add(a: Content, b: Content): Content;
  /** Cells it holds: what its memory is. */
  size(content: Content): number;
}

function addSteps(a: StepWindow, b: StepWindow): StepWindow {
  const kinds = a.kinds.length > b.kinds.length ? a.kinds : b.kinds;
  return stepWindow(
    countsOf((key) => a[key] + b[key]),
    kinds.map((_, kind) => (a.kinds[kind] ?? 0) + (b.kinds[kind] ?? 0)),
    a.latency.plus(b.latency),
    a.failedLatency.plus(b.failedLatency),
  );
}

export const STEP_RULES: WindowRules<StepWindow> = {
  add: addSteps,
  size: ({ failedLatency, latency }) => latency.cells.length + failedLatency.cells.length,
};

export function writeStepWindow(writer: ByteWriter, window: StepWindow): void {
  for (const key of COUNTS) writer.varint(window[key]);
  writer.varint(window.kinds.length);
  for (const count of window.kinds) writer.varint(count);
  window.latency.encode(writer);
  window.failedLatency.encode(writer);
}

/** Undefined when the bytes are no window of a step. */
export function readStepWindow(reader: ByteReader): StepWindow | undefined {
  // In the order of COUNTS, as they were written.
  const counts = countsOf(() => reader.varint());
  const length = reader.varint();
  if (reader.failed || length > KINDS_MAX) return undefined;
  const kinds = Array.from({ length }, () => reader.varint());
  const latency = SparseCells.decode(reader);
  const failedLatency = SparseCells.decode(reader);
  if (reader.failed || latency === undefined || failedLatency === undefined) return undefined;
  return stepWindow(counts, kinds, latency, failedLatency);
}

/** The load and what it took to make it. Integrals over the window, so that windows add up. */
export interface LoadWindow {
  /** Virtual users at work, times milliseconds. */
  readonly userMs: number;
  /** Users, or arrivals per second, that the plan asks for, times milliseconds. */
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
  add: (a, b) => ({
    userMs: a.userMs + b.userMs,
    targetMs: a.targetMs + b.targetMs,
    arrivals: a.arrivals + b.arrivals,
    iterations: a.iterations + b.iterations,
    cpuMs: a.cpuMs + b.cpuMs,
    lagMsMax: Math.max(a.lagMsMax, b.lagMsMax),
  }),
  size: () => 1,
};

export function writeLoadWindow(writer: ByteWriter, window: LoadWindow): void {
  for (const key of LOAD_KEYS) writer.float64(window[key]);
}

/** Undefined when the bytes are no window of a load. */
export function readLoadWindow(reader: ByteReader): LoadWindow | undefined {
  const values = LOAD_KEYS.map(() => reader.float64());
  if (reader.failed || values.some((value) => !(value >= 0 && Number.isFinite(value))))
    return undefined;
  const [userMs = 0, targetMs = 0, arrivals = 0, iterations = 0, cpuMs = 0, lagMsMax = 0] = values;
  return { userMs, targetMs, arrivals, iterations, cpuMs, lagMsMax };
}
