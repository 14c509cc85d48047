/**
 * The hot half of two histograms whose values are nearly always equal: the latency of a call and its
 * time to first byte, where the answer comes in one piece; the duration of an iteration and the part
 * of it that was no pause. What is equal is recorded once and folded into both, so that each is the
 * very histogram that its own values would have given.
 */

import { CellRecorder } from "./cell-recorder.ts";
import { together } from "./recorded.ts";
import type { SparseCells } from "./sparse-cells.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";

export class TwinRecorder {
  readonly #both = new CellRecorder();
  readonly #first = new CellRecorder();
  readonly #second = new CellRecorder();

  /** A negative second value is none. */
  record(first: number, second: number): void {
    if (first === second) {
      this.#both.record(first);
      return;
    }
    this.#first.record(first);
    if (second >= 0) this.#second.record(second);
  }

  /** Adds what was recorded since the last time, to be told by this frame; and what the first ones were. */
  fold(first: TrackedHistogram, second: TrackedHistogram, frame: number): SparseCells {
    const both = this.#both.take();
    const ofFirst = together(both, this.#first.take());
    first.add(ofFirst, frame);
    second.add(together(both, this.#second.take()), frame);
    return ofFirst.cells;
  }
}
