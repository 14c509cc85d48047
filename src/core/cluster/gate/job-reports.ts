/**
 * Reports to the reporters of this gate about the jobs it leads: while they run, and once when they have finished. The
 * next leader of a job continues without repeating earlier reports. (C30-18)
 *
 * The end is reported only by the gate that led the job to its end: once, or never if that gate is lost in between.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import type { GateContext } from "./context.ts";
import type { JobLeader } from "./job-leader.ts";
import type { ReportedRun } from "./job-report.ts";
import { Results } from "./results.ts";
import { decodeSpec } from "./spec.ts";
import { hasJobEnded } from "./status.ts";

/** Attempts to fetch an unreachable result, one per poll. */
const FIND_TRIES_MAX = 60;

interface Led {
  readonly run: ReportedRun;
  readonly isTakenOver: boolean;
  tries: number;
  isEnding: boolean;
  isOver: boolean;
}

export class JobReports {
  readonly #context: GateContext;
  readonly #results: Results;
  readonly #led = new Map<string, Led>();
  /** Reports were requested. */
  #isWanted = false;

  constructor(context: GateContext) {
    this.#context = context;
    this.#results = new Results(context);
  }

  /** This gate leads the job from now on, in this state. */
  leads({ jobId, run, spec }: JobState): void {
    if (this.#led.has(jobId)) return;
    const submission = decodeSpec(spec)?.submission;
    if (submission === undefined) return;
    const { name, tags, title } = submission;
    this.#led.set(jobId, {
      run: { name, tags, ...(title === null ? {} : { title }) },
      isTakenOver: run.started !== null,
      ...{ tries: 0, isEnding: false, isOver: false },
    });
  }

  leaves(job: string): void {
    const led = this.#led.get(job);
    this.#led.delete(job);
    if (this.#isWanted && led?.isOver === false)
      this.#context.emit({ kind: "report", report: { kind: "left", job } });
  }

  /** Periodically: reports the state of each job. */
  look(leaders: ReadonlyMap<string, JobLeader>): void {
    this.#isWanted = true;
    for (const [job, leader] of leaders) {
      const { state } = leader;
      // The description is in the log shortly after the group was created.
      if (state !== null && state.appliedSeq >= 0) this.leads(state);
      const led = this.#led.get(job);
      if (state === null || led === undefined || led.isOver) continue;
      if (hasJobEnded(state)) this.#end(job, led, state);
      else this.#report(job, led, leader);
    }
    for (const job of this.#led.keys()) if (!leaders.has(job)) this.#led.delete(job);
  }

  #report(job: string, { isTakenOver, run }: Led, leader: JobLeader): void {
    leader.markWatched(true);
    const live = leader.live();
    const hasLatencies = live?.summary.workflows.some(({ steps }) =>
      steps.some(({ windows }) => windows !== undefined),
    );
    if (live === null || hasLatencies !== true) return;
    this.#context.emit({
      kind: "report",
      report: { kind: "running", job, run, isTakenOver, live },
    });
  }

  #end(job: string, led: Led, state: JobState): void {
    if (led.isEnding) return;
    led.isEnding = true;
    led.tries++;
    this.#results.find(state, (found) => {
      led.isEnding = false;
      if (found.kind === "unreachable" && led.tries < FIND_TRIES_MAX) return;
      led.isOver = true;
      const { isTakenOver, run } = led;
      const summary = found.kind === "found" ? found.summary : null;
      this.#context.emit({
        kind: "report",
        report: { kind: "ended", job, run, isTakenOver, summary },
      });
    });
  }
}
