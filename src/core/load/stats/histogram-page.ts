/** Loops over the cells of one page of a histogram, each small and over one kind of array. */

export const CELLS_PER_PAGE = 1024;
/** Counts of one page. Most take 16 bits: caches fit four times as many, and memory dominates merging. */
export type Page = Uint16Array | Float64Array;
export const COUNT_MAX_NARROW = 0xffff;
/** Cells that are summed before checking whether a percentile lies among them. */
export const BLOCK_CELLS = 8;

/** Sum of `BLOCK_CELLS` cells. Unrolled: a third of the time of a loop, and screens need all steps. */
export function blockSum(cells: Page, from: number): number {
  return (
    (cells[from] as number) +
    (cells[from + 1] as number) +
    (cells[from + 2] as number) +
    (cells[from + 3] as number) +
    (cells[from + 4] as number) +
    (cells[from + 5] as number) +
    (cells[from + 6] as number) +
    (cells[from + 7] as number)
  );
}

/** End of the ascending cells that lie in the page of the first. */
export function endOfPage(cells: Uint16Array, from: number, to: number): number {
  const next = ((cells[from] as number) | (CELLS_PER_PAGE - 1)) + 1;
  let end = from + 1;
  while (end < to && (cells[end] as number) < next) end++;
  return end;
}

/** Raises the page that begins at `start` up to the first count that does not fit, and returns its position. */
export function raiseNarrow(
  held: Uint16Array,
  start: number,
  cells: Uint16Array,
  counts: Float64Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) {
    const target = counts[i] as number;
    if (target > COUNT_MAX_NARROW) return i;
    const at = start + ((cells[i] as number) & (CELLS_PER_PAGE - 1));
    const before = held[at] as number;
    const count = Math.max(before, target);
    held[at] = count;
    counts[i] = count - before;
  }
  return to;
}

export function raiseWide(
  held: Float64Array,
  cells: Uint16Array,
  counts: Float64Array,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const at = (cells[i] as number) & (CELLS_PER_PAGE - 1);
    const before = held[at] as number;
    const count = Math.max(before, counts[i] as number);
    held[at] = count;
    counts[i] = count - before;
  }
}

/** Adds up to the first count that does not fit, and returns its position. */
export function addNarrow(
  held: Uint16Array,
  cells: Uint16Array,
  counts: Float64Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) {
    const at = (cells[i] as number) & (CELLS_PER_PAGE - 1);
    const count = (held[at] as number) + (counts[i] as number);
    if (count > COUNT_MAX_NARROW) return i;
    held[at] = count;
  }
  return to;
}

export function addWide(
  held: Float64Array,
  cells: Uint16Array,
  counts: Float64Array,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const at = (cells[i] as number) & (CELLS_PER_PAGE - 1);
    held[at] = (held[at] as number) + (counts[i] as number);
  }
}
