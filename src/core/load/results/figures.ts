/**
 * The table of all metrics of a step or run: name, unit and meaning. Columns of CSV, the decoder of summary.json and
 * its JSON Schema, names of metrics at reporters and the list in docs/reference/results.md derive from it, so a new
 * metric of a step is one line here and the code that measures it.
 */

import type { Distribution, StepSummary, Totals } from "./model.ts";

/** A counter only grows, a gauge is a current value, a distribution has percentiles. */
type FigureKind = "counter" | "gauge" | "distribution";
export type FigureUnit = "count" | "bytes" | "ms" | "seconds" | "per second" | "share";

export interface FigureDescription {
  readonly kind: FigureKind;
  readonly unit: FigureUnit;
  /** For people: a sentence. */
  readonly label: string;
  /** Results of earlier versions have none. */
  readonly optional?: true;
}

/** By the field of the results model, in the order of the columns of steps.csv: new ones go last. */
export const STEP_FIGURES = {
  requests: { kind: "counter", unit: "count", label: "Finished: ok + failed." },
  ok: { kind: "counter", unit: "count", label: "Succeeded." },
  failed: { kind: "counter", unit: "count", label: "Failed, of any kind." },
  interrupted: {
    kind: "counter",
    unit: "count",
    label: "Cut off at the end of the graceful stop; not in requests.",
  },
  ratePerSecond: {
    kind: "gauge",
    unit: "per second",
    label: "Calls that ended inside the measured time of the workflow, over that time.",
  },
  bytesIn: { kind: "counter", unit: "bytes", label: "Received." },
  bytesOut: { kind: "counter", unit: "bytes", label: "Sent." },
  latencyMs: {
    kind: "distribution",
    unit: "ms",
    label: "From the intended start in open models.",
  },
  serviceMs: { kind: "distribution", unit: "ms", label: "From the real start." },
  okLatencyMs: {
    kind: "distribution",
    unit: "ms",
    label: "latencyMs of successes only.",
    optional: true,
  },
  firstByteMs: {
    kind: "distribution",
    unit: "ms",
    label: "To the first byte of the answer, from the real start.",
  },
  connectMs: {
    kind: "distribution",
    unit: "ms",
    label: "Of requests that opened a connection.",
  },
  tlsMs: {
    kind: "distribution",
    unit: "ms",
    label: "Of requests that opened an encrypted connection.",
  },
  sent: {
    kind: "counter",
    unit: "count",
    label: "Requests on the wire, warm-up, redirects and repetitions included.",
    optional: true,
  },
} as const satisfies Partial<Record<keyof StepSummary, FigureDescription>>;

/** Metrics of several steps together: workflows and the run. */
export const TOTAL_FIGURES = {
  requests: STEP_FIGURES.requests,
  ok: STEP_FIGURES.ok,
  failed: STEP_FIGURES.failed,
  sent: {
    kind: "counter",
    unit: "count",
    label: "Requests on the wire: what the target's own log should count.",
  },
  bytesIn: STEP_FIGURES.bytesIn,
  bytesOut: STEP_FIGURES.bytesOut,
  ratePerSecond: {
    kind: "gauge",
    unit: "per second",
    label: "Calls that ended inside the measured time, over that time.",
  },
  latencyMs: { kind: "distribution", unit: "ms", label: "Of all calls together." },
  okLatencyMs: { kind: "distribution", unit: "ms", label: "Of successes only." },
} as const satisfies Record<keyof Totals, FigureDescription>;

/** Fields of a distribution, in the order of columns. */
export const DISTRIBUTION_FIGURES = [
  "min",
  "mean",
  "p50",
  "p75",
  "p90",
  "p95",
  "p99",
  "p99_9",
  "p99_99",
  "max",
] as const satisfies readonly (keyof Distribution)[];

/** Fractions of the percentiles among them. */
export const QUANTILES = {
  p50: 0.5,
  p75: 0.75,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
  p99_9: 0.999,
  p99_99: 0.9999,
} as const satisfies Partial<Record<keyof Distribution, number>>;

/** "ratePerSecond" becomes "rate_per_second", the name of columns and metrics. */
export function figureName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The table as a list, in its order. */
export function figuresOf<Table extends Readonly<Record<string, FigureDescription>>>(
  table: Table,
): readonly (readonly [keyof Table & string, FigureDescription])[] {
  return Object.entries(table);
}
