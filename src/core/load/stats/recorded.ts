/** Values recorded in a stretch of time, on their way into a histogram. */

import { SparseCells } from "./sparse-cells.ts";

/** Values by cell, with the moments that cells do not contain. */
export interface Recorded {
  readonly cells: SparseCells;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
}

export const NOTHING_RECORDED: Recorded = {
  cells: SparseCells.EMPTY,
  sum: 0,
  min: Number.POSITIVE_INFINITY,
  max: 0,
};

/** Sum of both. */
export function together(a: Recorded, b: Recorded): Recorded {
  if (a.cells.size === 0) return b;
  if (b.cells.size === 0) return a;
  return {
    cells: a.cells.plus(b.cells),
    sum: a.sum + b.sum,
    min: Math.min(a.min, b.min),
    max: Math.max(a.max, b.max),
  };
}
