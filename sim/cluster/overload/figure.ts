/** A row of the table of what a cluster under pressure must do: what was seen, beside what must be. */

interface Seen {
  readonly what: string;
  readonly must: string;
  readonly seen: string;
  readonly holds: boolean;
}

/** `scale`: of its size in the issue; 1 is all of it. */
export type Figure = (scale: number) => readonly Seen[];

export function atMost(what: string, seen: number, most: number, digits = 2): Seen {
  return { what, must: `<= ${most}`, seen: seen.toFixed(digits), holds: seen <= most };
}

export function atLeast(what: string, seen: number, least: number, digits = 2): Seen {
  return { what, must: `>= ${least}`, seen: seen.toFixed(digits), holds: seen >= least };
}

/** What is only told. */
export function told(what: string, seen: string): Seen {
  return { what, must: "", seen, holds: true };
}

/** Of sorted values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, one) => sum + one, 0) / values.length;
}
