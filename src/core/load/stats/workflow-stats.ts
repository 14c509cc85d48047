/**
 * Measurements of one workflow: by one executor core, or by several and merged. Totals only grow; windows below the
 * horizon are complete. Every change remembers the frame that reports it first, so that a frame can be written against
 * any earlier one (`frames.ts`).
 */

import { assert } from "../../base/assert.ts";
import { GroupTotals } from "./group-stats.ts";
import type { Histogram } from "./histogram.ts";
import { MetricTotals } from "./metrics.ts";
import { type Name, NameTable } from "./names.ts";
import { FailureSamples } from "./samples.ts";
import { StepTotals } from "./step-stats.ts";
import { Tally, type TallyShape } from "./tally.ts";
import type { TrackedHistogram } from "./tracked-histogram.ts";
import { type Window, WindowStore } from "./window-store.ts";
import { LOAD_RULES, type LoadWindow, STEP_RULES, type StepWindow } from "./windows.ts";

/** Maximum size of all windows of a workflow: with more, windows become wider. */
export const WINDOW_BYTES_MAX = 40_000_000;

/** Current values that are not counters. */
export interface Moment {
  /** Milliseconds of measured time so far, warm-up and pauses excluded. */
  readonly measuredMs: number;
  readonly warmingUp: boolean;
  /** Users or arrivals per second required at this time. */
  readonly target: number;
  /** Arrivals that are due and have not begun; at the end, those that never will. */
  readonly arrivalsWaiting: number;
}

export const RUN_COUNTS = [
  /** Iterations by outcome. */
  "completed",
  "ended",
  "failed",
  "interrupted",
  /** Completed inside the measured time, whenever they were due. */
  "iterationsInside",
  "arrivalsStarted",
  /** Interrupted ones that were older than typical ones and waited for no call. */
  "unresolved",
] as const;
export const RUN_HISTOGRAMS = [
  /** How late arrivals began. */
  "sendLag",
  /** Waiting times of arrivals that never began. */
  "waited",
  /** How long users waited for rows, or for their share of the iterations. */
  "rowWait",
  /** Event-loop lag, weighted by time… */
  "loopLag",
  /** …and the part of it while the core itself was computing. */
  "ownLag",
] as const;

export const RUN_SHAPE: TallyShape = {
  counts: RUN_COUNTS.length,
  histograms: RUN_HISTOGRAMS.length,
  keysMax: 0,
  keyMax: 0,
};
/** Counts of a check; early: in the warm-up, whatever its outcome. */
export const CHECK_PASSED = 0;
export const CHECK_FAILED = 1;
export const CHECK_EARLY = 2;
export const CHECK_SHAPE: TallyShape = { counts: 3, histograms: 0, keysMax: 0, keyMax: 0 };

/** Properties shared by all parts of a workflow. */
export interface StatsShape {
  readonly errorKinds: number;
  /** Latency is measured from the intended start, and service time is kept beside it. */
  readonly corrected: boolean;
}

interface KnownNames {
  readonly steps: NameTable;
  readonly checks: NameTable;
}

export class WorkflowStats {
  readonly shape: StatsShape;
  readonly stepNames: NameTable;
  readonly checkNames: NameTable;
  readonly groupNames = new NameTable();
  readonly run = new Tally(RUN_SHAPE);
  readonly metrics = new MetricTotals();
  readonly samples = new FailureSamples();
  readonly load = new WindowStore<LoadWindow>(LOAD_RULES);
  moment: Moment = { measuredMs: 0, warmingUp: false, target: 0, arrivalsWaiting: 0 };
  /** Windows that end here or earlier are complete. */
  horizonMs = 0;
  /** The number of the next frame. */
  nextFrame = 1;
  readonly #steps: StepTotals[] = [];
  readonly #checks: Tally[] = [];
  readonly #groups: GroupTotals[] = [];
  readonly #windows: WindowStore<StepWindow>[] = [];
  #windowBytes = 0;

  /** Names known before anything is measured; others may follow. */
  constructor(
    shape: StatsShape,
    { checks, steps }: KnownNames = { steps: new NameTable(), checks: new NameTable() },
  ) {
    this.shape = shape;
    this.stepNames = steps;
    this.checkNames = checks;
  }

  /** By the numbers of `stepNames`, like all below. */
  step(number: number): StepTotals {
    const { corrected, errorKinds } = this.shape;
    return at(this.#steps, number, () => new StepTotals(errorKinds, corrected));
  }

  /** Counts of passed, failed and early. */
  check(number: number): Tally {
    return at(this.#checks, number, () => new Tally(CHECK_SHAPE));
  }

  group(number: number): GroupTotals {
    return at(this.#groups, number, () => new GroupTotals());
  }

  windowsOf(step: number): WindowStore<StepWindow> {
    return at(this.#windows, step, () => new WindowStore<StepWindow>(STEP_RULES));
  }

  stepNumber({ name, protocol, tags }: Name): number {
    return this.stepNames.numberOf(name, protocol, tags);
  }

  runCount(name: (typeof RUN_COUNTS)[number]): number {
    return this.run.counts[RUN_COUNTS.indexOf(name)] ?? 0;
  }

  runHistogram(name: (typeof RUN_HISTOGRAMS)[number]): Histogram {
    return (this.run.histograms[RUN_HISTOGRAMS.indexOf(name)] as TrackedHistogram).histogram;
  }

  addWindow(step: number, window: Window<StepWindow>): void {
    const store = this.windowsOf(step);
    const before = store.bytes;
    store.add(window);
    this.#windowBytes += store.bytes - before;
    if (this.#windowBytes > WINDOW_BYTES_MAX) this.#shrink();
  }

  /** Counts a given-up row under "(other)", with all its measurements so far. */
  foldStep(from: number): void {
    const into = this.stepNames.fold(from);
    if (into === from) return;
    this.step(into).tally.merge(this.step(from).tally, this.nextFrame);
    const { corrected, errorKinds } = this.shape;
    this.#steps[from] = new StepTotals(errorKinds, corrected);
    const windows = this.windowsOf(from);
    this.#windows[from] = new WindowStore<StepWindow>(STEP_RULES);
    this.#windowBytes -= windows.bytes;
    for (const window of windows.list()) this.addWindow(into, window);
    this.samples.move(from, into);
  }

  foldCheck(from: number): void {
    const into = this.checkNames.fold(from);
    if (into === from) return;
    this.check(into).merge(this.check(from), this.nextFrame);
    this.#checks[from] = new Tally(CHECK_SHAPE);
  }

  foldGroup(from: number): void {
    const into = this.groupNames.fold(from);
    if (into === from) return;
    this.group(into).tally.merge(this.group(from).tally, this.nextFrame);
    this.#groups[from] = new GroupTotals();
  }

  #shrink(): void {
    const largestFirst = this.#windows.toSorted((a, b) => b.bytes - a.bytes);
    for (const store of largestFirst) {
      while (store.bytes > WINDOW_BYTES_MAX / 2 / largestFirst.length && store.shrink()) {}
    }
    this.#windowBytes = this.#windows.reduce((sum, store) => sum + store.bytes, 0);
  }
}

function at<Item>(list: Item[], number: number, make: () => Item): Item {
  while (list.length <= number) list.push(make());
  const found = list[number];
  assert(found !== undefined, "what has a number is held");
  return found;
}
