/**
 * Leads a job at a gate: chooses datacenters, has the job prepared in each, starts it everywhere at the same
 * time, follows it and completes it. Decisions are committed to the job's log before they take effect, so that
 * another gate can take over; everything else is queried again.
 *
 *     created ─▶ queued ─▶ dispatched ─▶ accepted by all ─▶ started ─▶ results of all ─▶ completed
 *                   ▲           │            before its start a job may move
 *                   └───────────┘
 *
 * Datacenters are asked in the order of their names, each after the one before has provided its cores: two jobs
 * never deadlock. (T14)
 */

import { formatDuration } from "../../base/duration.ts";
import { sha256 } from "../../base/sha256.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import type { LiveRun } from "../../load/results/live.ts";
import type { LiveWanted } from "../gate-messages.ts";
import { MessageLines } from "../manager/message-lines.ts";
import { tenantOf } from "../manager/served-tenants.ts";
import type { JobStatus, Submission } from "../messages.ts";
import { Branch, UNWANTED, type Wanted } from "./branch.ts";
import { type Avoided, chooseDatacenters, whyAvoided } from "./choice.ts";
import { ofJob } from "./cluster-summary.ts";
import type { Appended, EventBody, GateContext } from "./context.ts";
import { JobClock } from "./job-clock.ts";
import { type JobPart, keyOfPart, partsOf, splitText } from "./job-parts.ts";
import { JointRun } from "./joint-run.ts";
import { encodeBegun } from "./joint-words.ts";
import { encodeEnd } from "./lost-parts.ts";
import { leftBy } from "./results.ts";
import { countOf, decodeSpec, type JobSpec, planMsOf } from "./spec.ts";
import {
  createdAtOf,
  finalStatusOf,
  hasJobEnded,
  nextAttempt,
  REASON_CHARACTERS_MAX,
  reasonOf,
  reasonOfEnd,
  statusOf,
  THRESHOLDS,
} from "./status.ts";

/** Interval of re-evaluating a waiting job. */
const EVALUATE_MS = 500;
/** Cool-down of a datacenter that failed a job. */
const AVOIDED_MS = 30_000;
/** Live metrics are requested this long after a client last watched them. */
const LOOKED_AT_MS = 3_000;
const NEVER = Number.POSITIVE_INFINITY;

export class JobLeader {
  readonly job: string;
  readonly view: number;
  readonly lines = new MessageLines();
  readonly #context: GateContext;
  readonly #onChanged: (leader: JobLeader) => void;
  readonly #branches = new Map<string, Branch>();
  /** Branches where the job does not run any more; they are being cancelled. */
  #left: Branch[] = [];
  readonly #avoided = new Map<string, Avoided>();
  /** Parts of the current choice that this gate has dispatched itself: it knows which of them were never submitted. */
  readonly #sent = new Set<string>();
  /** Datacenter that last did not accept the job, until another is chosen. */
  #leftAt: string | null = null;
  #spec: JobSpec | null = null;
  /** Parts of the current choice, cached by the list of dispatches. */
  #chosen: (Pick<JobState["run"], "dispatched"> & { readonly parts: readonly JobPart[] }) | null =
    null;
  /** Set for a started job in several datacenters. */
  #joint: JointRun | null = null;
  readonly #clock: JobClock;
  #reason: string | null = null;
  #isAppending = false;
  #lookAt: number;
  #dueAt: number;
  #liveUntil = 0;
  #latenciesUntil = 0;

  /** `onChanged`: the next deadline may have changed, and the job may be done. */
  constructor(
    { job, view }: { readonly job: string; readonly view: number },
    context: GateContext,
    onChanged: (leader: JobLeader) => void,
  ) {
    this.job = job;
    this.view = view;
    this.#context = context;
    this.#onChanged = onChanged;
    this.#lookAt = this.#dueAt = context.now;
    this.#clock = new JobClock(context);
  }

  get branches(): readonly Branch[] {
    return [...this.#branches.values()];
  }

  get state(): JobState | null {
    return this.#context.lookup.job(this.job)?.state ?? null;
  }

  /** Tenant of a job that waits to start; null once it has started. */
  get waitingTenant(): string | null {
    const { state } = this;
    if (state === null || state.run.started !== null || hasJobEnded(state)) return null;
    return tenantOf(this.#spec?.submission ?? {});
  }

  /** Status as shown to the submitter. */
  get status(): JobStatus {
    const { state } = this;
    if (state === null) return "QUEUED";
    const status = statusOf(state);
    const all = this.branches.map((one) => one.status);
    if (status === "STARTING" && all.includes("QUEUED")) return "QUEUED";
    const hasBegun = all.some((one) => one !== "QUEUED" && one !== "STARTING");
    return status === "RUNNING" && !hasBegun ? "STARTING" : status;
  }

  /** Reason why the job waits or has finished. */
  get reason(): string | null {
    const { state } = this;
    const waiting = this.branches.flatMap(({ datacenter, hindrance, observed }) => {
      const why = hindrance ?? (observed?.status === "QUEUED" ? observed.reason : null);
      return why === null ? [] : [`${datacenter}: ${why}`];
    });
    const said = (state === null ? null : reasonOf(state)) ?? waiting[0] ?? null;
    if (state === null || said !== null || this.#reason === null) return said;
    const place = this.#context.places.of(state);
    return place === null ? this.#reason : `${this.#reason} (${place})`;
  }

  /** The job is finished, and nothing of it is left in any datacenter. */
  get isDone(): boolean {
    const { state } = this;
    return state === null || (hasJobEnded(state) && this.#left.length === 0);
  }

  /** Live metrics with the whole history so far, for late clients too. (AD-23.4) */
  live(): LiveRun | null {
    const [only] = this.branches;
    if (this.#joint === null) return ofJob(only?.observed?.live ?? null, this.job);
    const detail = this.#liveWanted() === "latencies" ? "latencies" : "figures";
    return this.#joint.live(this.status, detail, (this.state?.run.permille ?? 1_000) / 1_000);
  }

  /** Marks the metrics as watched. */
  markWatched(latencies: boolean): void {
    this.#liveUntil = this.#context.now + LOOKED_AT_MS;
    if (latencies) this.#latenciesUntil = this.#liveUntil;
  }

  nextDeadline(): number {
    return this.#dueAt;
  }

  #soonest(): number {
    // A branch that may not act yet waits for another one, not for a deadline.
    const { state } = this;
    const all = [...(state === null ? [] : this.#acting(state)), ...this.#left];
    // Thresholds are not evaluated during an append or after a cancel.
    const isIdle = this.#isAppending || state?.status === "CANCELLING";
    const judgeAt = isIdle ? NEVER : (this.#joint?.nextDeadline ?? NEVER);
    return Math.min(this.#lookAt, judgeAt, ...all.map((one) => one.nextDeadline()));
  }

  /** Re-evaluates the job after a change of its log, a datacenter, or the time. */
  look(): void {
    this.#look();
    this.#dueAt = this.#soonest();
    this.#onChanged(this);
  }

  #look(): void {
    const { state } = this;
    this.#lookAt = NEVER;
    // The group of a job exists before its description is in the log.
    if (state === null || state.appliedSeq < 0) return;
    if (hasJobEnded(state)) this.#joint = null;
    else if (!this.#isAppending) this.#advance(state);
    for (const branch of this.#acting(state)) branch.step();
    for (const branch of this.#left) branch.step();
    this.#left = this.#left.filter(({ isOver }) => !isOver);
  }

  #advance(state: JobState): void {
    this.#spec ??= decodeSpec(state.spec);
    if (this.#spec === null) {
      this.#append(state, {
        kind: "JobFailed",
        error: "its description cannot be read",
        failedDc: "none",
      });
      return;
    }
    this.#follow(state, this.#spec);
    if (state.status === "CANCELLING" && state.run.started === null) this.#endUnstarted(state);
    else if (state.run.started !== null) {
      if (!this.#advanceJoint(state)) this.#noteResults(state);
    } else if (!this.#isLate(state, this.#spec)) this.#prepare(state, this.#spec);
  }

  /** Keeps one branch per dispatched datacenter, and leaves the others. */
  #follow(state: JobState, spec: JobSpec): void {
    const { dispatched } = state.run;
    for (const [name, branch] of this.#branches) {
      if (dispatched.some((one) => keyOfPart(state.jobId, one) === branch.key)) continue;
      this.#branches.delete(name);
      this.#leave(branch);
    }
    if (dispatched.length < countOf(spec.routing)) return;
    if (this.#chosen?.dispatched !== dispatched) {
      const parts = partsOf(spec.submission, spec.routing, dispatched);
      this.#chosen = { dispatched, parts };
    }
    const { parts } = this.#chosen;
    if (state.run.started !== null && parts.length > 1)
      this.#joint ??= new JointRun(this.#context, state, spec, parts);
    this.#clock.look(state, spec.submission.timeoutMs, this.branches);
    const wanted = this.#wanted(state);
    const words = this.#joint?.words(this.branches, state) ?? null;
    for (const { datacenter, submission } of parts) {
      const joint = words?.of(datacenter) ?? [];
      const known = this.#branches.get(datacenter);
      if (known !== undefined) known.want({ ...wanted, joint });
      else this.#branches.set(datacenter, this.#newBranch(state, datacenter, submission, wanted));
    }
  }

  #newBranch(state: JobState, datacenter: string, submission: Submission, wanted: Wanted): Branch {
    const one = state.run.dispatched.find(({ dcId }) => dcId === datacenter);
    const { attempt } = one ?? { attempt: 0 };
    const place = { datacenter, key: keyOfPart(state.jobId, { dcId: datacenter, attempt }) };
    return new Branch(this.#context, place, submission, wanted, {
      held: () => this.#joint?.heldOf(datacenter) ?? null,
      onReport: (report, view) => this.#joint?.onReport(datacenter, report, view),
      onNews: () => this.look(),
      isLed: () => this.#isLed(),
      onLine: (line) => this.lines.add(line),
    });
  }

  #isLed(): boolean {
    const group = this.#context.lookup.job(this.job);
    return group?.view === this.view && group.primary === this.#context.options.self;
  }

  /** The part was never submitted there, so it needs no cancel. */
  #isUnknown({ key, wasAsked }: Branch): boolean {
    return this.#sent.has(key) && !wasAsked;
  }

  #leave(branch: Branch): void {
    if (this.#isUnknown(branch) || !this.#context.rules.leftCancelled) return;
    branch.want({ ...UNWANTED, cancel: "it runs elsewhere" });
    this.#left.push(branch);
  }

  #wanted({ cancellation, run, status }: JobState): Wanted {
    return {
      startAtMs: run.started?.startAtMs ?? null,
      paused: status === "PAUSED",
      factor: run.permille / 1_000,
      cancel: cancellation === null ? null : cancellation.reason,
      timeOut: this.#clock.reason,
      live: this.#joint === null ? this.#liveWanted() : "none",
      joint: [],
    };
  }

  #liveWanted(): LiveWanted {
    const { now } = this.#context;
    if (now < this.#latenciesUntil) return "latencies";
    return now < this.#liveUntil ? "figures" : "none";
  }

  /**
   * Branches that may send requests. None for a started job that has finished: any gate cancels its abandoned parts.
   */
  #acting(state: JobState): readonly Branch[] {
    if (hasJobEnded(state) && state.run.started !== null) return [];
    return this.branches.filter((branch) => this.#mayAct(branch));
  }

  /** Branches take turns: all before this one must have their cores. */
  #mayAct(branch: Branch): boolean {
    if (this.state?.status === "CANCELLING" && this.#isUnknown(branch)) return false;
    const all = this.branches;
    const before = this.#context.rules.placesInOrder ? all.slice(0, all.indexOf(branch)) : [];
    return before.every(({ status, problem }) => status !== "QUEUED" || problem !== null);
  }

  #isLate(state: JobState, { submission }: JobSpec): boolean {
    const { timeoutMs } = submission;
    const waitedMs = this.#context.wall - createdAtOf(state);
    if (timeoutMs === null || waitedMs < timeoutMs) return false;
    const error = `no cores were free within ${formatDuration(timeoutMs)}, its limit`;
    this.#fail(state, error, "none");
    return true;
  }

  #prepare(state: JobState, spec: JobSpec): void {
    const { dispatched } = state.run;
    if (dispatched.length < countOf(spec.routing)) {
      this.#choose(state, spec);
      return;
    }
    if (this.branches.some((branch) => this.#isDecided(state, branch))) return;
    this.#accept(state);
    this.#lookAt = this.#context.now + EVALUATE_MS;
  }

  /** Handles a branch that cannot run before the start, at all or in this datacenter. */
  #isDecided(state: JobState, branch: Branch): boolean {
    const { datacenter, observed, problem, status } = branch;
    const why = this.#whyElsewhere(branch);
    if (problem !== null) this.#fail(state, `${datacenter}: ${problem}`, datacenter);
    else if (status === "FAILED") this.#fail(state, observed?.reason ?? "it failed", datacenter);
    else if (why !== null) this.#goElsewhere(state, branch, why);
    else return false;
    return true;
  }

  /** Dispatches one datacenter at a time, until the choice is complete. */
  #choose(state: JobState, { routing, submission }: JobSpec): void {
    const { datacenters, now } = this.#context;
    const { dispatched } = state.run;
    const gone = new Set(dispatched.map(({ dcId }) => dcId));
    const choice = chooseDatacenters(routing, submission.cores, {
      ...{ rooms: datacenters.rooms(), avoided: this.#avoided, now },
      routingOrder: (names) => datacenters.routingOrder(names, routing.prefer),
    });
    this.#reason = choice.kind === "wait" ? choice.reason : null;
    this.#lookAt = now + EVALUATE_MS;
    if (choice.kind === "wait") {
      if (state.status !== "QUEUED")
        this.#append(state, { kind: "JobQueued", reason: choice.reason });
      return;
    }
    const next = choice.datacenters.find(({ name }) => !gone.has(name));
    if (next === undefined) return;
    datacenters.decided(this.job, next.name, this.#leftAt);
    this.#leftAt = null;
    const attempt = nextAttempt(state);
    if (dispatched.length === 0) this.#sent.clear();
    this.#sent.add(keyOfPart(state.jobId, { dcId: next.name, attempt }));
    this.#append(state, {
      ...{ kind: "JobDispatched", dcId: next.name, cores: next.cores, attempt },
      digest: sha256(state.spec),
    });
  }

  /** Reason why an unstarted job should not wait for this datacenter any longer. */
  #whyElsewhere(branch: Branch): string | null {
    const { now, options } = this.#context;
    const { queuedMs, silenceMs } = options.config;
    if (branch.status === "CANCELLED") return "it was given up there";
    if (branch.unansweredMs(now) > 2 * silenceMs) return "it is not heard";
    const queuedFor = branch.queuedAt === null ? 0 : now - branch.queuedAt;
    const rooms = this.#context.datacenters.rooms();
    const isOpen = (name: string): boolean =>
      name !== branch.datacenter && whyAvoided(this.#avoided, name, now) === null;
    const others = rooms.some(({ coresFree, name }) => coresFree > 0 && isOpen(name));
    const holds = this.#branches.size > 1;
    return queuedFor > queuedMs && (others || holds) ? "it has no free cores" : null;
  }

  #goElsewhere(state: JobState, { datacenter, hindrance }: Branch, why: string): void {
    const until = this.#context.now + AVOIDED_MS;
    this.#avoided.set(datacenter, { until, why: hindrance ?? why });
    this.#leftAt = datacenter;
    this.#context.datacenters.failed(datacenter);
    this.#append(state, { kind: "JobQueued", reason: `${datacenter}: ${why}` });
  }

  #accept(state: JobState): void {
    const isAccepted = ({ datacenter }: Branch): boolean =>
      state.accepted.some(({ dcId }) => dcId === datacenter);
    const next = this.branches.find(
      (branch) => branch.observed?.prepared === true && !isAccepted(branch),
    );
    if (next !== undefined) {
      const workerCount = next.observed?.workers ?? 0;
      this.#append(state, { kind: "JobAccepted", dcId: next.datacenter, workerCount });
      return;
    }
    if (this.branches.length === 0 || !this.branches.every(isAccepted)) return;
    const { options, wall } = this.#context;
    // In several datacenters each workflow is started by itself, once it is prepared everywhere.
    const leadMs = this.branches.length > 1 ? 0 : options.config.startLeadMs;
    const startAtMs = Math.floor(wall) + leadMs;
    const shares = state.run.dispatched.map(({ cores, dcId }) => ({ dcId, cores }));
    // The submitter sees the split before the load starts.
    if (shares.length > 1) this.lines.add(splitText(this.#chosen?.parts ?? []));
    this.#append(state, {
      ...{ kind: "JobStarted", startAtMs, shares },
      planDigest: sha256(state.spec),
    });
  }

  /** For several datacenters: aborts by a threshold, or starts a workflow. Returns true if an event was appended. */
  #advanceJoint(state: JobState): boolean {
    if (this.#joint === null || state.status === "CANCELLING") return false;
    const reason = this.#joint.abortReason(this.branches);
    if (reason !== null) {
      this.lines.add(`${reason}: the run ends`);
      this.#append(state, { kind: "JobCancellationRequested", reason, requestor: THRESHOLDS });
      return true;
    }
    const ready = this.#joint.words(this.branches, state).ready();
    if (ready === null || state.status !== "RUNNING") return false;
    const atMs = Math.floor(this.#context.wall) + this.#context.options.config.startLeadMs;
    const { value, workflow } = ready;
    this.#append(state, { kind: "JobSetUpValue", workflow, value: encodeBegun({ atMs, value }) });
    return true;
  }

  /** Records results as they arrive; completes the job with the last one. */
  #noteResults(state: JobState): void {
    const { results, started } = state.run;
    const shares = started?.shares ?? [];
    const open = shares.filter(({ dcId }) => !results.some((one) => one.dcId === dcId));
    for (const { dcId } of open) {
      const branch = this.#branches.get(dcId);
      const result = branch === undefined ? null : leftBy(branch, this.#isLost(branch, state));
      if (result === null) continue;
      this.#append(state, { kind: "JobDcResult", dcId, ...result });
      return;
    }
    this.#lookAt = this.#context.now + EVALUATE_MS;
    if (open.length > 0) return;
    const finalStatus = finalStatusOf(state);
    const reasons = this.branches.map(({ datacenter, observed, problem }) => {
      return { datacenter, why: problem ?? observed?.reason ?? null };
    });
    const lost = results.flatMap(({ bytes, dcId }) =>
      bytes > 0 ? [] : (this.#joint?.lastOf(dcId) ?? []),
    );
    const aggregateMetrics = encodeEnd(reasonOfEnd(state, reasons), lost);
    this.#append(state, { kind: "JobCompleted", finalStatus, aggregateMetrics });
  }

  /** Whether a datacenter was silent until long after the end of its plan. (PART-5) */
  #isLost(branch: Branch, { run }: JobState): boolean {
    const { now, options, wall } = this.#context;
    const { lostMs } = options.config;
    const planMs = this.#spec === null ? 0 : planMsOf(this.#spec);
    const overMs = wall - ((run.started?.startAtMs ?? 0) + planMs);
    const isOver = overMs > lostMs || this.#clock.reason !== null;
    return branch.silentMs(now) > lostMs && isOver;
  }

  /** Completes a cancelled, unstarted job once nothing is left of it. */
  #endUnstarted(state: JobState): void {
    const isOver = (branch: Branch): boolean =>
      this.#isUnknown(branch) ||
      branch.hasEnded ||
      branch.problem !== null ||
      branch.silentMs(this.#context.now) > this.#context.options.config.lostMs;
    this.#lookAt = this.#context.now + EVALUATE_MS;
    if (!this.branches.every(isOver)) return;
    const aggregateMetrics = encodeEnd(null, []);
    this.#append(state, { kind: "JobCompleted", finalStatus: "CANCELLED", aggregateMetrics });
  }

  #fail(state: JobState, error: string, failedDc: string): void {
    this.lines.add(error);
    for (const branch of this.branches) this.#leave(branch);
    this.#append(state, {
      ...{ kind: "JobFailed", failedDc },
      error: error.slice(0, REASON_CHARACTERS_MAX),
    });
  }

  /** Appends one event at a time, only if the job is unchanged and this gate still leads it. */
  #append(state: JobState, body: EventBody): void {
    this.#isAppending = true;
    const condition = { ifSeq: state.appliedSeq, ifFence: this.view };
    this.#context.append(this.job, body, { condition }, (appended) => {
      this.#isAppending = false;
      this.#log(body.kind, appended);
      // Delays the retry: the ledger would refuse it again at once.
      this.#lookAt = this.#context.now + (appended.kind === "refused" ? EVALUATE_MS : 0);
      this.#dueAt = Math.min(this.#dueAt, this.#lookAt);
      this.#onChanged(this);
    });
  }

  #log(what: string, appended: Appended): void {
    const { job, view } = this;
    const fields = { job, view, what };
    if (appended.kind === "refused")
      this.#context.log("error", "job.refused", { ...fields, why: appended.message });
    else if (appended.kind === "committed" && appended.outcome === "applied")
      this.#context.log("info", "job.event", fields);
    else if (appended.kind === "committed" && appended.reason !== null)
      this.#context.log("warn", "job.rejected", { ...fields, why: appended.reason });
  }
}
