/** Durations of groups of calls: the whole of an iteration, and the groups its author named. */

import type { Histogram } from "./histogram.ts";
import { Tally, type TallyShape } from "./tally.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";
import { TwinRecorder } from "./twin-recorder.ts";

/** The group that is the whole iteration. */
export const WHOLE_ITERATION = "";

export const GROUP_SHAPE: TallyShape = { counts: 2, histograms: 4, keysMax: 0, keyMax: 0 };
const OK = 0;
const FAILED = 1;
const DURATION = 0;
const ACTIVE = 1;
const FAILED_DURATION = 2;
const FAILED_ACTIVE = 3;

export class GroupRecorder {
  readonly #counts = new Float64Array(GROUP_SHAPE.counts);
  readonly #all = new TwinRecorder();
  /** Durations of failed ones; those of successes are all minus these. */
  readonly #failed = new TwinRecorder();
  #changed = false;

  /** Microseconds; `active` excludes declared pauses. An iteration fails by not completing. */
  record(failed: boolean, durationUs: number, activeUs: number): void {
    const outcome = failed ? FAILED : OK;
    this.#counts[outcome] = (this.#counts[outcome] ?? 0) + 1;
    this.#all.record(durationUs, activeUs);
    this.#changed = true;
    if (failed) this.#failed.record(durationUs, activeUs);
  }

  /** Adds the values recorded since the last fold to the totals, to be reported by this frame. */
  fold({ tally }: GroupTotals, frame: number): void {
    if (!this.#changed) return;
    this.#changed = false;
    tally.counts.set(this.#counts);
    tally.changedIn = frame;
    const at = (index: number) => tally.histograms[index] as TrackedHistogram;
    this.#all.fold(at(DURATION), at(ACTIVE), frame);
    this.#failed.fold(at(FAILED_DURATION), at(FAILED_ACTIVE), frame);
  }
}

/** A group's tally with named fields. */
export class GroupTotals {
  readonly tally = new Tally(GROUP_SHAPE);

  get ok(): number {
    return this.tally.counts[OK] ?? 0;
  }

  get failed(): number {
    return this.tally.counts[FAILED] ?? 0;
  }

  /** Microseconds. */
  get duration(): Histogram {
    return this.#histogram(DURATION);
  }

  get active(): Histogram {
    return this.#histogram(ACTIVE);
  }

  /** Durations of successful ones; extremes are known to the width of a cell once something failed. */
  get okDuration(): Histogram {
    return without(this.duration, this.#histogram(FAILED_DURATION));
  }

  get okActive(): Histogram {
    return without(this.active, this.#histogram(FAILED_ACTIVE));
  }

  #histogram(at: number): Histogram {
    return (this.tally.histograms[at] as TrackedHistogram).histogram;
  }
}

function without(all: Histogram, failed: Histogram): Histogram {
  return failed.count === 0 ? all : all.without(failed);
}
