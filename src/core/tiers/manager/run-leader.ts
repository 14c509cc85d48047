/**
 * The manager that leads a job: it has the executions of the job driven on cores of workers, and acts only on
 * what its group has committed.
 *
 *     leads ─▶ announces its view to the job's workers ─▶ opens cores, or adopts those that run
 *           ─▶ RunMachine: commands to cores, events of cores, steps into the log ─▶ end
 *
 * A new leader takes the decisions of the log again without sending anything, proposes what its predecessor
 * had not, and says again what cores may not have heard. It stops nothing that runs. (FAIL-M5)
 */

import { assertNever } from "../../base/assert.ts";
import { hexOf } from "../../base/hex.ts";
import { encodePlain } from "../../base/plain-value.ts";
import { sha256 } from "../../base/sha256.ts";
import type { LogEntry } from "../../ledger/group/messages.ts";
import type { RunMachine } from "../../run/execution/run-machine.ts";
import type { CoreEvent } from "../../run/job/core-messages.ts";
import type { JobStatus as RunStatus } from "../../run/job/job.ts";
import type { LiveRun } from "../../run/results/live.ts";
import type { RunSummary } from "../../run/results/model.ts";
import type {
  Announced,
  Control,
  Events,
  JobStatus,
  Order,
  Refusal,
  RunningCore,
  Submission,
  Taken,
  WorkerEvent,
} from "../messages.ts";
import { type ManagerContext, runGroup } from "./context.ts";
import { MessageLines } from "./message-lines.ts";
import { coresOf, newRunMachine } from "./new-run.ts";
import { OrderRows } from "./order-rows.ts";
import type { Proposed } from "./proposals.ts";
import { RunDriver } from "./run-driver.ts";
import {
  decodeRunEntry,
  encodeRunEntry,
  RUN_ENTRY_BYTES_MAX,
  type RunCore,
  type RunEnd,
  type RunEntry,
  type RunState,
} from "./run-state.ts";

type Phase =
  | "waiting"
  | "gathering"
  | "announcing"
  | "opening"
  | "loading"
  | "running"
  | "ending"
  | "over";

export class RunLeader {
  readonly job: string;
  readonly view: number;
  readonly #context: ManagerContext;
  readonly #onEnded: (end: RunEnd) => void;
  readonly #state: RunState;
  readonly #rows: OrderRows;
  readonly #lines = new MessageLines();
  /** The next event that is taken from each worker. */
  readonly #nextEvent = new Map<string, number>();
  /** Cores that have not loaded the job yet. */
  readonly #loading = new Set<number>();
  /** What a worker said to run when it heard of this leader. */
  readonly #running = new Map<string, ReadonlySet<number>>();
  #phase: Phase = "waiting";
  #loadBy = Number.POSITIVE_INFINITY;
  #driver: RunDriver | null = null;
  #cancelled: string | null = null;
  #adoptedSeq = -1;
  #summary: RunSummary | null = null;

  constructor(
    job: string,
    view: number,
    state: RunState,
    context: ManagerContext,
    /** The job is over here: its cores go back and its result can be told. */
    onEnded: (end: RunEnd) => void,
  ) {
    this.job = job;
    this.view = view;
    this.#state = state;
    this.#context = context;
    this.#onEnded = onEnded;
    this.#rows = new OrderRows(job, view, context, {
      onAnnounced: (worker, cores) => this.#onAnnounced(worker, cores),
      onRefused: (worker, refusal) => this.#onRefused(worker, refusal),
    });
    if (state.submission !== null) this.#gather();
  }

  get status(): JobStatus {
    if (this.#state.end !== null) return this.#state.end.status;
    if (this.#cancelled !== null) return "CANCELLING";
    const phase = this.#driver?.machine.phase ?? "starting";
    if (this.#phase !== "running" || phase === "starting") return "STARTING";
    return phase === "paused" ? "PAUSED" : "RUNNING";
  }

  get lines(): MessageLines {
    return this.#lines;
  }

  get summary(): RunSummary | null {
    return this.#summary;
  }

  live(): LiveRun | null {
    return this.#phase === "running"
      ? (this.#driver?.machine.live(this.#context.now) ?? null)
      : null;
  }

  nextDeadline(): number | null {
    const at = Math.min(
      this.#rows.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#driver?.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#loadBy,
      this.#phase === "gathering" ? this.#context.heardAllAt : Number.POSITIVE_INFINITY,
    );
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  onTick(): void {
    const now = this.#context.now;
    if (this.#phase === "gathering") this.#gather();
    if (now >= this.#loadBy) this.#fail("the workflow did not load in time");
    this.#driver?.onTick();
    this.#rows.send();
  }

  /** True when the answer was to a request of this leader. */
  onWorkerAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const mine = this.#rows.onAnswer(request, answer);
    if (mine) this.#rows.send();
    return mine;
  }

  /** Of the log, in order. */
  onApplied({ data, eventId, kind, seq }: LogEntry): void {
    const entry = kind === "op" ? decodeRunEntry(data) : null;
    // What was adopted from the folded state is not taken a second time.
    if (entry === null || seq <= this.#adoptedSeq) return;
    switch (entry.kind) {
      case "begin":
        this.#gather();
        break;
      case "open":
        this.#openCores(entry.cores);
        break;
      case "step":
        this.#driver?.onStep(eventId);
        break;
      case "coreLost":
        this.#onCoreLost(entry.core, entry.what);
        break;
      case "control":
        this.#onControl(entry.control);
        break;
      case "end":
        this.#release();
        break;
      default:
        assertNever(entry);
    }
    this.#rows.send();
  }

  /** Committed before it takes effect; but load is stopped at once. (G-18) */
  control(control: Control, by: string, done: (proposed: Proposed) => void): void {
    const at = Math.floor(this.#context.wall);
    if (control.kind === "cancel") this.#onControl(control);
    this.#propose({ kind: "control", control, by, at }, done);
    this.#rows.send();
  }

  onEvents({ events, first, incarnation, view, worker }: Events): Taken | Refusal {
    if (view !== this.view) return refusal("staleView", `view ${this.view} leads ${this.job}`);
    let next = this.#nextEvent.get(worker) ?? 0;
    for (const [at, event] of events.entries()) {
      if (first + at !== next) continue;
      next++;
      this.#onEvent(worker, incarnation, event);
    }
    this.#nextEvent.set(worker, next);
    this.#rows.send();
    return { kind: "taken", next };
  }

  /** A worker is heard again, or for the first time. */
  onWorkerHeard(worker: string): void {
    if (this.#phase === "gathering") this.#gather();
    else this.onWorkerLost(worker);
  }

  /** A life of the worker is over: it does not answer any more, or has started again. */
  onWorkerLost(worker: string): void {
    if (this.#phase === "waiting" || this.#phase === "gathering") return;
    const isOver = (one: { readonly worker: string; readonly incarnation: number }): boolean =>
      one.worker === worker && !this.#context.workers.isAlive(worker, one.incarnation);
    if (![...this.#state.grants, ...this.#state.cores].some(isOver)) return;
    this.#rows.close(worker);
    for (const { core } of this.#state.cores.filter(isOver))
      this.#coreLost(core, `worker ${worker} was lost with core ${core}`);
    if (this.#phase === "announcing") this.#allAnnounced();
  }

  #onCoreLost(core: number, what: string): void {
    if (this.#driver !== null) this.#driver.step({ kind: "coreLost", core, what });
    else if (this.#phase === "loading") {
      this.#loading.delete(core);
      if (this.#cores().length === 0) this.#fail(what);
      else this.#startLoaded();
    }
  }

  #coreLost(core: number, what: string): void {
    if (this.#isLost(core)) return;
    this.#propose({ kind: "coreLost", core, what });
  }

  #isLost(core: number): boolean {
    return this.#state.history.some((one) => one.kind === "coreLost" && one.core === core);
  }

  /** The cores that the job still has. */
  #cores(): readonly RunCore[] {
    return this.#state.cores.filter(({ core }) => !this.#isLost(core));
  }

  #propose(entry: RunEntry, done: (proposed: Proposed) => void = () => undefined): void {
    this.#proposeAs(this.#context.newEventId(), entry, done);
  }

  #proposeAs(eventId: string, entry: RunEntry, done: (proposed: Proposed) => void): void {
    const data = encodeRunEntry(entry);
    if (data.length > RUN_ENTRY_BYTES_MAX && entry.kind !== "end") {
      this.#fail(
        `a value of the workflow takes ${data.length} bytes; at most ${RUN_ENTRY_BYTES_MAX} can be kept`,
      );
      return;
    }
    this.#context.propose(runGroup(this.job), eventId, data, (proposed) => {
      if (proposed.kind === "refused") this.#log("error", "run.refused", { why: proposed.message });
      done(proposed);
    });
  }

  /** Workers that this manager has not heard yet may still be there: it has just begun itself. */
  #gather(): void {
    if (this.#phase !== "waiting" && this.#phase !== "gathering") return;
    this.#phase = "gathering";
    const { cores, grants } = this.#state;
    let missing = false;
    for (const { incarnation, worker } of [...grants, ...cores]) {
      if (this.#context.workers.isAlive(worker, incarnation)) this.#rows.open(worker, incarnation);
      else missing = true;
    }
    this.#rows.send();
    if (missing && this.#context.now < this.#context.heardAllAt) return;
    this.#phase = "announcing";
    this.#allAnnounced();
  }

  #onAnnounced(worker: string, cores: readonly RunningCore[]): void {
    this.#running.set(worker, new Set(cores.map(({ core }) => core)));
    if (this.#phase === "announcing") this.#allAnnounced();
  }

  #allAnnounced(): void {
    if (!this.#rows.workers.every((worker) => this.#rows.isAnnounced(worker))) return;
    if (this.#state.end !== null) this.#release();
    else if (this.#state.cores.length === 0) this.#proposeCores();
    else this.#adopt();
  }

  #onRefused(worker: string, { message, reason }: Refusal): void {
    this.#log("warn", "orders.refused", { worker, reason, message });
    if (reason === "wrongIncarnation" || reason === "noCapacity" || reason === "draining") {
      this.#lines.add(`worker ${worker} refused: ${message}`);
      this.#rows.close(worker);
      for (const { core } of this.#state.cores.filter((one) => one.worker === worker))
        this.#coreLost(core, `worker ${worker} refused core ${core}: ${message}`);
    }
  }

  /** As many processes as the workflows can use side by side, over the granted cores in turn. */
  #proposeCores(): void {
    const { grants, submission } = this.#state;
    const alive = grants.filter(({ incarnation, worker }) =>
      this.#context.workers.isAlive(worker, incarnation),
    );
    if (submission === null || alive.length === 0) {
      this.#fail("its workers were lost before it began");
      return;
    }
    this.#phase = "opening";
    const { processesPerCoreMax } = this.#context.options.config;
    const cores = coresOf(alive, submission.manifests, processesPerCoreMax);
    this.#propose({ kind: "open", cores });
  }

  #openCores(cores: readonly RunCore[]): void {
    const { submission } = this.#state;
    if (submission === null || this.#phase !== "opening") return;
    this.#phase = "loading";
    this.#loadBy = this.#context.now + this.#context.options.config.loadTimeoutMs;
    for (const { core } of cores) this.#loading.add(core);
    this.#orderOpen(cores, submission);
  }

  #orderOpen(cores: readonly RunCore[], submission: Submission): void {
    const { entry, files, overrides } = submission;
    for (const worker of new Set(cores.map((one) => one.worker))) {
      const own = cores.filter((one) => one.worker === worker).map(({ core }) => core);
      const order = { kind: "open", cores: own, entry, files, overrides } as const;
      this.#rows.push(worker, order);
    }
  }

  /** Cores are open: what runs is taken over, what is gone is lost. */
  #adopt(): void {
    const { submission } = this.#state;
    if (submission === null) return;
    const has = ({ core, worker }: RunCore): boolean =>
      this.#running.get(worker)?.has(core) === true;
    const begun = this.#state.history.some(({ kind }) => kind === "step");
    if (!begun) {
      // Nothing runs, and what is open may or may not have loaded the job: it is opened anew.
      this.#phase = "opening";
      for (const worker of this.#rows.workers) this.#releaseAt(worker);
      this.#openCores(this.#cores());
      for (const { core, worker } of this.#cores())
        if (!this.#rows.workers.includes(worker))
          this.#coreLost(core, `worker ${worker} was lost with core ${core}`);
      return;
    }
    const gone = this.#cores().filter((one) => !has(one));
    this.#adoptedSeq = this.#state.seq;
    const driver = this.#start(submission);
    driver.adopt();
    const ended = this.#state.attempts.filter(({ status }) => status !== "running").length;
    if (ended > 0)
      driver.machine.note(
        `another manager leads the job since: figures of ${ended} shares that had ended are missing`,
      );
    for (const { core, worker } of gone)
      this.#coreLost(core, `worker ${worker} has lost core ${core}`);
    this.#log("info", "run.adopted", { job: this.job, view: this.view, lost: gone.length });
  }

  #onEvent(worker: string, incarnation: number, event: WorkerEvent): void {
    this.#context.workers.onHeard(worker, incarnation, this.#context.now);
    const { core } = event;
    const known = this.#state.cores.find((one) => one.core === core);
    if (known?.worker !== worker || known.incarnation !== incarnation) return;
    if (event.kind === "coreLost") this.#coreLost(core, `worker ${worker}: ${event.what}`);
    else if (this.#driver === null) this.#onLoading(core, event.event);
    else this.#driver.step({ kind: "event", core, event: event.event });
  }

  #onLoading(core: number, event: CoreEvent): void {
    if (event.kind === "log" || event.kind === "unhandled") this.#lines.add(event.line);
    if (event.kind === "loadFailed") {
      const { location, message } = event.problem;
      this.#fail(location === null ? message : `${location}: ${message}`);
    }
    if (event.kind === "loaded" && this.#loading.delete(core)) this.#startLoaded();
  }

  /** When every core that is left has loaded the job. */
  #startLoaded(): void {
    const { history, submission } = this.#state;
    if (submission === null || this.#phase !== "loading" || this.#loading.size > 0) return;
    const driver = this.#start(submission);
    driver.step({ kind: "start" });
    for (const one of history) if (one.kind === "coreLost") driver.step(one);
  }

  #start(submission: Submission): RunDriver {
    const { createdAt, grants } = this.#state;
    const { now, options, wall } = this.#context;
    const cores = coresAtStart(this.#state);
    this.#phase = "running";
    this.#loadBy = Number.POSITIVE_INFINITY;
    const elapsedMs = Math.max(0, wall - createdAt);
    const facts = { job: this.job, cores, grants, createdAt, now, elapsedMs };
    const machine = newRunMachine(submission, options, facts);
    this.#driver = new RunDriver(machine, this.#state, this.#context, {
      lines: this.#lines,
      order: (core, order) => this.#order(core, order),
      propose: (eventId, entry) => this.#proposeAs(eventId, entry, () => undefined),
      onDone: (status) => this.#onDone(machine, status),
    });
    this.#log("info", "run.started", { view: this.view, cores: cores.length });
    return this.#driver;
  }

  #order(core: number, order: Order): void {
    const worker = this.#state.cores.find((one) => one.core === core)?.worker;
    if (worker !== undefined && !this.#rows.push(worker, order))
      this.#log("error", "orders.full", { worker });
  }

  #onControl(control: Control): void {
    if (control.kind === "cancel" && !this.#cancel(control.reason)) return;
    this.#driver?.control(control);
  }

  /** False when it is over, or has not begun and needs no more than to end. */
  #cancel(reason: string): boolean {
    if (this.#phase === "ending" || this.#phase === "over") return false;
    this.#cancelled ??= reason;
    if (this.#driver === null) this.#end("CANCELLED", reason, null);
    return this.#driver !== null;
  }

  #fail(reason: string): void {
    this.#lines.add(reason);
    this.#end("FAILED", reason, null);
  }

  #onDone(machine: RunMachine, status: RunStatus): void {
    if (machine.mistake !== undefined) {
      const { location, message } = machine.mistake;
      this.#end("FAILED", location === null ? message : `${location}: ${message}`, null);
      return;
    }
    const ended = { completed: "COMPLETED", partial: "PARTIAL", failed: "FAILED" } as const;
    const stopped = this.#cancelled === null ? "COMPLETED" : "CANCELLED";
    this.#summary = machine.summary();
    const word = status === "interrupted" ? stopped : ended[status];
    this.#end(word, this.#cancelled, this.#summary);
  }

  #end(status: JobStatus, reason: string | null, summary: RunSummary | null): void {
    if (this.#phase === "ending" || this.#phase === "over") return;
    this.#phase = "ending";
    this.#loadBy = Number.POSITIVE_INFINITY;
    const bytes = summary === null ? null : encodePlain(summary);
    const hash = bytes === null ? null : hexOf(sha256(bytes));
    if (bytes !== null && hash !== null) this.#context.emit({ kind: "keepBlob", hash, bytes });
    this.#propose({ kind: "end", status, reason, summary: hash });
  }

  /** All cores go back; the datacenter is told. */
  #release(): void {
    const { end } = this.#state;
    if (end === null || this.#phase === "over") return;
    this.#phase = "over";
    for (const worker of this.#rows.workers) this.#releaseAt(worker);
    this.#onEnded(end);
  }

  #releaseAt(worker: string): void {
    const cores = this.#state.cores.filter((one) => one.worker === worker);
    if (cores.length > 0)
      this.#rows.push(worker, { kind: "release", cores: cores.map(({ core }) => core) });
  }

  /** Over, and every worker has heard it: nothing is left to do. */
  get isDone(): boolean {
    return this.#phase === "over" && this.#rows.isIdle;
  }

  #log(
    level: "info" | "warn" | "error",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void {
    this.#context.log(level, event, { job: this.job, ...fields });
  }
}

/** Those that were not lost before the job began to run. */
function coresAtStart({ cores, history }: RunState): readonly RunCore[] {
  const first = history.findIndex(({ kind }) => kind === "step");
  const before = first < 0 ? history : history.slice(0, first);
  const lost = new Set(before.flatMap((one) => (one.kind === "coreLost" ? [one.core] : [])));
  return cores.filter(({ core }) => !lost.has(core));
}

function refusal(reason: Refusal["reason"], message: string): Refusal {
  return { kind: "refused", reason, message };
}
