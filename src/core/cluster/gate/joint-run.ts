/**
 * A job over several datacenters at its leading gate: merges their metrics as they arrive, evaluates thresholds on
 * them, and determines the controls of each datacenter.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import type { ToldRun } from "../../load/execution/told-run.ts";
import type { LiveDetail, LiveRun, RunPhase } from "../../load/results/live.ts";
import type { HeldFigures } from "../gate-messages.ts";
import type { JobStatus } from "../messages.ts";
import type { Branch } from "./branch.ts";
import type { GateContext } from "./context.ts";
import type { JobPart } from "./job-parts.ts";
import { JointWords } from "./joint-words.ts";
import type { LastFigures } from "./lost-parts.ts";
import { MergedRun } from "./merged-run.ts";
import type { JobSpec } from "./spec.ts";
import { createdAtOf } from "./status.ts";

/** Silence of a datacenter from which its missing calls are not evaluated; shorter than windows wait for it. */
const SILENT_MS = 3_000;

const PHASES: Readonly<Partial<Record<JobStatus, RunPhase>>> = {
  QUEUED: "starting",
  STARTING: "starting",
  PAUSED: "paused",
  CANCELLING: "stopping",
};

export class JointRun {
  readonly #context: GateContext;
  readonly #spec: JobSpec;
  readonly #state: JobState;
  readonly #parts: readonly JobPart[];
  /** View of the leader that each datacenter's metrics come from. */
  readonly #views = new Map<string, number>();
  /** Last metrics of datacenters that have not reported since a restart of the merge. */
  readonly #last = new Map<string, LastFigures>();
  #merged: MergedRun;
  #judgeAt: number;

  /** `state`: of a started job. */
  constructor(context: GateContext, state: JobState, spec: JobSpec, parts: readonly JobPart[]) {
    this.#context = context;
    this.#state = state;
    this.#spec = spec;
    this.#parts = parts;
    this.#merged = this.#newMerged();
    this.#judgeAt = context.now + this.#merged.judgeEveryMs;
  }

  #newMerged(): MergedRun {
    const { errorKinds, version } = this.#context.options;
    const { jobId: job, run } = this.#state;
    return new MergedRun({
      ...{ job, errorKinds, version, submission: this.#spec.submission, parts: this.#parts },
      startAtMs: run.started?.startAtMs ?? createdAtOf(this.#state),
    });
  }

  heldOf(datacenter: string): HeldFigures {
    const view = this.#views.get(datacenter) ?? 0;
    return { view, frames: this.#merged.heldOf(datacenter) };
  }

  /**
   * A new leader of a datacenter may know less than its predecessor, and merged metrics cannot be removed: all
   * datacenters report everything again.
   */
  onReport(datacenter: string, report: ToldRun, view: number): void {
    const known = this.#views.get(datacenter);
    if (known !== undefined && known !== view) {
      for (const one of this.#parts) this.#keepLast(one.datacenter);
      this.#merged = this.#newMerged();
      this.#views.clear();
    }
    this.#views.set(datacenter, view);
    this.#merged.setTime(this.#context.wall);
    this.#merged.take(datacenter, report);
  }

  /** Last reported users and times of a datacenter; null if this gate has none. */
  lastOf(datacenter: string): LastFigures | null {
    return this.#merged.lastOf(datacenter) ?? this.#last.get(datacenter) ?? null;
  }

  #keepLast(datacenter: string): void {
    const last = this.lastOf(datacenter);
    if (last !== null) this.#last.set(datacenter, last);
  }

  get nextDeadline(): number {
    return this.#judgeAt;
  }

  /** Reason to abort the job by a threshold; null if none failed or the next evaluation is not due. */
  abortReason(branches: readonly Branch[]): string | null {
    const { now, wall } = this.#context;
    if (now < this.#judgeAt) return null;
    this.#judgeAt = now + this.#merged.judgeEveryMs;
    for (const { datacenter, hasEnded } of branches) if (hasEnded) this.#merged.close(datacenter);
    this.#merged.setTime(wall);
    const floors = branches.every((one) => one.hasEnded || one.silentMs(now) < SILENT_MS);
    const [expression] = this.#merged.decide(floors);
    return expression === undefined ? null : `${expression} did not hold`;
  }

  live(status: JobStatus, detail: LiveDetail, scale: number): LiveRun {
    this.#merged.setTime(this.#context.wall);
    const { datacenters } = this.#merged;
    return { ...this.#merged.live(PHASES[status] ?? "running", detail), scale, datacenters };
  }

  /** Uses the current `setUps` of the job's log. */
  words(branches: readonly Branch[], { run }: JobState): JointWords {
    const { now, options } = this.#context;
    const places = branches.map((branch) => {
      const { datacenter, hasEnded, problem, report } = branch;
      const isSilent = branch.silentMs(now) > options.config.lostMs;
      return { datacenter, report, isOver: hasEnded || problem !== null || isSilent };
    });
    return new JointWords(this.#parts, places, run.setUps);
  }
}
