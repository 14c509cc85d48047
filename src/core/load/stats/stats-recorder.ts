/**
 * Recording side of a workflow's statistics. Each record costs a counter; when a window of the measured time is over,
 * its values become that window and part of the totals, and the next frame reports both. The caller supplies the time
 * as the window number.
 */

import { CellRecorder } from "./cell-recorder.ts";
import { FrameWriter } from "./frames.ts";
import { GroupRecorder } from "./group-stats.ts";
import { MetricRecorder } from "./metrics.ts";
import type { Tags } from "./names.ts";
import type { FailureSamples } from "./samples.ts";
import { StepRecorder } from "./step-stats.ts";
import type { Tally } from "./tally.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";
import { typicalUs } from "./unanswered.ts";
import { WINDOW_MS } from "./window-store.ts";
import {
  CHECK_EARLY,
  CHECK_FAILED,
  CHECK_PASSED,
  CHECK_SHAPE,
  type Moment,
  RUN_COUNTS,
  RUN_HISTOGRAMS,
  type StatsShape,
  WorkflowStats,
} from "./workflow-stats.ts";

const LOOP_LAG = RUN_HISTOGRAMS.indexOf("loopLag");
const OWN_LAG = RUN_HISTOGRAMS.indexOf("ownLag");

/** Windows that one stall may leave behind; a longer one leaves a gap in the load. */
const STALLED_WINDOWS_MAX = 1_000;

/** The load of a finished window, and the resources it took. */
interface LoadSample {
  /** Virtual users at work. */
  readonly users: number;
  /** Users, or arrivals per second, required by the plan. */
  readonly target: number;
  readonly cpuMs: number;
  readonly lagMsMax: number;
}

export class StatsRecorder {
  /** Counted since the start of the measured time. */
  readonly counts = {
    completed: 0,
    ended: 0,
    failed: 0,
    interrupted: 0,
    iterationsInside: 0,
    arrivalsStarted: 0,
    unresolved: 0,
  } satisfies Record<(typeof RUN_COUNTS)[number], number>;
  readonly metrics: MetricRecorder;
  /** Microseconds. */
  readonly sendLag = new CellRecorder();
  readonly waited = new CellRecorder();
  readonly rowWait = new CellRecorder();
  readonly loopLag = new CellRecorder();
  readonly ownLag = new CellRecorder();
  readonly #stats: WorkflowStats;
  readonly #frames: FrameWriter;
  readonly #steps: StepRecorder[] = [];
  readonly #groups: GroupRecorder[] = [];
  readonly #checks: CheckRecorder[] = [];
  /** The current window. */
  #window = 0;
  /** Counts of earlier windows. */
  #windowed = { arrivals: 0, iterations: 0 };

  constructor(shape: StatsShape, names?: ConstructorParameters<typeof WorkflowStats>[1]) {
    this.#stats = new WorkflowStats(shape, names);
    this.#frames = new FrameWriter(this.#stats);
    this.metrics = new MetricRecorder(this.#stats.metrics);
  }

  /** The number of a step, assigned on first use. */
  stepNumber(name: string, protocol: string, tags?: Tags): number {
    return this.#stats.stepNames.numberOf(name, protocol, tags);
  }

  /** The number of "(other)", which counts steps whose names are not kept. */
  giveUpStep(name: string, protocol: string, tags: Tags): number {
    return this.#stats.stepNames.giveUp(name, protocol, tags);
  }

  stepName(number: number): string {
    return this.#stats.stepNames.nameOf(number);
  }

  checkNumber(name: string): number {
    return this.#stats.checkNames.numberOf(name);
  }

  groupNumber(name: string): number {
    return this.#stats.groupNames.numberOf(name);
  }

  step(number: number): StepRecorder {
    return this.#steps[number] ?? this.#newStep(number);
  }

  #newStep(number: number): StepRecorder {
    const { corrected, errorKinds } = this.#stats.shape;
    while (this.#steps.length <= number) this.#steps.push(new StepRecorder(errorKinds, corrected));
    return this.step(number);
  }

  group(number: number): GroupRecorder {
    while (this.#groups.length <= number) this.#groups.push(new GroupRecorder());
    return this.#groups[number] as GroupRecorder;
  }

  check(number: number, passed: boolean): void {
    this.#check(number).record(passed ? CHECK_PASSED : CHECK_FAILED);
  }

  /** Records a check that ran before the measured time. */
  checkedEarly(number: number): void {
    this.#check(number).record(CHECK_EARLY);
  }

  #check(number: number): CheckRecorder {
    while (this.#checks.length <= number) this.#checks.push(new CheckRecorder());
    return this.#checks[number] as CheckRecorder;
  }

  /** Samples of failures. */
  get samples(): FailureSamples {
    return this.#stats.samples;
  }

  /** The current window. */
  get window(): number {
    return this.#window;
  }

  /** Sets the first window, for a core that joins later than the others. */
  begin(window: number): void {
    this.#window = window;
    this.#stats.horizonMs = window * WINDOW_MS;
  }

  /**
   * Closes the current window with its recorded values. All counts are reported as of this time, so that no frame has
   * an iteration without its calls.
   */
  seal(next: number, load: LoadSample): void {
    const stats = this.#stats;
    for (const number of this.#steps.keys()) this.#foldStep(number);
    stats.run.counts.set(RUN_COUNTS.map((name) => this.counts[name]));
    for (const [at, recorder] of [this.sendLag, this.waited, this.rowWait].entries())
      recorder.fold(stats.run.histograms[at] as TrackedHistogram, stats.nextFrame);
    for (const [at, check] of this.#checks.entries()) check.fold(stats.check(at), stats.nextFrame);
    for (const [at, group] of this.#groups.entries()) group.fold(stats.group(at), stats.nextFrame);
    this.metrics.fold(stats.nextFrame);
    this.#sealLoad(next, load);
    this.#window = next;
    stats.horizonMs = next * WINDOW_MS;
  }

  /** Moves recorded values into the totals and the current window. */
  #foldStep(number: number): void {
    const stats = this.#stats;
    const content = this.step(number).fold(stats.step(number), stats.nextFrame);
    if (content === null) return;
    stats.addWindow(number, { startMs: this.#window * WINDOW_MS, widthMs: WINDOW_MS, content });
  }

  /** Typical latency of the step's successful calls so far, in microseconds. */
  typicalLatencyUs(step: number): number {
    this.#foldStep(step);
    return typicalUs(this.#stats.step(step).okLatency);
  }

  /** Typical duration of the group's successful rounds so far, in microseconds. */
  typicalDurationUs(group: number): number {
    this.group(group).fold(this.#stats.group(group), this.#stats.nextFrame);
    return typicalUs(this.#stats.group(group).okDuration);
  }

  /** A core that stalled for many windows had the same load in all of them. */
  #sealLoad(next: number, { cpuMs, lagMsMax, target, users }: LoadSample): void {
    const { arrivalsStarted, completed: iterations } = this.counts;
    const windows = Math.min(STALLED_WINDOWS_MAX, next - this.#window);
    for (let window = next - windows; window < next; window++) {
      const last = window === next - 1;
      const content = {
        userMs: users * WINDOW_MS,
        targetMs: target * WINDOW_MS,
        arrivals: last ? arrivalsStarted - this.#windowed.arrivals : 0,
        iterations: last ? iterations - this.#windowed.iterations : 0,
        cpuMs: cpuMs / windows,
        lagMsMax: last ? lagMsMax : 0,
      };
      this.#stats.load.add({ startMs: window * WINDOW_MS, widthMs: WINDOW_MS, content });
    }
    this.#windowed = { arrivals: arrivalsStarted, iterations };
  }

  /** Records the frame that the receiver retains. */
  acknowledged(frame: number): void {
    this.#frames.acknowledged(frame);
  }

  /** Whether to send another frame. */
  isFrameDue(): boolean {
    return this.#frames.isDue();
  }

  /** Contains everything up to the last finished window; `full` repeats all of it. */
  frame(moment: Moment, full: boolean): Uint8Array {
    const { nextFrame, run } = this.#stats;
    this.#stats.moment = moment;
    // Health of the core, in a warm-up too.
    this.loopLag.fold(run.histograms[LOOP_LAG] as TrackedHistogram, nextFrame);
    this.ownLag.fold(run.histograms[OWN_LAG] as TrackedHistogram, nextFrame);
    return this.#frames.write(full);
  }
}

class CheckRecorder {
  readonly #counts = new Float64Array(CHECK_SHAPE.counts);
  #changed = false;

  record(at: number): void {
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#changed = true;
  }

  fold(into: Tally, frame: number): void {
    if (!this.#changed) return;
    this.#changed = false;
    into.counts.set(this.#counts);
    into.changedIn = frame;
  }
}
