/**
 * What happened in one short stretch of time: of one step (`StepWindow`), and to the load as a whole
 * (`LoadWindow`). Both are immutable, add up over the parts of a run and over neighbours in time,
 * and travel in frames. (AD-23.5)
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { SparseCells } from "./sparse-cells.ts";

/** Kinds of errors that a window may tell apart; a frame with more is no frame. */
const KINDS_MAX = 64;
/** As measured in V8: of a window beside its cells, and of each cell. */
const STEP_WINDOW_BYTES = 320;
const LOAD_WINDOW_BYTES = 160;
const CELL_BYTES = 8;

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
  return windowOf((key) => counts[key] ?? 0, [...kinds], { latency, failedLatency });
}

/**
 * Field by field: what is spread and then added to gets a hidden class of its own in V8, which was 400 bytes for
 * each of tens of thousands of windows.
 */
function windowOf(
  count: (key: keyof Counts) => number,
  kinds: readonly number[],
  { failedLatency, latency }: Pick<StepWindow, "latency" | "failedLatency">,
): StepWindow {
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
    kinds: kinds.some((one) => one > 0) ? kinds : NO_KINDS,
    latency,
    failedLatency,
  };
}

/** How windows of one sort add up. */
export interface WindowRules<Content> {
  /** Parts at the same time, or neighbours in time; one at least. */
  sum(contents: readonly Content[]): Content;
  /** Bytes it takes in memory, roughly. */
  bytes(content: Content): number;
}

function sumSteps(all: readonly StepWindow[]): StepWindow {
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  const length = Math.max(...all.map(({ kinds }) => kinds.length));
  const failures = ({ kinds }: StepWindow, kind: number): number => kinds[kind] ?? 0;
  return windowOf(
    (key) => all.reduce((sum, one) => sum + one[key], 0),
    Array.from({ length }, (_, kind) => all.reduce((sum, one) => sum + failures(one, kind), 0)),
    {
      latency: SparseCells.sum(all.map(({ latency }) => latency)),
      failedLatency: SparseCells.sum(all.map(({ failedLatency }) => failedLatency)),
    },
  );
}

/** How many cells of its histograms hold anything. */
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

/** Undefined when the bytes are no window of a step. */
export function readStepWindow(reader: ByteReader): StepWindow | undefined {
  const counts: { -readonly [Key in keyof Counts]?: number } = {};
  for (const key of COUNTS) counts[key] = reader.varint();
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

/** Undefined when the bytes are no window of a load. */
export function readLoadWindow(reader: ByteReader): LoadWindow | undefined {
  const values = LOAD_KEYS.map(() => reader.float64());
  if (reader.failed || values.some((value) => !(value >= 0 && Number.isFinite(value))))
    return undefined;
  const [userMs = 0, targetMs = 0, arrivals = 0, iterations = 0, cpuMs = 0, lagMsMax = 0] = values;
  return { userMs, targetMs, arrivals, iterations, cpuMs, lagMsMax };
}
