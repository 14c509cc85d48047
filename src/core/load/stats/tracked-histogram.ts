/**
 * A histogram that tracks which of its cells changed since a frame, so that the next frame carries those alone. Counts
 * are absolute: repeating one changes nothing (MET-2).
 *
 *   frame 7: cells 3 9    frame 8: cells 9 12    →  all that changed after frame 6: 3 9 12
 *
 * A receiver that acknowledged nothing, or an older frame than is remembered here, gets every cell. Nothing is tracked
 * until the first frame is written: a local run only merges and has no receiver.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { type CellStretch, cellsAt, reserveCells } from "./cell-buffer.ts";
import { CELLS_MAX, Histogram } from "./histogram.ts";
import type { Recorded } from "./recorded.ts";

/** Changed cells that are remembered individually; with more, the next frame carries all. */
const REMEMBERED_MAX = 4_096;

interface Changed {
  readonly frame: number;
  /** Ascending and distinct. */
  readonly cells: Uint16Array;
}

export class TrackedHistogram {
  readonly histogram = new Histogram();
  /** The first frame that reports the last change. */
  changedIn = 0;
  #changed: Changed[] = [];
  #remembered = 0;
  /** Changes in frames up to this one are not known cell by cell. */
  #forgotten = 0;
  #isToldOn = false;

  /** Adds recorded values, to be reported by this frame. */
  add({ cells: recorded, max, min, sum }: Recorded, frame: number): void {
    if (recorded.size === 0) return;
    const cells = recorded.cells();
    this.histogram.addCells(cells, recorded.counts());
    this.histogram.addMoments(sum, min, max);
    this.changedIn = frame;
    if (this.#isToldOn) this.#remember(cells, frame);
    else this.#forgotten = frame;
  }

  /** Adds a whole histogram, to be reported by this frame. */
  merge(other: Histogram, frame: number): void {
    if (other.count === 0) return;
    this.histogram.merge(other);
    this.changedIn = frame;
    this.#forget(frame);
  }

  /** Raises it to the values of a frame, and the whole that it is a part of, if any, by the same differences. */
  raise(changes: CellChanges, whole: TrackedHistogram | null, frame: number): void {
    const { stretch } = changes;
    if (stretch === null) return;
    const { from, to } = stretch;
    const { cells, counts } = cellsAt(stretch);
    const sum = Math.max(0, changes.sum - this.histogram.sum);
    this.histogram.raiseCells(cells, counts, whole?.histogram ?? null, from, to);
    this.histogram.addMoments(sum, changes.min, changes.max);
    if (whole !== null) whole.#raised(changes, sum, frame);
  }

  /** Adds the differences of a raised part: its counts, which the changes contain now, and its sum. */
  addRaised(changes: CellChanges, sum: number, frame: number): void {
    const { stretch } = changes;
    if (stretch === null) return;
    const { cells, counts } = cellsAt(stretch);
    this.histogram.addCells(cells, counts, stretch.from, stretch.to);
    this.#raised(changes, sum, frame);
  }

  #raised({ max, min, stretch }: CellChanges, sum: number, frame: number): void {
    this.histogram.addMoments(sum, min, max);
    this.changedIn = frame;
    if (!this.#isToldOn || stretch === null) this.#forgotten = frame;
    else this.#remember(cellsAt(stretch).cells.slice(stretch.from, stretch.to), frame);
  }

  #remember(cells: Changed["cells"], frame: number): void {
    this.#changed.push({ frame, cells });
    this.#remembered += cells.length;
    if (this.#remembered > REMEMBERED_MAX) this.#forget(frame);
  }

  #forget(upTo: number): void {
    this.#forgotten = Math.max(this.#forgotten, upTo);
    this.#changed = this.#changed.filter(({ frame }) => frame > upTo);
    this.#remembered = this.#changed.reduce((sum, { cells }) => sum + cells.length, 0);
  }

  /** Number of cells; if any, the moments and, ascending, steps between cells with absolute counts. */
  write(writer: ByteWriter, since: number): void {
    this.#isToldOn = true;
    if (this.changedIn <= since) {
      writer.varint(0);
      return;
    }
    const cells = this.#changedAfter(since);
    writer.varint(cells.length);
    writer.float64(this.histogram.sum);
    writer.float64(this.histogram.min);
    writer.float64(this.histogram.max);
    let previous = 0;
    for (const cell of cells) {
      writer.varint(cell - previous);
      writer.varint(this.histogram.countOfCell(cell));
      previous = cell;
    }
  }

  /** Ascending and distinct. */
  #changedAfter(since: number): readonly number[] | Uint16Array {
    if (since < this.#forgotten || since === 0) {
      const all: number[] = [];
      this.histogram.forEachCell((cell) => all.push(cell));
      return all;
    }
    this.#forget(since);
    const [only] = this.#changed;
    if (only !== undefined && this.#changed.length === 1) return only.cells;
    const all = new Uint16Array(this.#remembered);
    let length = 0;
    for (const { cells } of this.#changed) {
      all.set(cells, length);
      length += cells.length;
    }
    return distinct(all.sort());
  }
}

/** Removes duplicates from sorted cells, in place. */
function distinct(sorted: Uint16Array): Uint16Array {
  let length = 0;
  for (let at = 0; at < sorted.length; at++)
    if (at === 0 || sorted[at] !== sorted[length - 1]) sorted[length++] = sorted[at] as number;
  return sorted.subarray(0, length);
}

/** Changes of one histogram in one frame. */
export interface CellChanges {
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  /** Cells, ascending, and the absolute count of each; null for none. */
  readonly stretch: CellStretch | null;
}

export const NO_CHANGES: CellChanges = { sum: 0, min: 0, max: 0, stretch: null };

/** Undefined when the bytes are invalid. */
export function readCellChanges(reader: ByteReader): CellChanges | undefined {
  const length = reader.varint();
  // A cell takes two bytes at least: a false length must not cost memory.
  if (reader.failed || length > CELLS_MAX || 2 * length > reader.remaining) return undefined;
  if (length === 0) return NO_CHANGES;
  const sum = reader.float64();
  const min = reader.float64();
  const max = reader.float64();
  if (!(sum >= 0 && min >= 0 && max >= min && max < Number.POSITIVE_INFINITY)) return undefined;
  const stretch = reserveCells(length);
  const { from, to } = stretch;
  const { cells, counts } = cellsAt(stretch);
  let cell = 0;
  for (let at = from; at < to; at++) {
    const step = reader.varint();
    cell += step;
    if (cell >= CELLS_MAX || (at > from && step === 0)) return undefined;
    cells[at] = cell;
    counts[at] = reader.varint();
  }
  return reader.failed ? undefined : { sum, min, max, stretch };
}
