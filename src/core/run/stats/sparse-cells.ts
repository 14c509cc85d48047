/**
 * The counts of a histogram's cells that hold anything, as one immutable value: what a short window
 * of time is kept as. Cells are those of `histogram.ts`, so windows add up to the very histogram
 * that all their values would have given.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { CELLS_MAX, cellMiddle } from "./histogram.ts";

export class SparseCells {
  /** Ascending. */
  readonly cells: Uint16Array;
  /** Of each cell, in the same order. */
  readonly counts: Float64Array;
  /** Below zero until it is asked for. */
  #total = -1;
  static readonly EMPTY = new SparseCells(new Uint16Array(0), new Float64Array(0));

  constructor(cells: Uint16Array, counts: Float64Array) {
    this.cells = cells;
    this.counts = counts;
  }

  get total(): number {
    if (this.#total < 0) this.#total = this.counts.reduce((sum, count) => sum + count, 0);
    return this.#total;
  }

  /** What both hold together. */
  plus(other: SparseCells): SparseCells {
    if (other.cells.length === 0) return this;
    if (this.cells.length === 0) return other;
    const cells = new Uint16Array(this.cells.length + other.cells.length);
    const counts = new Float64Array(cells.length);
    let [here, there, length] = [0, 0, 0];
    while (here < this.cells.length || there < other.cells.length) {
      const a = this.cells[here] ?? CELLS_MAX;
      const b = other.cells[there] ?? CELLS_MAX;
      cells[length] = Math.min(a, b);
      counts[length++] =
        (a <= b ? (this.counts[here++] ?? 0) : 0) + (b <= a ? (other.counts[there++] ?? 0) : 0);
    }
    return new SparseCells(cells.slice(0, length), counts.slice(0, length));
  }

  /** Two and two, so that no cell is copied more often than the logarithm of their number. */
  static sum(all: readonly SparseCells[]): SparseCells {
    let cells = all;
    while (cells.length > 1) {
      const pairs: SparseCells[] = [];
      for (let at = 0; at < cells.length; at += 2)
        pairs.push(cells[at]?.plus(cells[at + 1] ?? SparseCells.EMPTY) ?? SparseCells.EMPTY);
      cells = pairs;
    }
    return cells[0] ?? SparseCells.EMPTY;
  }

  /** Smallest value that at least `fraction` of all do not exceed, as its cell's middle; null when empty. */
  quantile(fraction: number): number | null {
    const rank = Math.max(1, Math.ceil(fraction * this.total - 1e-9));
    let seen = 0;
    for (let at = 0; at < this.counts.length; at++) {
      seen += this.counts[at] as number;
      if (seen >= rank) return cellMiddle(this.cells[at] ?? 0);
    }
    return null;
  }

  encode(writer: ByteWriter): void {
    writer.varint(this.cells.length);
    let previous = 0;
    for (let at = 0; at < this.cells.length; at++) {
      const cell = this.cells[at] as number;
      writer.varint(cell - previous);
      writer.varint(this.counts[at] ?? 0);
      previous = cell;
    }
  }

  /** Undefined when the bytes are no such cells. */
  static decode(reader: ByteReader): SparseCells | undefined {
    const length = reader.varint();
    // A cell takes two bytes at least: a length that lies must not cost memory.
    if (reader.failed || length > CELLS_MAX || 2 * length > reader.remaining) return undefined;
    if (length === 0) return SparseCells.EMPTY;
    const cells = new Uint16Array(length);
    const counts = new Float64Array(length);
    let cell = 0;
    for (let at = 0; at < length; at++) {
      const step = reader.varint();
      cell += step;
      if (cell >= CELLS_MAX || (at > 0 && step === 0)) return undefined;
      cells[at] = cell;
      counts[at] = reader.varint();
    }
    return reader.failed ? undefined : new SparseCells(cells, counts);
  }
}
