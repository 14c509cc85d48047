/**
 * Whether the work of one worker advances, as it says with each heartbeat: how many executions it has under way, and
 * a count that rises whenever one of their cores tells that another moment of its plan has passed. A load that runs
 * for hours advances all the time; a core that says nothing does not. (AD-19.12, AD-19.13, C10-4)
 *
 * What is usual is its own past. A worker without an advance in a whole interval is stuck, and waited for until its
 * deadline, which it can move; any advance ends that at once.
 */

import { type ExtensionLimits, Extensions } from "./extensions.ts";
import { type ProgressBand, progressOf } from "./health.ts";

/** What a worker says of its work. */
export interface WorkReport {
  /** Executions that make load now. */
  readonly running: number;
  /** Rises as they advance. */
  readonly advance: number;
}

const PROGRESS_INTERVAL_MS = 10_000;
/** How much of the usual rate one interval makes up. */
const LEARNED = 0.1;

export class WorkerProgress {
  readonly extensions: Extensions;
  #band: ProgressBand = "idle";
  #last: WorkReport = { running: 0, advance: 0 };
  #movedAt: number;
  /** Since when it has had work without a break, and what it had done by then. */
  #from: { at: number; advance: number };
  /** An execution advances so often in a second; 0: not known yet. */
  #expected = 0;

  constructor(now: number, limits?: ExtensionLimits) {
    this.extensions = new Extensions(limits);
    this.#movedAt = now;
    this.#from = { at: now, advance: 0 };
  }

  get band(): ProgressBand {
    return this.#band;
  }

  /** When it was last seen to advance, or to have nothing to do. */
  get movedAt(): number {
    return this.#movedAt;
  }

  get isStuck(): boolean {
    return this.#band === "stuck";
  }

  /** It was stuck for so long that it is given up. */
  isOverdue(now: number): boolean {
    const at = this.extensions.evictAt();
    return this.isStuck && at !== null && now >= at;
  }

  /** True when its band is another. */
  heard(report: WorkReport, now: number): boolean {
    const before = this.#band;
    const last = this.#last;
    this.#last = report;
    if (report.running === 0) {
      this.#movedAt = now;
      this.#band = "idle";
      this.extensions.recovers();
    } else if (report.advance > last.advance || report.running !== last.running)
      this.#onAdvance(now);
    // What another number of executions does is compared from its beginning.
    if (report.running !== last.running) this.#from = { at: now, advance: report.advance };
    else if (report.running > 0) this.#judge(report, now);
    return this.#band !== before;
  }

  #onAdvance(now: number): void {
    this.#movedAt = now;
    this.extensions.advances();
    if (this.#band === "stuck") this.#band = "degraded";
    if (this.#band === "idle") this.#band = "normal";
  }

  #judge({ advance, running }: WorkReport, now: number): void {
    if (this.#expected > 0 && now - this.#movedAt >= PROGRESS_INTERVAL_MS) {
      this.#band = "stuck";
      // Whoever watches may have been stopped itself: it waits as for one that it has watched for an interval.
      this.extensions.standsStill(Math.max(this.#movedAt, now - PROGRESS_INTERVAL_MS));
      this.#from = { at: now, advance };
      return;
    }
    const { at, advance: before } = this.#from;
    if (now - at < PROGRESS_INTERVAL_MS) return;
    this.#from = { at: now, advance };
    const actual = (advance - before) / running / ((now - at) / 1_000);
    this.#band = progressOf(true, actual, this.#expected);
    if (actual > 0)
      this.#expected =
        this.#expected === 0 ? actual : this.#expected + LEARNED * (actual - this.#expected);
    if (this.#band === "normal") this.extensions.recovers();
  }
}
