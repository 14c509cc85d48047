/**
 * Compares every metric of a run with a model that knows only the server's log, the plan, and what the workflow's own
 * functions did. Counts must be equal. Time-dependent values must lie between the counts a little before and a little
 * after: both sides share one event loop, and the log records how long its turns took.
 */

import type { StepSummary, WorkflowSummary } from "../../src/core/load/results/model.ts";
import { arrivalsOf, dueMs, HANGING_STOP_MS, type Part, ROWS_FEW, WINDOW_MS } from "./grammar.ts";
import { FAILURES_THRESHOLD, type Ran, THROWS } from "./run.ts";
import type { Logged } from "./target.ts";

/** Microseconds are cut off. */
const ROUNDING_MS = 0.01;
/** Rates have three digits behind the point. */
const RATE_ROUNDING = 0.000_5;
/**
 * When turns of the loop are this long, connections wait for many of them before they are accepted, and the log does
 * not know since when. Journeys know: they read the clock themselves.
 */
const STARVED_MS = 300;

/** Differences as texts; none when every metric is right. */
export function differences(ran: Ran): string[] {
  const found: string[] = [];
  for (const part of ran.combination.workflows) {
    const workflow = ran.summary.workflows.find(({ name }) => name === part.name);
    const beganAt = ran.target.began.get(part.name);
    const early =
      ran.combination.stopAfterMs !== null || ran.summary.thresholds.some((one) => one.aborted);
    if (workflow === undefined || beganAt === undefined || workflow.status !== "completed") {
      if (!early) found.push(`${part.name}: ${workflow?.status}, ${workflow?.error}`);
      if (workflow === undefined || beganAt === undefined) continue;
    }
    new Comparison(ran, part, workflow, beganAt, (text) =>
      found.push(`${part.name}: ${text}`),
    ).all();
  }
  return found;
}

class Comparison {
  readonly #ran: Ran;
  readonly #part: Part;
  readonly #workflow: WorkflowSummary;
  readonly #beganAt: number;
  readonly #report: (text: string) => void;
  /** Tolerance between both sides, in milliseconds. */
  readonly #edgeMs: number;
  readonly #measuredFrom: number;
  readonly #measuredTo: number;
  readonly #threw: number;

  constructor(
    ran: Ran,
    part: Part,
    workflow: WorkflowSummary,
    beganAt: number,
    report: (text: string) => void,
  ) {
    this.#ran = ran;
    this.#part = part;
    this.#workflow = workflow;
    this.#beganAt = beganAt;
    this.#report = report;
    this.#edgeMs = ran.target.apartMs();
    this.#measuredFrom = beganAt + part.warmupMs;
    this.#measuredTo = this.#measuredFrom + workflow.elapsedSeconds * 1_000;
    this.#threw = ran.threw.get(part.name) ?? 0;
  }

  all(): void {
    this.#sent();
    this.#durations();
    if (this.#part.hangs || this.#part.hangsFromMs !== null) this.#unanswered();
    // A busy machine may cut off others than those that hang.
    if (this.#part.hangs) return;
    for (const step of this.#workflow.steps) this.#step(step);
    if (this.#part.hangsFromMs !== null) {
      this.#arrivals();
      return;
    }
    this.#iterations();
    this.#rows();
    this.#aside();
    this.#arrivals();
    for (const step of this.#workflow.steps) if (this.#isFirst(step.name)) this.#firstLatency(step);
    this.#window();
  }

  #equal(what: string, actual: number, expected: number): void {
    if (actual !== expected) this.#report(`${what} is ${actual}, should be ${expected}`);
  }

  #between(what: string, actual: number, low: number, high: number): void {
    if (actual < low || actual > high)
      this.#report(`${what} is ${actual}, should be from ${low} to ${high}`);
  }

  #logOf(step: string): Logged[] {
    const { log } = this.#ran.target;
    return log.filter((entry) => entry.workflow === this.#part.name && entry.step === step);
  }

  get #lastName(): string {
    return `s${this.#part.layers - 1}`;
  }

  /** Whether the step starts an iteration, alone or in parallel with others. */
  #isFirst(step: string): boolean {
    return step === "s0" || step.startsWith("p");
  }

  /** Compares everything the server received, from any sender, and users that were cut off before they could leave. */
  #sent(): void {
    const { log } = this.#ran.target;
    const own = log.filter(({ workflow }) => workflow === this.#part.name);
    this.#equal("sent in all", this.#workflow.totals?.sent ?? 0, own.length);
    const left = this.#workflow.aside?.find(({ tags }) => tags["phase"] === "userTeardown");
    this.#equal("calls of userTeardown", left?.sent ?? 0, this.#logOf("leave").length);
    // A user that hangs in a step's call may have been cut off in it, and does not leave.
    if (!this.#part.userTeardown || this.#part.hangsFromMs !== null) return;
    const note = this.#ran.summary.notes.find((text) =>
      text.startsWith(`"${this.#part.name}": userTeardown of `),
    );
    const cutOff = Number(/userTeardown of (\d+) users/.exec(note ?? "")?.[1] ?? 0);
    // A busy machine may cut off other users than those that hang: count all that did not leave.
    const { load } = this.#part;
    const users = load.kind === "closed" ? Math.max(load.vus, load.peak ?? 0) : 0;
    const stayed = Math.max(0, users - this.#logOf("leave").length);
    const hung = this.#logOf("hang").length;
    this.#between("users that did not leave", cutOff, hung, Math.max(hung, stayed));
  }

  /** Whole iterations, and those only. */
  #durations(): void {
    const { completed, durationMs, ended = 0, failed = 0 } = this.#workflow.iterations;
    this.#equal("durations", durationMs?.count ?? 0, completed + ended + failed);
  }

  /** Calls that the server never answered are failures, unless they were younger than the step's others. */
  #unanswered(): void {
    if (this.#part.warmupMs > 0) return;
    let all = 0;
    for (const step of this.#workflow.steps) {
      const hung = this.#logOf(step.name).filter(({ answeredAt }) => Number.isNaN(answeredAt));
      const unanswered = step.errors["unanswered"] ?? 0;
      all += unanswered;
      // Each waited for the whole graceful stop at least.
      const typical = (step.okLatencyMs?.max ?? 0) < HANGING_STOP_MS - this.#edgeMs;
      const cut = unanswered + (typical ? 0 : step.interrupted);
      // Responses at the end of the graceful stop may not have been received.
      this.#between(
        `${step.name} unanswered`,
        cut,
        hung.length,
        hung.length + this.#heardLate(step),
      );
    }
    const requests = this.#workflow.steps.reduce((sum, step) => sum + step.requests, 0);
    const gate = this.#ran.summary.thresholds.find(
      ({ expression, workflow }) =>
        workflow === this.#part.name && expression.startsWith("unanswered.rate"),
    );
    if (all > 0.01 * requests && gate?.passed !== false)
      this.#report(`${all} of ${requests} were never answered, and the run passes`);
  }

  /** Answered when the cores had cut everything off. */
  #heardLate({ name }: StepSummary): number {
    const end = this.#measuredTo + HANGING_STOP_MS - this.#edgeMs;
    return this.#logOf(name).filter(({ answeredAt }) => answeredAt > end).length;
  }

  /** How often its code threw. */
  #thrownBy({ name }: StepSummary): number {
    const where = this.#ran.form === "flow" ? THROWS : this.#lastName;
    return name === where ? this.#threw : 0;
  }

  #step(step: StepSummary): void {
    const log = this.#logOf(step.name);
    const exceptions = step.errors["exception"] ?? 0;
    const sent = step.requests - exceptions;
    this.#equal(`${step.name} latencies`, step.latencyMs.count, sent);
    this.#equal(`${step.name} ok + failed`, step.ok + step.failed, step.requests);
    if (this.#part.hangsFromMs === null)
      this.#equal(`${step.name} interrupted`, step.interrupted, 0);
    if (this.#part.warmupMs === 0) {
      this.#equal(`${step.name} sent`, sent + step.interrupted, log.length);
      const answered = log.filter(({ answeredAt, status }) => status === 200 && answeredAt > 0);
      this.#between(
        `${step.name} ok`,
        step.ok,
        answered.length - this.#heardLate(step),
        answered.length,
      );
      this.#equal(`${step.name} exceptions`, exceptions, this.#thrownBy(step));
    } else if (this.#part.load.kind === "closed" || !this.#isFirst(step.name)) {
      const since = (moment: number): number =>
        log.filter(({ receivedAt }) => receivedAt >= moment).length;
      const [low, high] = [
        since(this.#measuredFrom + this.#edgeMs),
        since(this.#measuredFrom - this.#edgeMs),
      ];
      this.#between(`${step.name} sent`, sent, low, high);
    }
    this.#rate(step, log, this.#thrownBy(step));
    this.#series(step, log, this.#thrownBy(step));
  }

  /** Compares the finished calls at the end of each window. */
  #series({ name, series }: StepSummary, log: readonly Logged[], threw: number): void {
    const by = (moment: number): number =>
      log.filter(({ answeredAt }) => answeredAt > this.#measuredFrom && answeredAt <= moment)
        .length;
    const { startedAtSeconds } = this.#workflow;
    let ended = 0;
    for (const [at, requests] of series.requests.entries()) {
      ended += requests;
      const beginsMs = ((series.atSeconds[at] ?? 0) - startedAtSeconds) * 1_000;
      const until = Math.min(this.#beganAt + beginsMs + series.windowMs, this.#measuredTo);
      const early = this.#part.warmupMs === 0 ? 0 : log.length - by(Number.POSITIVE_INFINITY);
      const [low, high] = [by(until - this.#edgeMs) - early, by(until + this.#edgeMs)];
      this.#between(`${name} by window ${at}`, ended, low, high + threw + early);
    }
  }

  /** Compares responses inside the measured time, over that time; the windows add up to it. */
  #rate(step: StepSummary, log: readonly Logged[], threw: number): void {
    const inside = step.ratePerSecond * this.#workflow.elapsedSeconds;
    const answered = (edge: number): number =>
      log.filter(
        ({ answeredAt }) =>
          answeredAt > this.#measuredFrom - edge && answeredAt < this.#measuredTo + edge,
      ).length;
    this.#between(
      `${step.name} answered inside`,
      Math.round(inside),
      answered(-this.#edgeMs),
      answered(this.#edgeMs) + threw,
    );
    const windows = step.series.requests.reduce((sum, count) => sum + count, 0);
    if (Math.abs(windows - inside) > RATE_ROUNDING * this.#workflow.elapsedSeconds + 1e-6)
      this.#report(`${step.name} windows add up to ${windows}, the rate to ${inside}`);
    const failed = step.series.failed.reduce((sum, count) => sum + count, 0);
    if (failed > windows) this.#report(`${step.name} windows have more failures than calls`);
  }

  #iterations(): void {
    const { checks, iterations, steps } = this.#workflow;
    const last = steps.find(({ name }) => name === this.#lastName);
    const [check] = checks;
    if (last === undefined || check === undefined) return;
    const checked = check.passed + check.failed;
    // A layer, and calls side by side, are due a hair apart, on both sides of the warm-up's end.
    const apart =
      this.#ran.form === "layers" || (this.#part.parallel > 1 && this.#part.layers === 1);
    const hair = this.#part.warmupMs > 0 && apart ? usersOf(this.#part) : 0;
    this.#between(
      "checks",
      checked,
      last.requests - hair - this.#thrownEarly,
      last.requests + hair,
    );
    if (this.#part.warmupMs === 0) this.#equal("iterations", iterations.completed, last.requests);
    const { load } = this.#part;
    const failed = iterations.failed ?? 0;
    if (this.#part.warmupMs === 0)
      this.#equal("failed iterations", failed, this.#ran.form === "flow" ? this.#threw : 0);
    if (this.#whole && load.kind === "shared")
      this.#equal("iterations", iterations.completed + failed, load.iterations);
    if (this.#whole && load.kind === "perUser")
      this.#equal("iterations", iterations.completed + failed, load.iterations * load.vus);
  }

  /** The body of a flow that throws makes no check of its calls. */
  get #thrownEarly(): number {
    return this.#part.warmupMs > 0 && this.#ran.form === "flow" ? this.#threw : 0;
  }

  /** A row of a user is its own in all iterations; one of order "once" is used once, as long as there are any. */
  #rows(): void {
    const { load, name, rows } = this.#part;
    const used = this.#ran.rows.filter(({ workflow }) => workflow === name);
    if (rows === "none") return;
    const { completed, failed = 0 } = this.#workflow.iterations;
    const ofUsers = new Map(used.map(({ number, user }) => [user, number]));
    if (rows === "user") {
      const other = used.find(({ number, user }) => ofUsers.get(user) !== number);
      if (other !== undefined) this.#report(`user ${other.user} had more than one row`);
    }
    const numbers = rows === "user" ? [...ofUsers.values()] : used.map(({ number }) => number);
    if (new Set(numbers).size !== numbers.length) this.#report(`a row of ${rows} was used twice`);
    if (rows !== "few" || this.#part.warmupMs > 0) return;
    this.#between("iterations with a row", completed + failed, 0, ROWS_FEW);
    // A core may end with rows that it has taken and no iteration needs.
    if (!this.#untouched || this.#ran.combination.cores > 1) return;
    if (load.kind === "shared" || load.kind === "perUser") {
      const planned = load.iterations * (load.kind === "perUser" ? load.vus : 1);
      this.#equal("iterations with a row", completed + failed, Math.min(planned, ROWS_FEW));
    }
  }

  /** Calls of `userSetup` are counted apart, and only there. */
  #aside(): void {
    if (this.#ran.form !== "flow" || this.#part.userSetup === "none") return;
    const setup = this.#workflow.aside?.find(({ name }) => name === "setup");
    this.#equal("calls of userSetup", setup?.sent ?? 0, this.#logOf("setup").length);
  }

  /** Whether the run was not stopped early and had rows to the end. */
  get #whole(): boolean {
    return this.#untouched && this.#part.rows !== "few";
  }

  get #untouched(): boolean {
    const aborted = this.#ran.summary.thresholds.some((threshold) => threshold.aborted);
    return this.#ran.combination.stopAfterMs === null && !aborted;
  }

  #arrivals(): void {
    const { load } = this.#part;
    const { arrivals, elapsedSeconds, iterations } = this.#workflow;
    if (this.#whole && (load.kind === "open" || load.kind === "closed"))
      this.#equal("measured time", elapsedSeconds, load.durationMs / 1_000);
    if (load.kind !== "open" || arrivals === null) return;
    const { completed, ended = 0, failed = 0, interrupted } = iterations;
    const outcomes = completed + ended + failed + interrupted;
    this.#equal("outcomes of arrivals", outcomes, arrivals.started);
    this.#equal("send lags", arrivals.sendLagMs.count, arrivals.started);
    const all = arrivals.started + arrivals.missed;
    if (this.#whole) this.#equal("arrivals", all, arrivalsOf(load));
  }

  /** The mean latency of the first calls, from the planned moments to the server's answers. */
  #firstLatency(step: StepSummary): void {
    const { load, pauseFirstMs, throwEvery, layers, warmupMs } = this.#part;
    if (step.requests === 0 || warmupMs > 0) return;
    if (throwEvery > 0 && layers === 1) return;
    const log = this.#logOf(step.name);
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const { target } = this.#ran;
    const service = mean(log.map(({ answeredAt, receivedAt }) => answeredAt - receivedAt));
    // Each call may have been seen as late as the turns of the loop around it were long.
    const apart = mean(log.map((call) => target.apartMs(call.receivedAt, call.answeredAt)));
    const { name } = step;
    const most = this.#edgeMs > STARVED_MS ? Number.POSITIVE_INFINITY : service + apart;
    this.#between(`${name} mean service`, step.serviceMs.mean, service - ROUNDING_MS, most);
    const { arrivals } = this.#workflow;
    if (load.kind !== "open" || arrivals === null || !this.#whole) return;
    if (arrivals.missed > 0 || arrivals.started !== step.requests) return;
    const due = mean(log.map((_, j) => this.#beganAt + dueMs(load, j) + pauseFirstMs));
    const expected = mean(log.map(({ answeredAt }) => answeredAt)) - due;
    // The first time in the log is later than that of the plan, never earlier. Further cores may have begun a turn
    // behind it.
    const behind =
      this.#ran.combination.cores === 1 ? 0 : target.apartMs(this.#beganAt, this.#beganAt);
    const low = expected - behind - ROUNDING_MS;
    this.#between(
      `${name} mean latency`,
      step.latencyMs.mean,
      low,
      expected + apart + this.#edgeMs,
    );
  }

  /** The worst stretch by the log; what is neither clearly bad nor clearly good says nothing. */
  #window(): void {
    const outcome = this.#ran.summary.thresholds.find(
      ({ expression, workflow }) =>
        expression === FAILURES_THRESHOLD && workflow === this.#part.name,
    );
    if (outcome === undefined || this.#workflow.elapsedSeconds * 1_000 < WINDOW_MS) return;
    const log = this.#workflow.steps.flatMap(({ name }) => this.#logOf(name));
    const measured = log.filter(
      ({ receivedAt }) => receivedAt >= this.#measuredFrom - this.#edgeMs,
    );
    const anyFailed = measured.some(({ status }) => status !== 200);
    // A run that others ended may have measured nothing of this one.
    const anyMeasured = log.some(
      ({ answeredAt, receivedAt }) =>
        receivedAt > this.#measuredFrom + this.#edgeMs &&
        answeredAt < this.#measuredTo - this.#edgeMs,
    );
    if (anyMeasured && !anyFailed && this.#threw === 0 && outcome.actual !== 0)
      this.#report(`nothing failed, and ${FAILURES_THRESHOLD} is ${outcome.actualText}`);
    // Calls of an open model may be due in the warm-up and sent later: the log cannot distinguish them.
    const certain = this.#part.warmupMs === 0 || this.#part.load.kind === "closed";
    if (certain && this.#worstShare(log) > 0.2 && outcome.passed)
      this.#report(`many failed, and ${FAILURES_THRESHOLD} held: ${outcome.actualText}`);
  }

  /** Responses at the very end may have been received after it. */
  #worstShare(log: readonly Logged[]): number {
    let worst = 0;
    const last = this.#measuredTo - this.#edgeMs - WINDOW_MS;
    for (let from = this.#measuredFrom; from <= last; from += 20) {
      const inside = log.filter(
        ({ answeredAt, receivedAt }) =>
          answeredAt >= from &&
          answeredAt < from + WINDOW_MS &&
          receivedAt > this.#measuredFrom + this.#edgeMs,
      );
      const failed = inside.filter(({ status }) => status !== 200).length;
      if (inside.length > 0) worst = Math.max(worst, failed / inside.length);
    }
    return worst;
  }
}

function usersOf({ load }: Part): number {
  return load.kind === "open" ? load.maxVus : load.vus;
}
