/** A threshold as data. Parsed in `thresholds.ts`, judged in `threshold-judge.ts`. */

export type ThresholdOp = "<" | "<=" | ">" | ">=" | "==" | "!=";

export interface Threshold {
  /** Normalised: "latency.p99 < 200ms". Parsing it again gives the same threshold. */
  readonly expression: string;
  /** Named in the expression; null for where it was declared, or the whole run. */
  readonly workflow: string | null;
  readonly metric: string;
  /** Defined by the user, not built in. */
  readonly custom: boolean;
  readonly tags: Readonly<Record<string, string>>;
  readonly figure: Figure;
  readonly overMs: number | null;
  readonly op: ThresholdOp;
  /** In base units: milliseconds, shares of 1, per second, plain. */
  readonly value: number;
  readonly unit: ThresholdUnit;
}

/** "value" belongs to metrics that are one number. */
export type Figure =
  | { readonly kind: "percentile"; readonly percent: number }
  | { readonly kind: "min" | "mean" | "max" | "count" | "rate" | "last" | "value" };

/** How the user wrote the value, and how the actual one is shown. */
export interface ThresholdUnit {
  readonly kind: "duration" | "percent" | "perSecond" | "plain";
  /** Base units (ms, share of 1) in one of these. */
  readonly scale: number;
}

export function figureText(figure: Figure): string {
  return figure.kind === "percentile" ? `p${figure.percent}` : figure.kind;
}
