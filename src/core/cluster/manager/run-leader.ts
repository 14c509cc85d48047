/**
 * The manager that leads a job: drives the job's executions on cores of workers, and acts only on what its group has
 * committed.
 *
 *     leads ─▶ adopts the log ─▶ announces its view to the job's workers ─▶ opens cores, or takes over those that run
 *           ─▶ RunMachine: commands to cores, events of cores, steps into the log ─▶ end
 *
 * A new leader first commits `adopt`: once that is committed, all entries of its predecessors are ordered before it and
 * none can follow. It replays the decisions of the log without sending anything, proposes what its predecessor had not,
 * and repeats commands to cores. It stops nothing that runs. (FAIL-M5)
 */

import type { LogEntry } from "../../ledger/group/messages.ts";
import type { RunMachine } from "../../load/execution/run-machine.ts";
import { type CoreEvent, problemText } from "../../load/job/core-messages.ts";
import type { JobStatus as RunStatus } from "../../load/job/job.ts";
import type { LiveDetail, LiveRun } from "../../load/results/live.ts";
import type { RunSummary } from "../../load/results/model.ts";
import type {
  Announced,
  Control,
  Events,
  HeldFigures,
  JobStatus,
  Refusal,
  Submission,
  Taken,
  WorkerEvent,
} from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { EventIntake } from "./event-intake.ts";
import { controlsAlone, HeldStart } from "./held-start.ts";
import { MessageLines } from "./message-lines.ts";
import { coresToOpen, newRunMachine } from "./new-run.ts";
import { keyOf, type Life } from "./order-rows.ts";
import type { Proposed } from "./proposals.ts";
import { Replacements } from "./replacements.ts";
import { RunDriver } from "./run-driver.ts";
import { conclusionOf, RunEnding } from "./run-ending.ts";
import {
  type Decision,
  decodeRunEntry,
  type RunCore,
  type RunEnd,
  type RunEntry,
} from "./run-entries.ts";
import { type AskedBy, RunLog } from "./run-log.ts";
import { resultBytes } from "./run-result.ts";
import type { RunState } from "./run-state.ts";
import { RunTimeouts } from "./run-timeouts.ts";
import { RunWorkers } from "./run-workers.ts";

/** "waiting": its log is not adopted yet; "gathering": workers that may be alive have not sent a heartbeat yet. */
type Phase =
  | ("waiting" | "gathering" | "announcing" | "opening" | "loading")
  | ("starting" | "running" | "ending" | "over");

export class RunLeader {
  readonly job: string;
  readonly view: number;
  readonly held: HeldStart;
  readonly lines = new MessageLines();
  readonly ending: RunEnding;
  readonly timeouts: RunTimeouts;
  /** Set when the job is over. */
  summary: RunSummary | null = null;
  readonly #context: ManagerContext;
  readonly #onEnded: (end: RunEnd) => void;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #workers: RunWorkers;
  readonly #intake: EventIntake;
  /** Cores that have not loaded the job yet. */
  readonly #loading = new Set<number>();
  #phase: Phase = "waiting";
  #loadBy = Number.POSITIVE_INFINITY;
  #driver: RunDriver | null = null;
  /** Number of log decisions applied. */
  #taken = 0;
  readonly #replacements: Replacements;
  /** Status of the finished executions, until the metrics are complete. */
  #done: RunStatus | null = null;

  constructor(
    job: string,
    view: number,
    state: RunState,
    context: ManagerContext,
    ports: {
      /** When its group began, on the clock of this process; null when this process has received no entry of it. */
      beganAt(): number | null;
      /** Called when the job is over here: its cores are returned and its result can be reported. */
      onEnded(end: RunEnd): void;
    },
  ) {
    this.job = job;
    this.view = view;
    this.#state = state;
    this.held = new HeldStart(state, context.now);
    this.#context = context;
    this.#onEnded = (end) => ports.onEnded(end);
    this.#workers = new RunWorkers(job, view, state, context, {
      onAnnounced: () => this.#onAnnounced(),
      onRefused: (life, refusal) => this.#onRefused(life, refusal),
      onReopened: (life, events) => this.#intake.skip(life, events),
    });
    this.#intake = new EventIntake(context);
    this.#log = new RunLog(this, state, context, ports.beganAt, {
      onSettled: (eventId) => this.#intake.settled(eventId),
      onEndedBefore: () => this.#onAdopted(),
      onProblem: (kind, problem) => this.#onProblem(kind, problem),
    });
    this.#replacements = new Replacements(job, state, context, this.#workers, {
      log: this.#log,
      lose: (core, what) => this.#coreLost(core, what),
      isNeeded: (core) => this.#driver?.awaits(core) === true,
    });
    this.ending = new RunEnding(context, this.#log);
    this.timeouts = new RunTimeouts(this, state, context, this.#log);
    if (state.submission !== null) this.#log.adopt();
  }

  get status(): JobStatus {
    if (this.#state.end !== null) return this.#state.end.status;
    if ((this.#cancelled ?? this.#state.timedOut) !== null) return "CANCELLING";
    const phase = this.machine?.phase ?? "starting";
    if (phase === "starting") return "STARTING";
    return phase === "paused" ? "PAUSED" : "RUNNING";
  }

  get #cancelled(): string | null {
    const kept = this.#context.rules.cancelKept ? this.#state.cancelled : null;
    return kept ?? this.#log.cancelling;
  }

  live(detail: LiveDetail): LiveRun | null {
    const machine = this.#phase === "running" ? this.machine : null;
    return machine?.live(this.#context.now, detail) ?? null;
  }

  /** Null before its executions begin. */
  get machine(): RunMachine | null {
    return this.#driver?.machine ?? null;
  }

  nextDeadline(): number | null {
    const at = Math.min(
      this.#workers.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#driver?.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#loadBy,
      this.held.nextDeadline((this.machine?.waits.length ?? 0) > 0),
      this.#intake.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#replacements.nextDeadline(),
      this.timeouts.nextDeadline(),
      this.#phase === "gathering" ? this.#workers.gatherAt : Number.POSITIVE_INFINITY,
    );
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  onTick(): void {
    const { now } = this.#context;
    if (this.#phase === "gathering" && now >= this.#workers.gatherAt) this.#gather();
    if (now >= this.#loadBy) this.#fail("the workflow did not load in time");
    if (this.held.isStartReached(now)) this.#startLoaded();
    if (this.held.isForgotten(now)) this.#end("CANCELLED", "nobody has started it", null);
    if (this.held.isOrphaned(now)) this.#goOnAlone();
    this.#driver?.onTick();
    this.#replacements.onTick();
    this.#intake.onTick();
    this.#onAnnounced();
    for (const { core, what } of this.#workers.failedCores()) this.#coreLost(core, what);
    this.timeouts.onTick();
    this.onCoresChanged();
  }

  /** Continues without the gate when none has polled the job for too long. */
  #goOnAlone(): void {
    this.held.onPolled(this.#context.now);
    for (const control of controlsAlone(this.machine))
      this.#log.proposeControl(control, { by: "manager" }, () => undefined);
  }

  /** True when the answer belongs to a request of this leader. */
  onWorkerAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const mine = this.#workers.onAnswer(request, answer);
    if (mine) this.onCoresChanged();
    return mine;
  }

  /** Applies log entries in order; ignores rejected ones. */
  onApplied({ data, kind }: LogEntry, outcome: string): void {
    const entry = kind === "op" && outcome !== "rejected" ? decodeRunEntry(data) : null;
    if (entry === null) return;
    this.#onEntry(entry);
    this.#takeDecisions();
    this.onCoresChanged();
  }

  /** Reacts when cores of the datacenter or the job changed owner, or metrics arrived. */
  onCoresChanged(): void {
    if (this.#phase === "running") this.#replacements.check();
    this.#workers.noteOver(this.machine, (life) => this.#intake.newsAt(life));
    this.#endWhenComplete();
    this.#workers.send();
  }

  #onEntry(entry: RunEntry): void {
    this.timeouts.onEntry(entry.kind);
    if (entry.kind === "begin") {
      this.#log.begin();
      this.#log.adopt();
    } else if (entry.kind === "end") this.#release();
    else if (entry.kind === "control" || entry.view !== this.view) return;
    else if (entry.kind === "adopt") this.#onAdopted();
    else if (entry.kind === "open" && this.#phase === "running")
      this.#replacements.open(entry.cores);
    else if (entry.kind === "open") this.#openCores(entry.cores);
    else if (
      entry.kind === "step" &&
      (entry.step.kind === "grant" || entry.step.kind === "numbers")
    )
      this.#driver?.onGiven(entry.step);
  }

  /** Entries that were in the log at adoption are not applied a second time. */
  #takeDecisions(): void {
    if (this.isAdopting) return;
    const { history } = this.#state;
    while (this.#taken < history.length) {
      const decision = history[this.#taken++];
      if (decision !== undefined) this.#take(decision);
    }
  }

  get isAdopting(): boolean {
    return ["waiting", "gathering", "announcing"].includes(this.#phase);
  }

  #take(decision: Decision): void {
    if (decision.kind === "coreLost") this.#workers.release(decision.core);
    if (this.#phase === "ending" || this.#phase === "over") return;
    if (this.#driver !== null) this.#driver.take(decision);
    else if (decision.kind === "start") this.#begin();
    else if (decision.kind === "coreLost") this.#onLostBefore(decision.core, decision.what);
    else if (this.#state.endAsked !== null) this.#end(...this.#state.endAsked, null);
    else if (decision.kind === "control" && decision.control.kind === "start") this.#startLoaded();
  }

  /** Takes effect when committed, except that load stops at once. (G-18) */
  control(control: Control, asked: AskedBy, done: (proposed: Proposed) => void): void {
    if (control.kind === "cancel") this.#driver?.control(control);
    this.#log.proposeControl(control, asked, done, () => this.#driver?.isStopped === true);
    this.#workers.send();
  }

  onEvents(id: number, events: Events): void {
    if (events.view !== this.view) {
      this.#intake.refuse(id, `view ${this.view} leads ${this.job}`);
      return;
    }
    this.#workers.onMessage(events);
    // Postpones events until the log has been replayed.
    const isEarly = this.isAdopting || this.#workers.isReopening(events);
    if (isEarly && this.#context.rules.adoptedBeforeHeard) this.#intake.postpone(id, events);
    else {
      const take = (event: WorkerEvent): void => this.#onEvent(events, event);
      this.#intake.take(id, events, (event) => this.#log.during(() => take(event)));
    }
    this.onCoresChanged();
  }

  /** Called when a worker is alive again, or seen for the first time. */
  onWorkerSeen(worker: string): void {
    if (this.#phase === "gathering") this.#gather();
    else this.onWorkerLost(worker);
    this.#workers.send();
  }

  /** Called when an incarnation of the worker terminated: it stopped answering or restarted. */
  onWorkerLost(worker: string): void {
    if (this.#phase === "waiting" || this.#phase === "gathering") return;
    for (const { core } of this.#state.cores.filter((one) => one.worker === worker))
      this.#loseUnlessAlive(core);
    this.#onAnnounced();
    this.#endWhenComplete();
  }

  #loseUnlessAlive(core: number): void {
    const who = this.#workers.lifeOf(core)?.worker ?? "";
    if (!this.#workers.isAlive(core))
      this.#coreLost(core, `worker ${who} was lost with core ${core}`);
  }

  #coreLost(core: number, what: string, complete = false): void {
    if (!this.#workers.mayLose(core)) return;
    const figures = this.#driver?.lossOf(core, complete) ?? null;
    const awaited = this.#driver?.goesOn === true && this.#replacements.mayReplace(core);
    this.#log.propose({ kind: "coreLost", core, what, awaited, figures });
  }

  #onProblem(kind: RunEntry["kind"], problem: string): void {
    this.#say("error", "run.refused", { entry: kind, why: problem });
    if (kind !== "end") this.#fail(problem);
  }

  #onAdopted(): void {
    if (this.#phase !== "waiting") return;
    this.#log.adopted();
    this.#phase = "gathering";
    this.#gather();
  }

  /** Waits for workers that may be alive, because this manager has just started itself. */
  #gather(): void {
    if (!this.#workers.gather() && this.#context.rules.workersGathered) return;
    this.#phase = "announcing";
    this.#onAnnounced();
  }

  #onAnnounced(): void {
    if (this.#phase !== "announcing" || !this.#workers.allAnnounced) return;
    const { cores, end, endAsked, history } = this.#state;
    this.#taken = history.length;
    if (end !== null) {
      this.#phase = "ending";
      if (this.#context.rules.endToldAgain) this.#release();
    } else if (this.#state.isStarted) this.#adopt();
    else if (endAsked !== null) this.#end(...endAsked, null);
    else if (cores.length === 0) this.#proposeCores();
    else {
      // Nothing runs, and opened cores may or may not have loaded the job: open them again.
      this.#phase = "opening";
      this.#workers.releaseFirst();
      this.#openCores(this.#workers.cores());
    }
  }

  #onRefused(life: Life, { message, reason }: Refusal): void {
    const { worker } = life;
    this.#say("warn", "orders.refused", { worker, reason, message });
    if (reason !== "wrongIncarnation") return;
    for (const { core } of this.#state.cores.filter((one) => this.#workers.isAt(one.core, life)))
      this.#coreLost(core, `worker ${worker} has started again without core ${core}`);
  }

  /** Proposes as many processes as the workflows can use in parallel, spread over the granted cores. */
  #proposeCores(): void {
    const cores = coresToOpen(this.#state, this.#context, this.#workers);
    if (cores.length === 0) {
      this.#fail("its workers were lost before it began");
      return;
    }
    this.#phase = "opening";
    this.#log.propose({ kind: "open", cores });
  }

  #openCores(cores: readonly RunCore[]): void {
    const { submission } = this.#state;
    if (submission === null || this.#phase !== "opening") return;
    this.#phase = "loading";
    this.#loadBy = this.#context.now + this.#context.options.config.loadTimeoutMs;
    for (const { core } of cores) this.#loading.add(core);
    this.#workers.openCores(cores, submission);
    // Workers may have been lost since their cores were chosen.
    for (const { core } of cores) this.#loseUnlessAlive(core);
  }

  /** Takes over running cores, and declares missing ones lost. */
  #adopt(): void {
    const { submission } = this.#state;
    if (submission === null) return;
    const driver = this.#start(submission);
    driver.adopt(this.#log);
    for (const { core } of this.#replacements.opened())
      this.#coreLost(core, `core ${core} had not joined when another manager took over`);
    const gone = this.#workers.gone();
    for (const { core, worker } of gone)
      this.#coreLost(core, `worker ${worker} has lost core ${core}`);
    this.#say("info", "run.adopted", { view: this.view, lost: gone.length });
  }

  #onEvent(life: Events, event: WorkerEvent): void {
    const { incarnation, worker } = life;
    this.#context.workers.onHeard(worker, incarnation, this.#context.now);
    const cores = event.kind === "figures" ? event.cores : [event];
    if (!cores.every(({ core }) => this.#workers.isAt(core, life))) return;
    const core = "core" in event ? event.core : -1;
    const hold = (held: HeldFigures): void => this.#intake.hold(life, held);
    if (event.kind === "figures")
      this.#driver?.onFigures(keyOf(life), event, life.wantsHeld === true ? hold : null);
    else if (event.kind === "coreLost")
      this.#coreLost(core, `worker ${worker}: ${event.what}`, event.complete);
    else if (this.#driver === null) this.#onLoading(core, event.event);
    else if (!this.#replacements.onEvent(core, event.event))
      this.#driver.onEvent(core, event.event);
  }

  #onLoading(core: number, event: CoreEvent): void {
    if (event.kind === "log" || event.kind === "unhandled") this.lines.add(event.line);
    if (event.kind === "loadFailed") this.#fail(problemText(event.problem));
    if (event.kind === "loaded" && this.#loading.delete(core)) this.#startLoaded();
  }

  /** Handles a core lost before the executions began. */
  #onLostBefore(core: number, what: string): void {
    this.#loading.delete(core);
    if (this.#workers.cores().length === 0) this.#fail(what);
    else this.#startLoaded();
  }

  /** Starts when every remaining core has loaded the job. */
  #startLoaded(): void {
    if (this.#phase !== "loading" || this.#loading.size > 0) return;
    this.#loadBy = Number.POSITIVE_INFINITY;
    if (!this.held.isDue(this.#context.now, this.#context.wall)) return;
    this.held.forget();
    this.#phase = "starting";
    this.#log.propose({ kind: "start" });
  }

  /** Begins with earlier decisions applied: lost cores and controls by users. */
  #begin(): void {
    const { history, submission } = this.#state;
    if (submission === null || this.#phase !== "starting") return;
    const driver = this.#start(submission);
    for (const decision of history.slice(0, this.#taken)) driver.take(decision);
  }

  #start(submission: Submission): RunDriver {
    const { createdAt, grants } = this.#state;
    const cores = this.#workers.coresAtStart();
    this.#phase = "running";
    this.#loadBy = Number.POSITIVE_INFINITY;
    const isAwaited = (core: number): boolean => this.#workers.isAwaited(core);
    const { acceptedAt } = this.#log;
    const facts = { job: this.job, cores, grants, createdAt, acceptedAt, isAwaited };
    const machine = newRunMachine(submission, this.#context.options, facts);
    this.#driver = new RunDriver(machine, this.#state, this.#context, {
      lines: this.lines,
      order: (core, order) => {
        if (!this.#workers.order(core, order)) this.#say("error", "orders.full", { core });
      },
      propose: (step) => this.#log.propose({ kind: "step", step }),
      onDone: (status) => {
        this.#done = status;
      },
    });
    this.#say("info", "run.started", { view: this.view, cores: cores.length });
    return this.#driver;
  }

  #fail(reason: string): void {
    this.lines.add(reason);
    this.#end("FAILED", reason, null);
  }

  /** Waits for metrics of shares that had finished before this leader took over. */
  #endWhenComplete(): void {
    const [driver, done] = [this.#driver, this.#done];
    if (done === null || driver === null) return;
    const hasAllEvents = this.#workers.hasAllEvents((life) => this.#intake.acceptedCount(life));
    if (!hasAllEvents && this.#context.rules.heardOut) return;
    this.#done = null;
    driver.noteMissing();
    const { reason, status, summary } = conclusionOf(driver, done, this.#cancelled);
    this.summary = summary;
    this.#end(status, reason, summary);
  }

  #end(status: JobStatus, why: string | null, summary: RunSummary | null): void {
    if (this.#phase === "ending" || this.#phase === "over") return;
    this.#phase = "ending";
    this.#loadBy = Number.POSITIVE_INFINITY;
    this.held.forget();
    const { submission } = this.#state;
    const bytes =
      summary === null ? null : resultBytes(summary, this.machine, submission, this.#context);
    this.ending.end(status, why, bytes, summary);
  }

  /** Releases all cores and notifies the datacenter. */
  #release(): void {
    const { end } = this.#state;
    if (end === null || this.#phase === "over" || this.isAdopting) return;
    this.#phase = "over";
    this.timeouts.stop(end.status);
    if (this.#context.rules.releasedAtEnd) this.#workers.releaseAll();
    this.#onEnded(end);
  }

  /** True when the job is over and every reachable worker has confirmed it: nothing is left to do. */
  get isDone(): boolean {
    return this.#phase === "over" && this.#workers.isIdle;
  }

  #say(...[level, event, fields]: Parameters<ManagerContext["log"]>): void {
    this.#context.log(level, event, { job: this.job, ...fields });
  }
}
