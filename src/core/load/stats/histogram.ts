/**
 * Log-linear histogram of non-negative integers (we record microseconds): three significant digits
 * from 1 µs to 100 hours, exact counts, exact merge.
 *
 *      value   0 … 1023 │ 1024 … 2047 │ 2048 … 4095 │ 4096 … 8191 │ …
 *      page        0    │      1      │      2      │      3      │ …      1024 cells each
 *      width       1    │      1      │      2      │      4      │ …      of one cell
 *
 * A page is allocated when its first value comes, and counts in 16 bits until one of its cells needs
 * more, so a histogram of ordinary latencies takes some ten kilobytes. Values are reported as the
 * middle of their cell, at most 0.05 % off, and never outside what was really seen (minimum and
 * maximum are kept exactly).
 */

import { assert } from "../../base/assert.ts";
import {
  addNarrow,
  addWide,
  BLOCK_CELLS,
  blockSum,
  CELLS_PER_PAGE,
  COUNT_MAX_NARROW,
  endOfPage,
  type Page,
  raiseNarrow,
  raiseWide,
} from "./histogram-page.ts";

const PAGE_BITS = 10;
/** 2^39 µs are 152 hours: everything above is counted in the last cell. */
const VALUE_BITS_MAX = 39;
export const PAGES_MAX = VALUE_BITS_MAX - PAGE_BITS + 1;
export const CELLS_MAX = PAGES_MAX * CELLS_PER_PAGE;
export const VALUE_MAX = 2 ** VALUE_BITS_MAX - 1;

/** The cell of a value, 0 … PAGES_MAX * CELLS_PER_PAGE - 1. Monotone in the value; fractions are cut off. */
export function cellOf(value: number): number {
  if (value < 0x8000_0000) {
    if (value <= 0) return 0;
    // Small integers only from here on: this line runs several times per request.
    const integer = value | 0;
    if (integer < 2 * CELLS_PER_PAGE) return integer;
    const shift = 21 - Math.clz32(integer);
    // Page = shift + 1; the leading bit of the shifted value is the page's own 1024.
    return (shift << PAGE_BITS) + (integer >>> shift);
  }
  const bounded = value > VALUE_MAX ? VALUE_MAX : Math.floor(value);
  const shift = 53 - PAGE_BITS - 1 - leadingZeros53(bounded);
  return (shift << PAGE_BITS) + Math.floor(bounded / 2 ** shift);
}

function leadingZeros53(value: number): number {
  return Math.clz32(Math.floor(value / 0x1_0000_0000)) - 11;
}

/** Widths of cells by their page: a lookup costs a tenth of computing the power. */
const WIDTHS = Float64Array.from({ length: PAGES_MAX }, (_, page) => 2 ** Math.max(0, page - 1));

/** The page of a cell. */
export function pageOf(cell: number): number {
  return cell >>> PAGE_BITS;
}

/** Lowest value of a cell. */
export function cellLow(cell: number): number {
  if (cell < 2 * CELLS_PER_PAGE) return cell;
  return ((cell & (CELLS_PER_PAGE - 1)) + CELLS_PER_PAGE) * cellWidth(cell);
}

/** Number of values that fall into a cell. */
export function cellWidth(cell: number): number {
  return WIDTHS[cell >>> PAGE_BITS] as number;
}

/** Highest whole value of a cell. */
export function cellHigh(cell: number): number {
  return cellLow(cell) + cellWidth(cell) - 1;
}

/** The value a cell is reported as: its middle. */
export function cellMiddle(cell: number): number {
  return cellLow(cell) + (cellWidth(cell) - 1) / 2;
}

/** Rank of a fraction among `count` values; without one, beyond the last. */
export function rankOf(fraction: number | undefined, count: number): number {
  return fraction === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(1, Math.ceil(fraction * count - 1e-9));
}

export class Histogram {
  readonly #pages: (Page | undefined)[] = new Array(PAGES_MAX).fill(undefined);
  /** Number of values in each page: percentiles skip empty pages. */
  readonly #pageCounts = new Float64Array(PAGES_MAX);
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = 0;

  get count(): number {
    return this.#count;
  }
  get sum(): number {
    return this.#sum;
  }
  /** Zero when empty. */
  get min(): number {
    return this.#count === 0 ? 0 : this.#min;
  }
  get max(): number {
    return this.#max;
  }
  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  record(value: number, times = 1): void {
    this.addToCell(cellOf(value), times);
    this.addMoments(value * times, value, value);
  }

  /** Increases the count of one cell; sum and extremes are added separately by `addMoments`. */
  addToCell(cell: number, times: number): void {
    assert(cell < CELLS_MAX, "a cell lies inside the histogram");
    const page = cell >>> PAGE_BITS;
    const cells = this.#pages[page] ?? this.#open(page);
    const at = cell & (CELLS_PER_PAGE - 1);
    this.#set(page, at, (cells[at] as number) + times);
    this.#pageCounts[page] = (this.#pageCounts[page] as number) + times;
    this.#count += times;
  }

  /** Adds many cells, ascending, or a range of them. */
  addCells(cells: Uint16Array, counts: Float64Array, from = 0, to = cells.length): void {
    for (let at = from; at < to; ) {
      const page = pageOf(cells[at] as number);
      const end = endOfPage(cells, at, to);
      this.#addToPage(page, cells, counts, at, end);
      at = end;
    }
  }

  /**
   * Raises a range of cells to absolute counts, and the cells of the whole, if given, by the same differences, which
   * replace `counts`. Works page by page in separate loops: they are bound by memory latency, and little work between
   * two cells lets the CPU overlap several loads.
   */
  raiseCells(
    cells: Uint16Array,
    counts: Float64Array,
    whole: Histogram | null,
    from = 0,
    to = cells.length,
  ): void {
    for (let at = from; at < to; ) {
      const page = (cells[at] as number) >>> PAGE_BITS;
      const end = endOfPage(cells, at, to);
      this.#raisePage(page, cells, counts, at, end);
      if (whole !== null) whole.#addToPage(page, cells, counts, at, end);
      at = end;
    }
  }

  #raisePage(
    page: number,
    cells: Uint16Array,
    counts: Float64Array,
    from: number,
    to: number,
  ): void {
    const held = this.#pages[page] ?? this.#open(page);
    const raised =
      held instanceof Uint16Array ? raiseNarrow(held, 0, cells, counts, from, to) : from;
    if (raised < to) raiseWide(this.#widened(page), cells, counts, raised, to);
    this.#counted(page, counts, from, to);
  }

  #addToPage(
    page: number,
    cells: Uint16Array,
    counts: Float64Array,
    from: number,
    to: number,
  ): void {
    const held = this.#pages[page] ?? this.#open(page);
    const added = held instanceof Uint16Array ? addNarrow(held, cells, counts, from, to) : from;
    if (added < to) addWide(this.#widened(page), cells, counts, added, to);
    this.#counted(page, counts, from, to);
  }

  #counted(page: number, counts: Float64Array, from: number, to: number): void {
    let more = 0;
    for (let at = from; at < to; at++) more += counts[at] as number;
    this.#pageCounts[page] = (this.#pageCounts[page] as number) + more;
    this.#count += more;
  }

  #open(page: number): Page {
    const cells = new Uint16Array(CELLS_PER_PAGE);
    this.#pages[page] = cells;
    return cells;
  }

  /** Sets a count in an allocated page. */
  #set(page: number, at: number, count: number): void {
    const fits = (count & COUNT_MAX_NARROW) === count;
    const cells = fits ? (this.#pages[page] as Page) : this.#widened(page);
    cells[at] = count;
  }

  /** The page widened for any count. */
  #widened(page: number): Float64Array {
    const cells = this.#pages[page] as Page;
    if (cells instanceof Float64Array) return cells;
    const wide = Float64Array.from(cells);
    this.#pages[page] = wide;
    return wide;
  }

  addMoments(sum: number, min: number, max: number): void {
    this.#sum += sum;
    if (min < this.#min) this.#min = min;
    if (max > this.#max) this.#max = max;
  }

  countOfCell(cell: number): number {
    return this.#pages[cell >>> PAGE_BITS]?.[cell & (CELLS_PER_PAGE - 1)] ?? 0;
  }

  /** Exact: the result is what recording both streams into one histogram would have given. */
  merge(other: Histogram): void {
    if (other.#count === 0) return;
    other.forEachCell((cell, count) => this.addToCell(cell, count));
    this.addMoments(other.#sum, other.#min, other.#max);
  }

  /** Values here that are not in `part`, which must be a subset; extremes to a cell's width. */
  without(part: Histogram): Histogram {
    const rest = new Histogram();
    for (let page = 0; page < PAGES_MAX; page++) {
      const cells = this.#pages[page];
      if (cells !== undefined) rest.#pages[page] = cells.slice();
      const taken = part.#pages[page];
      const left = taken === undefined ? 0 : rest.#take(page, taken);
      rest.#pageCounts[page] = (this.#pageCounts[page] as number) - left;
      rest.#count += rest.#pageCounts[page] as number;
    }
    if (rest.count > 0)
      rest.addMoments(
        this.#sum - part.#sum,
        Math.max(cellLow(rest.#firstCell()), this.#min),
        Math.min(cellHigh(rest.#lastCell()), this.#max),
      );
    return rest;
  }

  /** Subtracts counts from the cells of a page, no more than there are; returns how many. */
  #take(page: number, counts: Page): number {
    const cells = this.#pages[page];
    if (cells === undefined) return 0;
    let taken = 0;
    for (let at = 0; at < CELLS_PER_PAGE; at++) {
      const count = counts[at] as number;
      if (count === 0) continue;
      const held = cells[at] as number;
      const less = Math.min(held, count);
      cells[at] = held - less;
      taken += less;
    }
    return taken;
  }

  /** The lowest non-empty cell; the histogram must not be empty. */
  #firstCell(): number {
    const page = this.#pageCounts.findIndex((count) => count > 0);
    return (page << PAGE_BITS) + (this.#pages[page] as Page).findIndex((count) => count > 0);
  }

  #lastCell(): number {
    const page = this.#pageCounts.findLastIndex((count) => count > 0);
    return (page << PAGE_BITS) + (this.#pages[page] as Page).findLastIndex((count) => count > 0);
  }

  forEachCell(visit: (cell: number, count: number) => void): void {
    this.forEachPage((first, counts) => {
      for (let at = 0; at < CELLS_PER_PAGE; at++) {
        const count = counts[at] as number;
        if (count !== 0) visit(first + at, count);
      }
    });
  }

  /** Visits the counts of cells from `first` on, many of them zero: for readers of all cells every second. */
  forEachPage(visit: (first: number, counts: Page) => void): void {
    for (let page = 0; page < PAGES_MAX; page++) {
      const cells = this.#pages[page];
      if (cells !== undefined) visit(page << PAGE_BITS, cells);
    }
  }

  /** Smallest value that at least `fraction` of all records do not exceed; zero when empty. */
  quantile(fraction: number): number {
    return this.quantiles([fraction])[0] ?? 0;
  }

  /** Several quantiles in one pass; fractions must ascend. */
  quantiles(fractions: readonly number[]): number[] {
    if (this.#count === 0) return fractions.map(() => 0);
    const found: number[] = [];
    let rank = this.#rank(fractions[0]);
    let seen = 0;
    for (let page = 0; page < PAGES_MAX && found.length < fractions.length; page++) {
      const cells = this.#pages[page];
      if (cells === undefined) continue;
      const inPage = this.#pageCounts[page] as number;
      if (seen + inPage < rank) {
        seen += inPage;
        continue;
      }
      for (let block = 0; block < CELLS_PER_PAGE; block += BLOCK_CELLS) {
        const inBlock = blockSum(cells, block);
        if (seen + inBlock < rank) {
          seen += inBlock;
          continue;
        }
        for (let at = block; at < block + BLOCK_CELLS; at++) {
          seen += cells[at] as number;
          while (seen >= rank) {
            found.push(this.#clamp(cellMiddle((page << PAGE_BITS) + at)));
            rank = this.#rank(fractions[found.length]);
          }
        }
      }
    }
    return found;
  }

  /** Records at or below a value, to the precision of a cell. */
  countAtOrBelow(value: number): number {
    const last = cellOf(value);
    let seen = 0;
    this.forEachCell((cell, count) => {
      if (cell <= last) seen += count;
    });
    return seen;
  }

  clear(): void {
    this.#pages.fill(undefined);
    this.#pageCounts.fill(0);
    this.#count = 0;
    this.#sum = 0;
    this.#min = Number.POSITIVE_INFINITY;
    this.#max = 0;
  }

  #rank(fraction: number | undefined): number {
    return rankOf(fraction, this.#count);
  }

  #clamp(value: number): number {
    return Math.min(Math.max(value, this.#min), this.#max);
  }
}
