/** Measurements of a cluster under overload: observed value beside required value. */

interface Seen {
  readonly what: string;
  readonly must: string;
  readonly seen: string;
  readonly holds: boolean;
}

/** `scale`: relative to the size in the issue; 1 is all of it. */
export type Figure = (scale: number) => readonly Seen[];

export function atMost(what: string, seen: number, most: number, digits = 2): Seen {
  return { what, must: `<= ${most}`, seen: seen.toFixed(digits), holds: seen <= most };
}

export function atLeast(what: string, seen: number, least: number, digits = 2): Seen {
  return { what, must: `>= ${least}`, seen: seen.toFixed(digits), holds: seen >= least };
}

/** A value without a requirement. */
export function told(what: string, seen: string): Seen {
  return { what, must: "", seen, holds: true };
}

/** Quantile of sorted values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, one) => sum + one, 0) / values.length;
}
