/**
 * Clock of a job on the manager that leads it: whether the job advances, and whether it has taken too long.
 * Observations go into the log of the job, so that the next leader continues the same clock. (AD-34)
 *
 * A job without a gate is timed out here. A job of a gate is reported as overdue with every answer to the gate until
 * the gate decides or the job advances; the wait for a silent gate is bounded.
 */

import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import type { ObservedClock, Overdue } from "../gate-messages.ts";
import type { JobStatus } from "../messages.ts";
import { overdueAt, overdueFrom, type TrackingChange } from "../overload/job-timeout.ts";
import type { ManagerContext } from "./context.ts";
import type { HeldStart } from "./held-start.ts";
import type { Life } from "./order-rows.ts";
import type { Proposed } from "./proposals.ts";
import type { RunEntry } from "./run-entries.ts";
import type { RunLog } from "./run-log.ts";
import type { RunState } from "./run-state.ts";

/** Interval between checks of a job's metrics for progress. (AD-34.21) */
const SAMPLE_MS = 10_000;
/** Minimum interval between progress entries in the log: the most that a new leader may not know. */
const WRITE_MS = 30_000;
const NEVER = Number.POSITIVE_INFINITY;

/** The job as its leader drives it. */
interface LedJob {
  readonly job: string;
  readonly view: number;
  readonly held: HeldStart;
  /** Null before its executions begin. */
  readonly machine: RunMachine | null;
  /** True while this manager cannot drive the job yet: the log or the workers are incomplete. */
  readonly isAdopting: boolean;
}

export class RunTimeouts {
  readonly #led: LedJob;
  readonly #state: RunState;
  readonly #context: ManagerContext;
  readonly #log: RunLog;
  /** In the time of the run, as the log counts it. */
  #movedAt: number;
  #advance: number;
  #sampleAt: number;
  #isStopped = false;
  #wasAdopting = true;
  /** A proposal of this clock is pending. */
  #isProposing = false;

  constructor(led: LedJob, state: RunState, context: ManagerContext, log: RunLog) {
    this.#led = led;
    this.#state = state;
    this.#context = context;
    this.#log = log;
    this.#advance = state.timeouts.advance;
    this.#sampleAt = context.now + SAMPLE_MS;
    const knownAt = Math.max(state.timeouts.progressAt, state.history.at(-1)?.at ?? 0);
    // Workers report their progress to a new leader; until then it judges nothing.
    const isNew = state.timeouts.progressAt === 0 && state.history.length === 0;
    this.#movedAt = isNew ? log.at : Math.max(knownAt, this.#judgedFrom);
    if (state.adoptions.length > 0) context.timeouts.count("leaderTransfers");
  }

  /** Earliest time of a verdict: a full threshold after the last progress, also under a new leader. */
  get #judgedFrom(): number {
    return this.#log.at - this.#stuckMs + WRITE_MS;
  }

  /** At least as long as a workflow may be silent by its own plan. */
  get #stuckMs(): number {
    const quietMs = Math.max(0, ...(this.#state.submission?.manifests ?? []).map(quietMsOf));
    return Math.max(this.#context.options.config.timeouts.stuckMs, quietMs + WRITE_MS);
  }

  /** True while the job is paused or waits for a gate, which is not a lack of progress. */
  get #isQuiet(): boolean {
    const { held, machine } = this.#led;
    return held.isWaiting || machine?.phase === "paused" || (machine?.waits.length ?? 0) > 0;
  }

  get #strategy(): "local_authority" | "gate_coordinated" {
    return this.#state.submission?.held === true ? "gate_coordinated" : "local_authority";
  }

  /** Stops the clock when the job is over here; idempotent. (AD-34.60) */
  stop(status: JobStatus): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#context.timeouts.count("stopped", status.toLowerCase());
  }

  nextDeadline(): number {
    if (!this.isTracked) return NEVER;
    if (this.#led.isAdopting) return this.#sampleAt;
    const overdueAtMs =
      this.#log.beganAt + overdueFrom(this.#tracking, this.#state.limit, this.#limits);
    const { overdue } = this.#state.timeouts;
    const { gateSilentMs } = this.#context.options.config.timeouts;
    const from = overdue === null ? overdueAtMs : this.#log.beganAt + overdue.at + gateSilentMs + 1;
    return Math.min(this.#sampleAt, this.#isProposing ? NEVER : from);
  }

  /** Whether the clock runs. */
  get isTracked(): boolean {
    const { cancelled, end, submission, timedOut } = this.#state;
    return (
      !this.#isStopped &&
      submission !== null &&
      end === null &&
      cancelled === null &&
      timedOut === null
    );
  }

  get #limits(): { readonly stuckMs: number } {
    return { stuckMs: this.#stuckMs };
  }

  /** State in the log, updated with what this leader has seen since. */
  get #tracking(): RunState["timeouts"] {
    const { timeouts } = this.#state;
    const granted = this.#context.rules.extensionsCounted
      ? {}
      : { extendedMs: 0, extendedAt: null };
    const progressAt = Math.max(timeouts.progressAt, this.#movedAt);
    return { ...timeouts, ...granted, progressAt };
  }

  /** State of the clock, for the gate. */
  view(): ObservedClock | null {
    const { extended, extendedMs, extensionMsMax, overdue, progressAt } = this.#tracking;
    if (!this.isTracked) return null;
    const idleMs = Math.max(0, Math.floor(this.#log.at - progressAt));
    const told = overdue === null ? null : { cause: overdue.cause, reason: overdue.reason };
    return { idleMs, extendedMs, extensionMsMax, extended: extended.length, overdue: told };
  }

  /** Counts every new log entry as progress, except those of this clock. (AD-34.6) */
  onEntry(kind: RunEntry["kind"]): void {
    if (kind === "timeouts") this.#isProposing = false;
    else if (kind !== "adopt") this.#movedAt = Math.max(this.#movedAt, this.#state.at);
  }

  onTick(): void {
    if (!this.isTracked) return;
    if (this.#wasAdopting) {
      // Without a quorum nothing can advance, and the log may be older than it seemed: that is not the job's fault.
      this.#wasAdopting = this.#led.isAdopting;
      this.#movedAt = Math.max(this.#movedAt, this.#judgedFrom);
      this.#sampleAt = this.#context.now + SAMPLE_MS;
      return;
    }
    if (this.#context.now >= this.#sampleAt) this.#sample();
    if (!this.#isProposing && this.#context.now >= this.nextDeadline()) this.#check();
  }

  #sample(): void {
    this.#sampleAt = this.#context.now + SAMPLE_MS;
    this.#clean();
    const advance = this.#led.machine?.advance ?? 0;
    const hasMoved = advance > this.#advance || this.#isQuiet;
    if (hasMoved) this.#movedAt = this.#log.at;
    // A new leader may know less than its predecessor did: it counts from there.
    this.#advance = advance;
    const { overdue, progressAt } = this.#state.timeouts;
    // A standstill is recorded at once, so that the next leader does not take it for progress.
    const isDue = !hasMoved || this.#movedAt - progressAt >= WRITE_MS || overdue !== null;
    if (isDue && this.#movedAt > progressAt)
      this.#track({ kind: "progress", progressAt: this.#movedAt, advance });
  }

  #check(): void {
    const { datacenter } = this.#context.options;
    const counters = this.#context.timeouts;
    counters.count("checks", this.#strategy);
    const { overdue } = this.#state.timeouts;
    if (overdue !== null) {
      const { gateSilentMs } = this.#context.options.config.timeouts;
      if (this.#log.at - overdue.at <= gateSilentMs) return;
      counters.count("reportsFailed", datacenter);
      this.#say("timeout.fallback", overdue);
      this.#timeOut(`gate_unresponsive_fallback: ${overdue.reason}, and no gate has decided`);
      return;
    }
    const found = overdueAt(this.#tracking, this.#log.at, this.#state.limit, this.#limits);
    if (found === null) return;
    counters.count("detected", found.cause);
    this.#say("timeout.detected", found);
    if (this.#strategy === "local_authority") this.#timeOut(found.reason);
    else {
      counters.count("reportsSent", datacenter);
      this.#track({ kind: "overdue", ...found });
    }
  }

  #say(event: string, { cause, reason }: Overdue): void {
    const strategy = this.#strategy;
    this.#context.log("warn", event, { job: this.#led.job, strategy, cause, reason });
  }

  #timeOut(reason: string): void {
    const { extendedMs } = this.#state.timeouts;
    const { view } = this.#led;
    this.#isProposing = true;
    const done = (_: Proposed): void => this.#onProposed();
    const control = { kind: "timeOut", reason, view, extendedMs } as const;
    this.#log.proposeControl(control, { by: "manager" }, done);
  }

  /** Checks the log again, whatever the outcome of the proposal. */
  #onProposed(): void {
    this.#isProposing = false;
    this.#sampleAt = Math.min(this.#sampleAt, this.#context.now + SAMPLE_MS);
  }

  /** Extends jobs that have cores of a worker that was granted more time. (AD-34.40, AD-26.13) */
  onExtended({ incarnation, worker }: Life, ms: number): void {
    const { cores, lostCores } = this.#state;
    const isHere = cores.some(
      (one) => one.worker === worker && one.incarnation === incarnation && !lostCores.has(one.core),
    );
    if (this.isTracked && isHere) this.#track({ kind: "extended", worker, ms });
  }

  /** Drops extensions of workers that advance again, are idle or are gone; granted time stays granted. (AD-34.62) */
  #clean(): void {
    const { timeouts, workers } = this.#context;
    for (const worker of this.#state.timeouts.extended) {
      if (workers.isExtended(worker)) continue;
      if (workers.statusOf(worker) !== "alive") timeouts.count("cleaned", "worker_failure");
      this.#track({ kind: "recovered", worker });
    }
  }

  #track(change: TrackingChange): void {
    if (change.kind === "overdue") this.#isProposing = true;
    this.#log.propose({ kind: "timeouts", change });
  }
}

/** How long a workflow may be without any metrics by its own plan. */
function quietMsOf(manifest: WorkflowManifest): number {
  const { gracefulStopMs, setupMsMax, startAfterMs, teardownMsMax, warmupMs } = manifest;
  return Math.max(startAfterMs + warmupMs, setupMsMax, teardownMsMax, gracefulStopMs);
}
