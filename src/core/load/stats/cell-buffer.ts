/**
 * Buffer for the cells of a frame, from reading until merging: shared by all frames, so that reading creates no
 * garbage. A frame is merged as soon as it is read; the next one overwrites it.
 */

import { assert } from "../../base/assert.ts";

/** Capacity kept between frames: 640 kB. A larger frame, as a first one may be, gets its own buffer. */
const KEPT_CELLS_MAX = 65_536;

let cells = new Uint16Array(KEPT_CELLS_MAX);
let counts = new Float64Array(KEPT_CELLS_MAX);
let length = 0;
/** Generation of the current frame. */
let generation = 0;

/** Range of the cells of one histogram. */
export interface CellStretch {
  readonly generation: number;
  readonly from: number;
  readonly to: number;
}

/** Starts a new frame; the cells of the previous one are dropped. */
export function beginCells(): void {
  generation++;
  length = 0;
  if (cells.length > KEPT_CELLS_MAX) resize(KEPT_CELLS_MAX);
}

/** Reserves this many more cells; the caller has checked that the frame has bytes for them. */
export function reserveCells(count: number): CellStretch {
  const from = length;
  length += count;
  if (length > cells.length) resize(Math.max(length, 2 * cells.length));
  return { generation, from, to: length };
}

/** Buffers of the ranges of the frame that was read last. */
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
