/**
 * Non-empty cells of a histogram as one immutable value: the content of a short window of time. Cells are those of
 * `histogram.ts`, so windows add up to exactly the histogram of all their values.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { CELLS_MAX, cellMiddle, type Histogram, rankOf } from "./histogram.ts";

/** A number has 53 bits: the cell, and below it the count. */
const COUNT_SPAN = 2 ** 37;
/** 137 billion; a cell of one window counts no further. */
const COUNT_MAX = COUNT_SPAN - 1;

/** Scratch row for sums, with the total of each block to skip empty ones; all zero between uses. */
const row = new Float64Array(CELLS_MAX);
const BLOCK_BITS = 6;
const BLOCK_CELLS = 1 << BLOCK_BITS;
const blocks = new Float64Array(CELLS_MAX >>> BLOCK_BITS);
/** Scratch buffer for results of unknown length. */
const results = new Float64Array(CELLS_MAX);

export class SparseCells {
  /**
   * Ascending by cell; each number is `cell * COUNT_SPAN + count`. Tens of thousands of these are kept, most of about
   * ten cells: a plain array of numbers has 50 bytes of overhead, a typed one about 300.
   */
  readonly #packed: readonly number[];
  /** Below zero until it is computed. */
  #total = -1;
  static readonly EMPTY = new SparseCells([]);

  private constructor(packed: readonly number[]) {
    this.#packed = packed;
  }

  /** Ascending cells, and the count of each. */
  static of(cells: ArrayLike<number>, counts: ArrayLike<number>): SparseCells {
    if (cells.length === 0) return SparseCells.EMPTY;
    const packed = new Array<number>(cells.length);
    for (let at = 0; at < packed.length; at++) packed[at] = pack(cells[at] ?? 0, counts[at] ?? 0);
    return new SparseCells(packed);
  }

  /** All of a histogram. */
  static ofHistogram(histogram: Histogram): SparseCells {
    let length = 0;
    histogram.forEachPage((first, counts) => {
      length = addResults(first, counts, length);
    });
    return length === 0 ? SparseCells.EMPTY : new SparseCells(firstResults(length));
  }

  /** Number of non-empty cells. */
  get size(): number {
    return this.#packed.length;
  }

  /** The lowest cell; null when empty. */
  get first(): number | null {
    const [first] = this.#packed;
    return first === undefined ? null : cellIn(first);
  }

  /** The highest one. */
  get last(): number | null {
    const last = this.#packed.at(-1);
    return last === undefined ? null : cellIn(last);
  }

  /** Ascending; a copy. */
  cells(): Uint16Array {
    const cells = new Uint16Array(this.#packed.length);
    for (let at = 0; at < cells.length; at++) cells[at] = cellIn(this.#packed[at] as number);
    return cells;
  }

  /** Count of each cell, in the same order; a copy. */
  counts(): Float64Array {
    const counts = new Float64Array(this.#packed.length);
    for (let at = 0; at < counts.length; at++) counts[at] = countIn(this.#packed[at] as number);
    return counts;
  }

  get total(): number {
    if (this.#total < 0) {
      let total = 0;
      for (let at = 0; at < this.#packed.length; at++) total += countIn(this.#packed[at] as number);
      this.#total = total;
    }
    return this.#total;
  }

  /** Sum of both. */
  plus(other: SparseCells): SparseCells {
    const ours = this.#packed;
    const theirs = other.#packed;
    if (theirs.length === 0) return this;
    if (ours.length === 0) return other;
    let here = 0;
    let there = 0;
    let length = 0;
    while (here < ours.length && there < theirs.length) {
      const our = ours[here] as number;
      const their = theirs[there] as number;
      const start = cellIn(our) * COUNT_SPAN;
      if (their >= start + COUNT_SPAN) {
        results[length++] = our;
        here++;
      } else if (their < start) {
        results[length++] = their;
        there++;
      } else {
        results[length++] = start + Math.min(our - start + (their - start), COUNT_MAX);
        here++;
        there++;
      }
    }
    while (here < ours.length) results[length++] = ours[here++] as number;
    while (there < theirs.length) results[length++] = theirs[there++] as number;
    return new SparseCells(firstResults(length));
  }

  /** Sum of all. */
  static sum(all: readonly SparseCells[]): SparseCells {
    const held = all.filter(({ size }) => size > 0);
    const [first = SparseCells.EMPTY, second = SparseCells.EMPTY] = held;
    if (held.length < 3) return first.plus(second);
    for (const one of held) addToRow(one.#packed);
    let length = 0;
    for (let block = 0; block < blocks.length; block++) {
      if (blocks[block] === 0) continue;
      const end = (block + 1) << BLOCK_BITS;
      for (let cell = end - BLOCK_CELLS; cell < end; cell++) {
        const count = row[cell] as number;
        if (count !== 0) results[length++] = pack(cell, count);
      }
    }
    clearRow();
    return new SparseCells(firstResults(length));
  }

  /** Quantiles of the sum of all, without computing it. */
  static quantilesOfSum(all: readonly SparseCells[], fractions: readonly number[]): number[] {
    let total = 0;
    for (const one of all) total += addToRow(one.#packed);
    const found: number[] = [];
    let rank = rankOf(fractions[0], total);
    let seen = 0;
    for (let block = 0; block < blocks.length && found.length < fractions.length; block++) {
      const inBlock = blocks[block] as number;
      if (seen + inBlock < rank) {
        seen += inBlock;
        continue;
      }
      const end = (block + 1) << BLOCK_BITS;
      for (let cell = end - BLOCK_CELLS; cell < end; cell++) {
        seen += row[cell] as number;
        while (seen >= rank) {
          found.push(cellMiddle(cell));
          rank = rankOf(fractions[found.length], total);
        }
      }
    }
    clearRow();
    return found;
  }

  /** Counts here minus those of `part`. */
  minus(part: SparseCells): SparseCells {
    const ours = this.#packed;
    const theirs = part.#packed;
    if (theirs.length === 0) return this;
    let length = 0;
    let there = 0;
    for (let here = 0; here < ours.length; here++) {
      const one = ours[here] as number;
      const cell = cellIn(one);
      const start = cell * COUNT_SPAN;
      while (there < theirs.length && (theirs[there] as number) < start) there++;
      const next = there < theirs.length ? (theirs[there] as number) : Number.POSITIVE_INFINITY;
      const less = next >= start + COUNT_SPAN ? 0 : next - start;
      if (one - start > less) results[length++] = one - less;
    }
    return length === 0 ? SparseCells.EMPTY : new SparseCells(firstResults(length));
  }

  /** Counts of groups of neighbours: `groups` numbers them, by cell and ascending. */
  countsBy(groups: Int16Array): { readonly groups: number[]; readonly counts: number[] } {
    const found: number[] = [];
    const counts: number[] = [];
    let sum = 0;
    for (let at = 0; at < this.#packed.length; at++) {
      const one = this.#packed[at] as number;
      const cell = cellIn(one);
      const group = groups[cell] as number;
      if (group !== found[found.length - 1]) {
        if (found.length > 0) counts.push(sum);
        found.push(group);
        sum = 0;
      }
      sum += one - cell * COUNT_SPAN;
    }
    if (found.length > 0) counts.push(sum);
    return { groups: found, counts };
  }

  /** Smallest value that at least `fraction` of all do not exceed, as its cell's middle; null when empty. */
  quantile(fraction: number): number | null {
    return this.quantiles([fraction])[0] ?? null;
  }

  /** Several in one pass; fractions must ascend. Nothing when empty. */
  quantiles(fractions: readonly number[]): number[] {
    const found: number[] = [];
    let rank = this.#rank(fractions[0]);
    let seen = 0;
    for (let at = 0; at < this.#packed.length && found.length < fractions.length; at++) {
      const one = this.#packed[at] as number;
      const cell = cellIn(one);
      seen += one - cell * COUNT_SPAN;
      while (seen >= rank) {
        found.push(cellMiddle(cell));
        rank = this.#rank(fractions[found.length]);
      }
    }
    return found;
  }

  #rank(fraction: number | undefined): number {
    return rankOf(fraction, this.total);
  }

  encode(writer: ByteWriter): void {
    writer.varint(this.#packed.length);
    let previous = 0;
    for (const one of this.#packed) {
      const cell = cellIn(one);
      writer.varint(cell - previous);
      writer.varint(countIn(one));
      previous = cell;
    }
  }

  /** Undefined when the bytes are not such cells. */
  static decode(reader: ByteReader): SparseCells | undefined {
    const length = reader.varint();
    // A cell takes two bytes at least: a false length must not cost memory.
    if (reader.failed || length > CELLS_MAX || 2 * length > reader.remaining) return undefined;
    if (length === 0) return SparseCells.EMPTY;
    const packed = new Array<number>(length);
    let cell = 0;
    for (let at = 0; at < length; at++) {
      const step = reader.varint();
      cell += step;
      if (cell >= CELLS_MAX || (at > 0 && step === 0)) return undefined;
      const count = reader.varint();
      packed[at] = pack(cell, count);
    }
    return reader.failed ? undefined : new SparseCells(packed);
  }
}

/** Adds the cells to the row and returns their total: each cell is touched once, however many are added. */
function addToRow(packed: readonly number[]): number {
  let total = 0;
  for (let at = 0; at < packed.length; at++) {
    const number = packed[at] as number;
    const cell = cellIn(number);
    const count = number - cell * COUNT_SPAN;
    row[cell] = (row[cell] as number) + count;
    blocks[cell >>> BLOCK_BITS] = (blocks[cell >>> BLOCK_BITS] as number) + count;
    total += count;
  }
  return total;
}

function clearRow(): void {
  for (let block = 0; block < blocks.length; block++)
    if (blocks[block] !== 0) row.fill(0, block << BLOCK_BITS, (block + 1) << BLOCK_BITS);
  blocks.fill(0);
}

/** Appends non-empty cells from `first` on after `before` results; returns the new number of results. */
function addResults(first: number, counts: ArrayLike<number>, before: number): number {
  let length = before;
  for (let at = 0; at < counts.length; at++) {
    const count = counts[at] as number;
    if (count !== 0) results[length++] = pack(first + at, count);
  }
  return length;
}

/** A copy of the first results. */
function firstResults(length: number): number[] {
  const packed = new Array<number>(length);
  for (let at = 0; at < length; at++) packed[at] = results[at] as number;
  return packed;
}

function pack(cell: number, count: number): number {
  return cell * COUNT_SPAN + Math.min(count, COUNT_MAX);
}

function cellIn(packed: number): number {
  return Math.floor(packed / COUNT_SPAN);
}

function countIn(packed: number): number {
  return packed - cellIn(packed) * COUNT_SPAN;
}
