/**
 * What a frame says of cells, from when it is read until it is merged: one place for all frames, so that reading
 * leaves no garbage. A frame is merged as soon as it is read; the next one takes its place.
 */

import { assert } from "../../base/assert.ts";

/** Cells that are kept room for between frames: 640 kB. A frame with more, as a first one may be, gets its own. */
const KEPT_CELLS_MAX = 65_536;

let cells = new Uint16Array(KEPT_CELLS_MAX);
let counts = new Float64Array(KEPT_CELLS_MAX);
let length = 0;
/** Which frame it is of. */
let generation = 0;

/** Where the cells of one histogram stand. */
export interface CellStretch {
  readonly generation: number;
  readonly from: number;
  readonly to: number;
}

/** The cells of a frame follow; those before are forgotten. */
export function beginCells(): void {
  generation++;
  length = 0;
  if (cells.length > KEPT_CELLS_MAX) resize(KEPT_CELLS_MAX);
}

/** Room for so many more; whoever asks has seen that the frame has bytes for them. */
export function reserveCells(count: number): CellStretch {
  const from = length;
  length += count;
  if (length > cells.length) resize(Math.max(length, 2 * cells.length));
  return { generation, from, to: length };
}

/** Of the stretches of the frame that was read last. */
export function cellsAt({ generation: of }: CellStretch): {
  readonly cells: Uint16Array;
  readonly counts: Float64Array;
} {
  assert(of === generation, "a frame is merged before the next one is read");
  return { cells, counts };
}

function resize(size: number): void {
  const [held, heldCounts] = [cells, counts];
  cells = new Uint16Array(size);
  counts = new Float64Array(size);
  cells.set(held.subarray(0, Math.min(length, size)));
  counts.set(heldCounts.subarray(0, Math.min(length, size)));
}
