/**
 * Progress of one worker, from its heartbeats: the number of running executions, and a count that increases whenever
 * one of their cores reports that its plan has advanced. A load that runs for hours advances all the time; a silent
 * core does not. (AD-19.12, AD-19.13, C10-4)
 *
 * The usual rate is its own past. A worker without progress in a whole interval is stuck, and is given up after its
 * deadline, which it can extend; any progress ends the deadline at once.
 */

import { type ExtensionLimits, Extensions } from "./extensions.ts";
import { type ProgressBand, progressOf } from "./health.ts";

/** Work reported by a worker. */
export interface WorkReport {
  /** Executions generating load now. */
  readonly running: number;
  /** Increases as they advance. */
  readonly advance: number;
}

const PROGRESS_INTERVAL_MS = 10_000;
/** Weight of one interval in the usual rate. */
const LEARNED = 0.1;

export class WorkerProgress {
  readonly extensions: Extensions;
  #band: ProgressBand = "idle";
  #last: WorkReport = { running: 0, advance: 0 };
  #movedAt: number;
  /** Start of the present work without a break, and the progress by then. */
  #from: { at: number; advance: number };
  /** Usual advances of one execution per second; 0: not known yet. */
  #expected = 0;

  constructor(now: number, limits?: ExtensionLimits) {
    this.extensions = new Extensions(limits);
    this.#movedAt = now;
    this.#from = { at: now, advance: 0 };
  }

  get band(): ProgressBand {
    return this.#band;
  }

  /** When it last advanced, or was idle. */
  get movedAt(): number {
    return this.#movedAt;
  }

  get isStuck(): boolean {
    return this.#band === "stuck";
  }

  /** True when it was stuck beyond its deadline. */
  isOverdue(now: number): boolean {
    const at = this.extensions.evictAt();
    return this.isStuck && at !== null && now >= at;
  }

  /** Records a report; true when the band changed. */
  record(report: WorkReport, now: number): boolean {
    const before = this.#band;
    const last = this.#last;
    this.#last = report;
    if (report.running === 0) {
      this.#movedAt = now;
      this.#band = "idle";
      this.extensions.recovers();
    } else if (report.advance > last.advance || report.running !== last.running)
      this.#onAdvance(now);
    // Another number of executions is measured from its own start.
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
      // The observer may have been paused itself: count no more than one interval of standstill.
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
