/**
 * What reporters of this gate are told of the jobs that it leads: as they run, and once when they have ended. A job
 * that has another leader is told on by that one: what was told before, it does not tell again. (C30-18)
 *
 * Its end is told by the gate that led it to its end, and by no other: once, or never when that gate is lost between
 * the two.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import type { GateContext } from "./context.ts";
import type { JobLeader } from "./job-leader.ts";
import type { ReportedRun } from "./job-report.ts";
import { Results } from "./results.ts";
import { decodeSpec } from "./spec.ts";
import { hasJobEnded } from "./status.ts";

/** A result that cannot be reached is asked for so often, once per look. */
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
  /** Somebody wants to be told. */
  #isWanted = false;

  constructor(context: GateContext) {
    this.#context = context;
    this.#results = new Results(context);
  }

  /** This gate leads the job from now on; as it stands then. */
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

  /** Now and then: what there is to tell of each. */
  look(leaders: ReadonlyMap<string, JobLeader>): void {
    this.#isWanted = true;
    for (const [job, leader] of leaders) {
      const { state } = leader;
      // Its description stands in its log a moment after its group is founded.
      if (state !== null && state.appliedSeq >= 0) this.leads(state);
      const led = this.#led.get(job);
      if (state === null || led === undefined || led.isOver) continue;
      if (hasJobEnded(state)) this.#end(job, led, state);
      else this.#tell(job, led, leader);
    }
    for (const job of this.#led.keys()) if (!leaders.has(job)) this.#led.delete(job);
  }

  #tell(job: string, { isTakenOver, run }: Led, leader: JobLeader): void {
    leader.lookedAt(true);
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
