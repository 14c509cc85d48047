/**
 * One workflow on one core, from preparation to the last frame.
 *
 *   new ──prepare──▶ prepared ──start──▶ running ──plan over / stop──▶ stopping ──all users done──▶ finished
 *                                                                        └──graceful stop over──▶ abort ─┘
 *
 * The plan's clock begins when everything is prepared and stands still while paused. A warm-up is a
 * first stage of the plan whose results are not recorded.
 */

import { deepFreeze } from "../core/base/freeze.ts";
import { Random } from "../core/base/random.ts";
import { ITERATIONS_LEASE, type Problem } from "../core/load/job/core-messages.ts";
import { isOpen, isOpenEnded, planDurationMs, shareName } from "../core/load/plan/load.ts";
import { clock } from "../protocols/call.ts";
import {
  clearInterval,
  clearTimeout,
  setImmediate,
  setInterval,
  setTimeout,
} from "../protocols/net/timers.ts";
import { BesideSteps } from "./beside-steps.ts";
import type { CompiledStep, CompiledWorkflow } from "./compiled.ts";
import type { UserContext } from "./context.ts";
import { type DriverHost, driverOf, type LoadDriver } from "./drivers.ts";
import type { ExecutionHost, ExecutionInputs } from "./execution-inputs.ts";
import type { FeedSupply } from "./feeds.ts";
import { Findings } from "./findings.ts";
import { FlowSteps } from "./flow-steps.ts";
import { recordMetric } from "./iteration-metric.ts";
import type { CoreLag } from "./lag.ts";
import { type IndexLease, ticketLease } from "./leases.ts";
import { Pace } from "./pace.ts";
import { PlanClock } from "./plan-clock.ts";
import { problemOf } from "./problem.ts";
import { provide } from "./provide.ts";
import { type FrameOver, Recorder, type RecorderHost } from "./recorder.ts";
import { Sleeper } from "./sleeper.ts";
import { timeIsUpFault } from "./time-is-up.ts";
import { noticeMs, noticeOf } from "./time-limit.ts";
import { type UserHost, VirtualUser } from "./user.ts";
import { UserIds } from "./user-ids.ts";
import { WaitingUsers } from "./waiting-users.ts";

/** Ten frames per second: the width of a window, and the extra length of a window over totals. */
const FRAME_INTERVAL_MS = 100;
/** An event loop that has not reached its timers for this long is starved by code that never waits. */
const STARVED_MS = 50;

export class Execution implements UserHost, DriverHost<VirtualUser>, RecorderHost {
  readonly workflow: CompiledWorkflow;
  readonly core: number;
  readonly used: Readonly<Record<string, unknown>>;
  readonly recorder: Recorder;
  readonly planned: boolean;
  readonly findings: Findings;
  readonly flowSteps: FlowSteps;
  setup: unknown = undefined;
  readonly observer = null;
  readonly feeds: FeedSupply;
  stopping = false;
  readonly #inputs: ExecutionInputs;
  readonly #host: ExecutionHost;
  readonly #driver: LoadDriver<VirtualUser>;
  readonly #durationMs: number;
  readonly #tickets: IndexLease | null;
  readonly #pace: Pace;
  readonly #users = new Set<VirtualUser>();
  readonly #waiting: WaitingUsers;
  readonly #ids: UserIds;
  readonly #random: Random;
  readonly #sleeper = new Sleeper();
  readonly #last: Record<string, unknown> = {};
  #exhausted = false;
  #failure: Problem | undefined;
  readonly #besideSteps: BesideSteps;
  #abort: AbortController | undefined;
  readonly #clock = new PlanClock();
  #measuredMs = 0;
  #ticker: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #noticeTimer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(inputs: ExecutionInputs, host: ExecutionHost) {
    const { plan, share, warmupMs, workflow } = inputs;
    this.workflow = workflow;
    this.core = inputs.core;
    this.used = inputs.used;
    this.planned = isOpen(plan);
    this.feeds = inputs.feeds;
    this.#inputs = inputs;
    this.#host = host;
    this.findings = new Findings(workflow.definition.name, (line) => host.complain(line));
    if (workflow.flow !== null && plan.kind === "once")
      this.findings.note(
        'it has no load model, so it ran once; write { vus: 10, duration: "30s" }',
      );
    this.#besideSteps = new BesideSteps(workflow.definition, this.findings);
    this.recorder = new Recorder(this.planned, this, workflow.names);
    this.#waiting = new WaitingUsers(this.recorder, this.planned);
    this.flowSteps = new FlowSteps(this.recorder, workflow.definition);
    this.#random = new Random(`${inputs.seed}/${workflow.definition.name}/${shareName(share)}`);
    this.#ids = new UserIds(share);
    const limit = planDurationMs(plan) ?? ("durationMsMax" in plan ? plan.durationMsMax : 0);
    this.#durationMs = warmupMs + limit;
    const shared = inputs.driver === undefined && plan.kind === "shared" ? plan : null;
    this.#tickets = shared === null ? null : ticketLease(shared.iterations, share.count, host);
    const seed = `${inputs.seed}/${workflow.definition.name}/arrivals`;
    this.#driver = inputs.driver ?? driverOf(plan, { share, warmupMs, seed }, this);
    this.#pace = new Pace(workflow.definition.pace, plan, share);
    if (this.planned && this.#pace.rests)
      this.findings.note("think and pacing are without effect where a rate begins the iterations");
  }

  get seed(): string {
    return this.#inputs.seed;
  }

  readonly parts: readonly Execution[] = [this];

  get users(): number {
    return this.#users.size;
  }

  get activeUsers(): number {
    return this.#ended ? 0 : this.#driver.active;
  }

  get load(): LoadDriver<VirtualUser> {
    return this.#driver;
  }

  get lag(): CoreLag {
    return this.#inputs.lag;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  /** `planMs`: plan time that has already passed; its arrivals are not made up for. */
  start(setup: unknown, planMs: number, now = clock()): void {
    if (this.stopping) return;
    this.setup = deepFreeze(setup);
    this.lag.start({
      lagged: (ms, isOwn) => this.recorder.lagged(ms, isOwn),
      stoodStill: (ms) => this.#stoodStill(ms),
    });
    this.#clock.start(now - planMs);
    this.recorder.beginAt(now);
    this.#clockMoved(false);
    this.#tickets?.prefetch();
    this.feeds.prefetch();
    this.#driver.begin(now);
    this.#driver.tick(now);
    this.#ticker = setInterval(() => this.#tick(), FRAME_INTERVAL_MS);
    this.#armEnd();
  }

  #tick(): void {
    const now = clock();
    this.#driver.tick(now);
    if (this.recorder.isFrameDue()) this.#host.frame();
  }

  #armEnd(): void {
    clearTimeout(this.#endTimer);
    const left = this.#durationMs - this.planMs(clock());
    // Timers are limited to 2^31 ms and may fire a millisecond early: then it is armed again.
    this.#endTimer = setTimeout(
      () => (this.planMs(clock()) < this.#durationMs ? this.#armEnd() : this.#timeIsUp()),
      Math.min(Math.max(1, left), 2e9),
    );
  }

  #timeIsUp(): void {
    const fault = timeIsUpFault(this.#inputs.plan);
    if (fault !== null) this.findings.fault(fault);
    this.stop();
  }

  get paused(): boolean {
    return this.#clock.paused;
  }

  planMs(now: number): number {
    return this.#clock.planMs(now);
  }

  clockAt(planMs: number): number {
    return this.#clock.clockAt(planMs);
  }

  /** A debugger stopped the process: the plan resumes where it was. */
  #stoodStill(ms: number): void {
    if (this.paused || this.stopping) return;
    const measured = this.recorder.measures(clock() - ms);
    this.#clock.stoodStill(ms);
    this.#clockMoved(measured);
  }

  #clockMoved(measured: boolean): void {
    if (!measured) this.recorder.measureFrom(this.clockAt(this.#inputs.warmupMs));
    this.recorder.measureUntil(this.clockAt(this.#durationMs));
  }

  measuredMs(at: number): number {
    return this.planMs(at) - this.#inputs.warmupMs;
  }

  clockAtMeasured(ms: number): number {
    return this.clockAt(ms + this.#inputs.warmupMs);
  }

  frame(over: FrameOver = "window"): Uint8Array {
    const now = clock();
    const measured = this.measuredMs(now);
    if (!this.stopping) this.#measuredMs = Math.max(0, measured);
    const { missed, target } = this.#driver;
    const times = { measuredMs: this.#measuredMs, warmingUp: measured < 0 };
    const arrivalsWaiting = missed + this.#waiting.arrivals;
    return this.recorder.frame({ ...times, target, arrivalsWaiting }, now, over);
  }

  pause(now = clock()): void {
    if (this.paused || this.stopping) return;
    this.#clock.pause(now);
    clearTimeout(this.#endTimer);
  }

  resume(now = clock()): void {
    if (!this.paused) return;
    const measured = this.planMs(now) >= this.#inputs.warmupMs;
    this.#clock.resume(now);
    this.#clockMoved(measured);
    this.#armEnd();
    this.#resumeWaiting();
    this.#driver.resume(now);
  }

  scale(factor: number): void {
    if (!this.stopping) this.#driver.scale(factor, clock());
  }

  level(load: number): void {
    if (!this.stopping) this.#driver.level(load, clock());
  }

  /** Begins no new step; what is under way may finish within the graceful stop. */
  stop(): void {
    if (this.stopping) return;
    if (!this.#clock.started) {
      // Setup may be under way; no user will follow it.
      this.stopping = true;
      return;
    }
    if (this.paused) this.resume();
    const now = clock();
    this.recorder.measureUntil(Math.min(now, this.clockAt(this.#durationMs)));
    this.#measuredMs = Math.max(
      0,
      Math.min(this.planMs(now), this.#durationMs) - this.#inputs.warmupMs,
    );
    this.#driver.serveDue(now);
    this.stopping = true;
    clearTimeout(this.#endTimer);
    this.#driver.stop(now);
    if (this.workflow.flow?.finish !== "iteration") this.#sleeper.wakeAll();
    const { gracefulStopMs } = this.#inputs;
    const notice = gracefulStopMs - noticeMs(gracefulStopMs);
    this.#noticeTimer = setTimeout(() => this.#giveNotice(), notice);
    this.#endTimer = setTimeout(() => this.#abortAll(), gracefulStopMs);
    this.#waiting.giveUp(now);
    // After the timers: the last user to leave ends the execution and clears them.
    for (const user of [...this.#users]) if (!user.running) this.retire(user);
    this.#checkEnd();
  }

  /** Notifies code under way that it will be cut off, so that it can save what it has. */
  #giveNotice(): void {
    const reason = noticeOf("the graceful stop", this.#inputs.gracefulStopMs);
    this.#abort?.abort(reason);
    for (const user of this.#users) user.context.limit?.abort(reason);
  }

  #abortAll(): void {
    this.#giveNotice();
    this.#sleeper.wakeAll();
    for (const user of [...this.#users]) {
      if (this.workflow.tearsUsersDown) this.findings.notTornDown(user.doing);
      user.abort();
      this.#users.delete(user);
    }
    this.#checkEnd();
  }

  newUser(): VirtualUser {
    const user = new VirtualUser(this.#ids.take(), this);
    user.ready = !this.workflow.setsUsersUp;
    const { driver, plan } = this.#inputs;
    if (driver === undefined && plan.kind === "perUser") this.feeds.expect(plan.iterations);
    this.#users.add(user);
    return user;
  }

  /** Takes a ticket and rows where the workflow has them, sets the user up, and begins. */
  beginIteration(user: VirtualUser, intendedAt: number, now: number): void {
    if (this.stopping) {
      this.retire(user);
      return;
    }
    if (this.paused) {
      this.#waiting.park(user, intendedAt);
      return;
    }
    const wait = this.#pace.throttled ? this.#pace.throttleMs(user, this.planMs(now)) : 0;
    if (wait > 0) {
      this.#beginLater(user, wait);
      return;
    }
    if (this.#tickets !== null && user.ticket === null) {
      const ticket = this.#tickets.take();
      if (ticket === "exhausted") this.retire(user);
      else if (ticket === "wait") this.#waiting.waitForRow(user, intendedAt, now);
      if (typeof ticket !== "number") return;
      user.ticket = ticket;
    }
    if (this.feeds.size > 0 && !this.#takeRows(user, intendedAt, now)) return;
    this.#waiting.begins(user, intendedAt, now);
    user.ticket = null;
    user.admitted = false;
    user.iteration.arrive(intendedAt, now);
    if (user.ready) user.begin(now);
    else void this.#setUpUser(user);
  }

  #takeRows(user: VirtualUser, intendedAt: number, now: number): boolean {
    const taken = this.feeds.takeFor(user, this.#random);
    if (taken === "wait") this.#waiting.waitForRow(user, intendedAt, now);
    else if (taken !== "ready") this.#withoutRow(user, intendedAt, taken, now);
    return taken === "ready";
  }

  #withoutRow(user: VirtualUser, dueAt: number, why: "exhausted" | "beyond", now: number): void {
    this.findings.note('a feed of order "once" ran out of rows');
    // Other users may have rows of their own; in a mix the shares could not be kept.
    const isAlone = why === "beyond" && this.#inputs.driver === undefined;
    if (isAlone) this.#waiting.neverBegins(dueAt, now);
    else this.#driver.exhausted?.(now);
    this.#exhausted ||= !isAlone;
    this.retire(user);
  }

  async #setUpUser(user: VirtualUser): Promise<void> {
    user.running = true;
    user.settingUp = true;
    await this.#besideSteps.setUp(user);
    user.ready = true;
    user.running = false;
    user.settingUp = false;
    if (user.session.closed) return;
    user.iteration.setUp(clock());
    if (!this.stopping) user.begin(clock());
    else {
      user.iteration.neverBegan(clock());
      this.retire(user);
    }
  }

  leaseGranted(name: string, from: number, to: number, last: boolean): void {
    if (name === ITERATIONS_LEASE) this.#tickets?.granted(from, to, last);
    this.feeds.granted(name, from, to, last);
    this.#resumeWaiting();
  }

  #resumeWaiting(): void {
    for (const [user, intendedAt] of this.#waiting.takeAll()) {
      const now = clock();
      this.beginIteration(user, this.planned ? intendedAt : now, now);
    }
  }

  iterationDone(user: VirtualUser, now: number): void {
    if (this.stopping) {
      this.retire(user);
      return;
    }
    // Functions that never wait would starve the timers: yield to the loop.
    if (now - this.lag.lastTurnAt > STARVED_MS) {
      setImmediate(() => this.#continue(user));
      return;
    }
    this.#driver.iterationDone(user, now);
  }

  #continue(user: VirtualUser): void {
    if (this.stopping) this.retire(user);
    else this.#driver.iterationDone(user, clock());
  }

  rest(user: VirtualUser, now: number): void {
    const pause = this.#pace.restMs(user, now, this.#random);
    if (pause <= 0) this.beginIteration(user, now, now);
    else this.#beginLater(user, pause);
  }

  #beginLater(user: VirtualUser, ms: number): void {
    user.timer = setTimeout(() => {
      const at = clock();
      if (user.retiring) this.#driver.iterationDone(user, at);
      else this.beginIteration(user, at, at);
    }, ms);
  }

  /** Ends a user after its last iteration; a ramp that rises again makes a new one. */
  retire(user: VirtualUser): void {
    clearTimeout(user.timer);
    this.#waiting.leave(user);
    if (!this.#users.has(user) || user.leaving) return;
    if (user.ready && this.workflow.tearsUsersDown) {
      user.leaving = true;
      user.running = true;
      void this.#besideSteps.tearDown(user).then(() => this.#removeUser(user));
    } else this.#removeUser(user);
  }

  #removeUser(user: VirtualUser): void {
    user.leave();
    if (this.#users.delete(user)) this.#ids.giveBack(user.id);
    this.#checkEnd();
  }

  /** Finishes when no user is left that could begin anything. */
  #checkEnd(): void {
    if (this.#ended || this.#users.size > 0) return;
    const { driver, plan } = this.#inputs;
    const openEnded = driver !== undefined || isOpenEnded(plan);
    if (!this.stopping && openEnded && this.planMs(clock()) < this.#durationMs && !this.#exhausted)
      return;
    this.#ended = true;
    this.#freeze();
    clearInterval(this.#ticker);
    for (const timer of [this.#endTimer, this.#noticeTimer]) clearTimeout(timer);
    this.#driver.stop(clock());
    if (this.#failure === undefined)
      this.#host.finished({
        provided: this.#provided(),
        notes: this.findings.notes,
        counts: this.findings.counted.list,
        faults: this.findings.faults,
      });
    else this.#host.failed(this.#failure);
    this.lag.stop();
  }

  /** Ends the measured time. */
  #freeze(): void {
    if (this.stopping) return;
    this.#measuredMs = Math.max(0, this.planMs(clock()) - this.#inputs.warmupMs);
    this.stopping = true;
  }

  #provided(): Record<string, unknown> {
    const { definition } = this.workflow;
    const seen = { last: this.#last, setup: this.setup };
    return provide(definition, seen, (key, error) => {
      this.findings.failed(`provide "${key}"`, `provide "${key}" threw`, error);
    });
  }

  arrivalMissed = (dueAt: number, now: number): void => this.recorder.waited(dueAt, now);

  threw(step: CompiledStep, error: unknown): void {
    const what = `${step.index < 0 ? "action" : "step"} "${step.name}" threw`;
    this.findings.complain(what, error);
    if (this.#inputs.plan.kind !== "once") return;
    const problem = problemOf(error);
    this.#failure ??= { ...problem, message: `${what}: ${problem.message}` };
  }

  /** The measurements would be meaningless: ends at once, as failed. */
  notMeasured(_step: CompiledStep, error: Error): void {
    this.#failure ??= { ...problemOf(error), mistake: true };
    this.stop();
  }

  recordMetric(at: number, context: UserContext): void {
    const metric = this.workflow.metrics[at];
    if (metric !== undefined) recordMetric(metric, context, this.recorder, this.findings);
  }

  metricRefused(name: string): void {
    this.findings.note(`metric "${name}" was given values below 0 or no numbers: left out`);
  }

  keepLast(step: CompiledStep, result: unknown): void {
    if (this.workflow.definition.provides.length > 0) this.#last[step.name] = result;
  }

  readonly abort = (reason: string): void => this.#host.abort(reason);

  readonly sleep = (ms: number): Promise<void> => this.#sleeper.sleep(ms);
}
