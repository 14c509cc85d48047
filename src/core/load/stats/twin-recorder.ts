/**
 * Hot half of two histograms whose values are nearly always equal: the latency of a call and its time to first byte,
 * where the answer arrives in one piece; the duration of an iteration and its part without pauses. Equal values are
 * recorded once and folded into both, so that each is exactly the histogram of its own values.
 */

import { CellRecorder } from "./cell-recorder.ts";
import { together } from "./recorded.ts";
import type { SparseCells } from "./sparse-cells.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";

export class TwinRecorder {
  readonly #both = new CellRecorder();
  readonly #first = new CellRecorder();
  readonly #second = new CellRecorder();

  /** A negative second value means none. */
  record(first: number, second: number): void {
    if (first === second) {
      this.#both.record(first);
      return;
    }
    this.#first.record(first);
    if (second >= 0) this.#second.record(second);
  }

  /** Adds the values recorded since the last fold, to be reported by this frame, and returns the first ones. */
  fold(first: TrackedHistogram, second: TrackedHistogram, frame: number): SparseCells {
    const both = this.#both.take();
    const ofFirst = together(both, this.#first.take());
    first.add(ofFirst, frame);
    second.add(together(both, this.#second.take()), frame);
    return ofFirst.cells;
  }
}
