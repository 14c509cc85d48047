/**
 * The sending half of a histogram: recording touches one counter and allocates nothing; what
 * changed since the last look is written as the new absolute counts of the touched cells.
 *
 *      record ──► window cells (32 bit, pages on demand) + list of touched cells
 *      write  ──► folds the window into the totals (doubles), writes the touched cells, forgets them
 *
 * Absolute counts make a lost or repeated frame harmless: the receiver keeps the larger one (MET-2).
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { CELLS_PER_PAGE, cellOf, type Histogram, PAGES_MAX } from "./histogram.ts";

const PAGE_BITS = 10;
const CELLS_MAX = PAGES_MAX * CELLS_PER_PAGE;
const SUM = 0;
const MIN = 1;
const MAX = 2;

export class CellRecorder {
  readonly #window: (Uint32Array | undefined)[] = new Array(PAGES_MAX).fill(undefined);
  readonly #totals: (Float64Array | undefined)[] = new Array(PAGES_MAX).fill(undefined);
  /** Sum, minimum, maximum: in an array, because a double in a field may cost an object per write. */
  readonly #moments = new Float64Array([0, Number.POSITIVE_INFINITY, 0]);
  #touched = new Uint16Array(256);
  #touchedCount = 0;

  get changed(): boolean {
    return this.#touchedCount > 0;
  }

  record(value: number): void {
    const cell = cellOf(value);
    const page = this.#window[cell >>> PAGE_BITS] ?? this.#open(cell >>> PAGE_BITS);
    const at = cell & (CELLS_PER_PAGE - 1);
    const count = page[at] as number;
    page[at] = count + 1;
    if (count === 0) this.#touch(cell);
    const moments = this.#moments;
    moments[SUM] = (moments[SUM] as number) + value;
    if (value < (moments[MIN] as number)) moments[MIN] = value;
    if (value > (moments[MAX] as number)) moments[MAX] = value;
  }

  /** Number of cells; if any, the moments and, ascending, steps between cells with absolute counts. */
  writeChanges(writer: ByteWriter): void {
    const touched = this.#touched.subarray(0, this.#touchedCount).sort();
    writer.varint(touched.length);
    if (touched.length === 0) return;
    for (const moment of this.#moments) writer.float64(moment);
    let previous = 0;
    for (const cell of touched) {
      writer.varint(cell - previous);
      writer.varint(this.#fold(cell));
      previous = cell;
    }
    this.#touchedCount = 0;
  }

  reset(): void {
    this.#window.fill(undefined);
    this.#totals.fill(undefined);
    this.#moments.set([0, Number.POSITIVE_INFINITY, 0]);
    this.#touchedCount = 0;
  }

  #fold(cell: number): number {
    const at = cell & (CELLS_PER_PAGE - 1);
    const window = this.#window[cell >>> PAGE_BITS];
    const totals = this.#totals[cell >>> PAGE_BITS];
    if (window === undefined || totals === undefined) return 0;
    const total = (totals[at] ?? 0) + (window[at] ?? 0);
    totals[at] = total;
    window[at] = 0;
    return total;
  }

  #touch(cell: number): void {
    if (this.#touchedCount === this.#touched.length) {
      const grown = new Uint16Array(this.#touched.length * 2);
      grown.set(this.#touched);
      this.#touched = grown;
    }
    this.#touched[this.#touchedCount++] = cell;
  }

  #open(page: number): Uint32Array {
    const cells = new Uint32Array(CELLS_PER_PAGE);
    this.#window[page] = cells;
    this.#totals[page] = new Float64Array(CELLS_PER_PAGE);
    return cells;
  }
}

/** What one frame says of one histogram. */
export interface CellChanges {
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  readonly cells: readonly number[];
  /** Absolute count of each cell. */
  readonly counts: readonly number[];
}

const NOTHING: CellChanges = { sum: 0, min: 0, max: 0, cells: [], counts: [] };

/** Undefined when the bytes make no sense. */
export function readCellChanges(reader: ByteReader): CellChanges | undefined {
  const length = reader.varint();
  if (reader.failed || length > CELLS_MAX) return undefined;
  if (length === 0) return NOTHING;
  const [sum, min, max] = [reader.float64(), reader.float64(), reader.float64()];
  if (!(sum >= 0 && min >= 0 && max >= min && max < Number.POSITIVE_INFINITY)) return undefined;
  const cells: number[] = [];
  const counts: number[] = [];
  let cell = 0;
  for (let i = 0; i < length; i++) {
    cell += reader.varint();
    counts.push(reader.varint());
    cells.push(cell);
    if (reader.failed || cell >= CELLS_MAX) return undefined;
  }
  return { sum, min, max, cells, counts };
}

/** Raises a histogram to what the frame says; `grown` hears by how much each cell did. */
export function applyCellChanges(
  histogram: Histogram,
  changes: CellChanges,
  grown: ((cell: number, count: number) => void) | null,
): void {
  if (changes.cells.length === 0) return;
  for (const [at, cell] of changes.cells.entries()) {
    const more = (changes.counts[at] ?? 0) - histogram.countOfCell(cell);
    if (more <= 0) continue;
    histogram.addToCell(cell, more);
    grown?.(cell, more);
  }
  histogram.addMoments(Math.max(0, changes.sum - histogram.sum), changes.min, changes.max);
}
