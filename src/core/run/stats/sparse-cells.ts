/**
 * The counts of a histogram's cells that hold anything, as one immutable value: what a short window
 * of time is kept as. Cells are those of `histogram.ts`, so windows add up to the very histogram
 * that all their values would have given.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { CELLS_MAX, cellMiddle, type Histogram, rankOf } from "./histogram.ts";

/** A number holds 2^53: its cell, and below that what the cell counts. */
const COUNT_SPAN = 2 ** 37;
/** 137 billion; a cell of one window counts no further. */
const COUNT_MAX = COUNT_SPAN - 1;

/** Where sums are counted; all zero in between. */
const row = new Float64Array(CELLS_MAX);

export class SparseCells {
  /**
   * Ascending by cell; each number is `cell * COUNT_SPAN + count`. Tens of thousands of these are held, most
   * of them of some ten cells: a plain array of numbers takes 50 bytes beside them, a typed one some 300.
   */
  readonly #packed: readonly number[];
  /** Below zero until it is asked for. */
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
    const packed: number[] = [];
    histogram.forEachCell((cell, count) => packed.push(pack(cell, count)));
    return packed.length === 0 ? SparseCells.EMPTY : new SparseCells(packed);
  }

  /** How many cells hold anything. */
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

  /** Of each cell, in the same order; a copy. */
  counts(): Float64Array {
    const counts = new Float64Array(this.#packed.length);
    for (let at = 0; at < counts.length; at++) counts[at] = countIn(this.#packed[at] as number);
    return counts;
  }

  get total(): number {
    if (this.#total < 0) this.#total = this.#packed.reduce((sum, one) => sum + countIn(one), 0);
    return this.#total;
  }

  /** What both hold together. */
  plus(other: SparseCells): SparseCells {
    const [ours, theirs] = [this.#packed, other.#packed];
    if (theirs.length === 0) return this;
    if (ours.length === 0) return other;
    const packed = new Array<number>(ours.length + theirs.length);
    let [here, there, length] = [0, 0, 0];
    while (here < ours.length && there < theirs.length) {
      const [a, b] = [ours[here] as number, theirs[there] as number];
      const [cellOfA, cellOfB] = [cellIn(a), cellIn(b)];
      packed[length++] =
        cellOfA < cellOfB ? a : cellOfB < cellOfA ? b : pack(cellOfA, countIn(a) + countIn(b));
      if (cellOfA <= cellOfB) here++;
      if (cellOfB <= cellOfA) there++;
    }
    while (here < ours.length) packed[length++] = ours[here++] as number;
    while (there < theirs.length) packed[length++] = theirs[there++] as number;
    return new SparseCells(packed.slice(0, length));
  }

  /** What all hold together. */
  static sum(all: readonly SparseCells[]): SparseCells {
    const held = all.filter(({ size }) => size > 0);
    const [first = SparseCells.EMPTY, second = SparseCells.EMPTY] = held;
    if (held.length < 3) return first.plus(second);
    // In one row of all cells: each is touched once, however many are added.
    let [low, high] = [CELLS_MAX, 0];
    for (const one of held) {
      const packed = one.#packed;
      for (let at = 0; at < packed.length; at++) {
        const number = packed[at] as number;
        const cell = cellIn(number);
        row[cell] = (row[cell] as number) + number - cell * COUNT_SPAN;
      }
      low = Math.min(low, cellIn(packed[0] as number));
      high = Math.max(high, cellIn(packed[packed.length - 1] as number));
    }
    const sum: number[] = [];
    for (let cell = low; cell <= high; cell++) {
      const count = row[cell] as number;
      if (count === 0) continue;
      sum.push(pack(cell, count));
      row[cell] = 0;
    }
    return new SparseCells(sum);
  }

  /** What is here and not in `part`. */
  minus(part: SparseCells): SparseCells {
    const [ours, theirs] = [this.#packed, part.#packed];
    if (theirs.length === 0) return this;
    const left: number[] = [];
    let there = 0;
    for (let here = 0; here < ours.length; here++) {
      const one = ours[here] as number;
      const cell = cellIn(one);
      const start = cell * COUNT_SPAN;
      while (there < theirs.length && (theirs[there] as number) < start) there++;
      const next = theirs[there];
      const less = next === undefined || next >= start + COUNT_SPAN ? 0 : next - start;
      if (one - start > less) left.push(one - less);
    }
    return left.length === 0 ? SparseCells.EMPTY : new SparseCells(left);
  }

  /** Ascending. */
  forEach(visit: (cell: number, count: number) => void): void {
    for (let at = 0; at < this.#packed.length; at++) {
      const one = this.#packed[at] as number;
      const cell = cellIn(one);
      visit(cell, one - cell * COUNT_SPAN);
    }
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

  /** Undefined when the bytes are no such cells. */
  static decode(reader: ByteReader): SparseCells | undefined {
    const length = reader.varint();
    // A cell takes two bytes at least: a length that lies must not cost memory.
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

function pack(cell: number, count: number): number {
  return cell * COUNT_SPAN + Math.min(count, COUNT_MAX);
}

function cellIn(packed: number): number {
  return Math.floor(packed / COUNT_SPAN);
}

function countIn(packed: number): number {
  return packed - cellIn(packed) * COUNT_SPAN;
}
