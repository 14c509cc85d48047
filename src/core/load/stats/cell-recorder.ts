/**
 * Hot half of a histogram: recording touches one counter and allocates nothing. Recorded values are folded into totals
 * when a window of time ends, and become that window's content.
 *
 *      record ──► cells (32 bit, pages on demand) + list of touched cells + moments
 *      fold   ──► adds them to the totals, gives them as sparse cells, and forgets them
 */

import { cellOf, PAGES_MAX } from "./histogram.ts";
import { CELLS_PER_PAGE } from "./histogram-page.ts";
import { NOTHING_RECORDED, type Recorded } from "./recorded.ts";
import { SparseCells } from "./sparse-cells.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";

const PAGE_BITS = 10;
const SUM = 0;
const MIN = 1;
const MAX = 2;

export class CellRecorder {
  readonly #pages: (Uint32Array | undefined)[] = new Array(PAGES_MAX).fill(undefined);
  /** Sum, minimum, maximum: in an array, because a double in a field may cost an object per write. */
  readonly #moments = new Float64Array([0, Number.POSITIVE_INFINITY, 0]);
  #touched = new Uint16Array(256);
  #touchedCount = 0;

  record(value: number): void {
    const cell = cellOf(value);
    const page = this.#pages[cell >>> PAGE_BITS] ?? this.#open(cell >>> PAGE_BITS);
    const at = cell & (CELLS_PER_PAGE - 1);
    const count = page[at] as number;
    page[at] = count + 1;
    if (count === 0) this.#touch(cell);
    const moments = this.#moments;
    moments[SUM] = (moments[SUM] as number) + value;
    if (value < (moments[MIN] as number)) moments[MIN] = value;
    if (value > (moments[MAX] as number)) moments[MAX] = value;
  }

  /** Adds the values recorded since the last fold, to be reported by this frame, and returns them. */
  fold(into: TrackedHistogram, frame: number): SparseCells {
    const recorded = this.take();
    into.add(recorded, frame);
    return recorded.cells;
  }

  /** Returns the values recorded since the last fold and clears them. */
  take(): Recorded {
    if (this.#touchedCount === 0) return NOTHING_RECORDED;
    const cells = this.#touched.slice(0, this.#touchedCount).sort();
    const counts = new Float64Array(cells.length);
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as number;
      const page = this.#pages[cell >>> PAGE_BITS] as Uint32Array;
      const at = cell & (CELLS_PER_PAGE - 1);
      counts[i] = page[at] as number;
      page[at] = 0;
    }
    const [sum = 0, min = 0, max = 0] = this.#moments;
    this.#touchedCount = 0;
    this.#moments.set([0, Number.POSITIVE_INFINITY, 0]);
    return { cells: SparseCells.of(cells, counts), sum, min, max };
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
    this.#pages[page] = cells;
    return cells;
  }
}
