/**
 * Load models: which user begins an iteration, and when. Each driver schedules the users of one core; the execution
 * around it knows how to begin an iteration.
 *
 *   UserDriver       closed: as many users as the plan asks for at this time, each looping
 *   ArrivalDriver    open: iterations begin at planned times, on any free user
 *   IterationDriver  a number of iterations, shared or per user
 */

import { assertNever } from "../core/base/assert.ts";
import { provision } from "../core/load/job/provision.ts";
import { ArrivalClock } from "../core/load/plan/arrivals.ts";
import {
  type LoadPlan,
  type Share,
  type Stage,
  shareOfUsers,
  targetRate,
  targetUsers,
} from "../core/load/plan/load.ts";
import { clearTimeout, setImmediate, setTimeout } from "../protocols/net/timers.ts";
import { MOMENT_SLACK_MS } from "./recorder.ts";

/** Performs iterations one after the other: a virtual user, or a slot of a mix. */
export interface Driven {
  /** Ends after this iteration: the plan asks for fewer users. */
  retiring: boolean;
  /** Counts the iterations done so far. */
  readonly context: { readonly iteration: number };
}

export interface DriverHost<User extends Driven> {
  /** Users of this core that have not finished. */
  readonly users: number;
  /** Milliseconds of plan time: since the start, without pauses. */
  planMs(now: number): number;
  /** Clock time of a plan time. */
  clockAt(planMs: number): number;
  readonly stopping: boolean;
  readonly paused: boolean;
  newUser(): User;
  /** Acquires what the iteration needs (setup, ticket, rows) and begins it; may take a while. */
  beginIteration(user: User, intendedAt: number, now: number): void;
  /** Think time and pacing, then `beginIteration`. */
  rest(user: User, now: number): void;
  /** Ends a user after its last iteration. */
  retire(user: User): void;
  /** Records an arrival that was due when the plan ended and never began. */
  arrivalMissed(dueAt: number, now: number): void;
}

export interface LoadDriver<User extends Driven> {
  /** Target of the plan for this core now: users or arrivals per second. */
  readonly target: number;
  readonly missed: number;
  /** Users taking part now, including those between two iterations. */
  readonly active: number;
  begin(now: number): void;
  tick(now: number): void;
  /** Before the stop: begins what was due up to now, instead of counting it as missed. */
  serveDue(now: number): void;
  iterationDone(user: User, now: number): void;
  scale(factor: number, now: number): void;
  /** Moves a search to another load, relative to the initial one. */
  level(load: number, now: number): void;
  resume(now: number): void;
  stop(now: number): void;
  /** A feed has no rows left: nothing more is due. */
  exhausted?(now: number): void;
}

interface DriverInputs {
  readonly share: Share;
  readonly warmupMs: number;
  /** Seed of random arrivals; the same on all cores. */
  readonly seed: string;
}

/** The driver of a plan on one core. */
export function driverOf<User extends Driven>(
  plan: LoadPlan,
  inputs: DriverInputs,
  host: DriverHost<User>,
): LoadDriver<User> {
  const { share } = inputs;
  const users = share.users[share.index] ?? 0;
  switch (plan.kind) {
    case "vus":
      return new UserDriver(warmed(plan.stages, targetUsers(plan, 0), inputs), share, host);
    case "rate": {
      const stages = warmed(plan.stages, targetRate(plan, 0), inputs);
      return arrivalDriver(stages, plan.vusMax, plan.poisson === true, inputs, host);
    }
    case "search": {
      const { durationMsMax: durationMs, from } = plan;
      const stages = warmed([{ durationMs, from, to: from }], from, inputs);
      if (plan.of === "vus") return new UserDriver(stages, share, host);
      return arrivalDriver(stages, plan.vusMax, false, inputs, host);
    }
    case "shared":
      return new IterationDriver(users, null, host);
    case "perUser":
      return new IterationDriver(users, plan.iterations, host);
    case "once":
      return new IterationDriver(1, 1, host);
    default:
      return assertNever(plan);
  }
}

/** Prepends the warm-up as a first stage at the initial load of the plan. */
function warmed(
  stages: readonly Stage[],
  first: number,
  { warmupMs }: DriverInputs,
): readonly Stage[] {
  return warmupMs > 0 ? [{ durationMs: warmupMs, from: first, to: first }, ...stages] : stages;
}

function arrivalDriver<User extends Driven>(
  stages: readonly Stage[],
  vusMax: number,
  poisson: boolean,
  { seed, share, warmupMs }: DriverInputs,
  host: DriverHost<User>,
): LoadDriver<User> {
  const usersMax = provision(vusMax, share.count)[share.index] ?? 1;
  // The cores of one place draw the same times and keep their own; other places draw others.
  const drawn = share.part === undefined ? seed : `${seed}/${share.part.index}`;
  const arrivals = new ArrivalClock(stages, share, poisson ? drawn : null);
  return new ArrivalDriver(stages, arrivals, { warmupMs, usersMax, cores: share.count }, host);
}

/** Users start in batches, so that thousands of them do not connect in one turn of the loop. */
const USERS_STARTED_PER_TURN = 64;

class UserDriver<User extends Driven> implements LoadDriver<User> {
  target = 0;
  readonly missed = 0;
  readonly #host: DriverHost<User>;
  readonly #plan: LoadPlan;
  readonly #share: Share;
  readonly #active = new Set<User>();
  #factor = 1;
  #starting = false;
  /** Active users that are retiring. */
  #retiring = 0;

  constructor(stages: readonly Stage[], share: Share, host: DriverHost<User>) {
    this.#plan = { kind: "vus", stages };
    this.#share = share;
    this.#host = host;
  }

  get active(): number {
    return this.#active.size;
  }

  begin(now: number): void {
    this.tick(now);
  }

  tick(now: number): void {
    const planned = targetUsers(this.#plan, this.#host.planMs(now)) * this.#factor;
    this.target = shareOfUsers(Math.round(planned), this.#share);
    if (!this.#starting) this.#startSome();
    let surplus = Math.max(0, this.#active.size - this.target);
    if (surplus === this.#retiring) return;
    this.#retiring = surplus;
    // Too many users: the newest retire after their iteration.
    for (const user of [...this.#active].reverse()) user.retiring = surplus-- > 0;
  }

  /** Users loop: nothing is due at the end. */
  serveDue(): void {}

  #startSome(): void {
    this.#starting = false;
    if (this.#host.stopping || this.#host.paused) return;
    const now = performance.now();
    for (let i = 0; i < USERS_STARTED_PER_TURN && this.#active.size < this.target; i++) {
      const user = this.#host.newUser();
      this.#active.add(user);
      this.#host.beginIteration(user, now, now);
    }
    if (this.#active.size >= this.target) return;
    this.#starting = true;
    setImmediate(() => this.#startSome());
  }

  iterationDone(user: User, now: number): void {
    if (user.retiring) {
      this.#retiring--;
      this.#active.delete(user);
      this.#host.retire(user);
    } else this.#host.rest(user, now);
  }

  scale(factor: number, now: number): void {
    this.#factor = factor;
    this.tick(now);
  }

  level(load: number, now: number): void {
    this.#factor = load / targetUsers(this.#plan, 0);
    this.tick(now);
  }

  resume(now: number): void {
    this.tick(now);
  }

  stop(): void {}
}

/** Timers are late by about half a millisecond; arrivals due within this begin at once. */
const ARRIVAL_SLACK_MS = 0.25;

class ArrivalDriver<User extends Driven> implements LoadDriver<User> {
  target = 0;
  missed = 0;
  readonly #host: DriverHost<User>;
  readonly #stages: readonly Stage[];
  readonly #cores: number;
  readonly #arrivals: ArrivalClock;
  readonly #free: User[] = [];
  readonly #usersPlanned: number;
  #usersMax: number;
  #users = 0;
  #factor = 1;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Earlier arrivals belong to the warm-up. */
  readonly #measureFromMs: number;
  /** Measured arrivals dropped when a search moved to another load. */
  #dropped = 0;
  /** A search waits for the iterations in flight: nothing is due until the next level. */
  #halted = false;

  constructor(
    stages: readonly Stage[],
    arrivals: ArrivalClock,
    bounds: { readonly warmupMs: number; readonly usersMax: number; readonly cores: number },
    host: DriverHost<User>,
  ) {
    this.#measureFromMs = bounds.warmupMs;
    this.#usersPlanned = bounds.usersMax;
    this.#usersMax = bounds.usersMax;
    this.#cores = bounds.cores;
    this.#stages = stages;
    this.#arrivals = arrivals;
    this.#host = host;
  }

  get active(): number {
    return this.#users - this.#free.length;
  }

  begin(now: number): void {
    this.#arrivals.skipTo(this.#host.planMs(now));
    this.#serve(now);
  }

  serveDue(now: number): void {
    this.#serve(now);
  }

  tick(now: number): void {
    this.#serve(now);
    const planMs = this.#host.planMs(now);
    const rate = targetRate({ kind: "rate", stages: this.#stages, vusMax: this.#usersMax }, planMs);
    this.target = this.#stopped || this.#halted ? 0 : (rate * this.#factor) / this.#cores;
    if (!this.#stopped) this.missed = this.#missedAt(planMs);
  }

  #missedAt(planMs: number): number {
    if (planMs < this.#measureFromMs) return 0;
    if (this.#halted) return this.#dropped;
    const before =
      this.#measureFromMs === 0 ? 0 : this.#arrivals.overdue(this.#measureFromMs - MOMENT_SLACK_MS);
    return this.#arrivals.overdue(planMs) - before + this.#dropped;
  }

  /** Begins everything that is due while users are free, then waits for the next. */
  #serve(now: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped || this.#halted || this.#host.stopping || this.#host.paused) return;
    let due = this.#arrivals.peek();
    const planMs = this.#host.planMs(now);
    while (due !== null && due <= planMs + ARRIVAL_SLACK_MS) {
      const user = this.#free.pop() ?? this.#addUser();
      // All users are busy: the next free one serves it late, and the lateness is measured.
      if (user === undefined) return;
      this.#arrivals.advance();
      this.#host.beginIteration(user, this.#host.clockAt(due), now);
      due = this.#arrivals.peek();
    }
    if (due === null) return;
    this.#timer = setTimeout(() => this.#serve(performance.now()), Math.max(1, due - planMs));
  }

  #addUser(): User | undefined {
    if (this.#users >= this.#usersMax) return undefined;
    this.#users++;
    return this.#host.newUser();
  }

  iterationDone(user: User, now: number): void {
    if (this.#stopped) {
      this.#host.retire(user);
      return;
    }
    const due = this.#arrivals.peek();
    this.#free.push(user);
    if (due !== null && due <= this.#host.planMs(now)) this.#serve(now);
  }

  scale(factor: number, now: number): void {
    this.#usersMax = Math.max(1, Math.ceil(this.#usersPlanned * Math.max(1, factor)));
    this.#arrivals.scale(factor / this.#factor, this.#host.planMs(now));
    this.#factor = factor;
    this.#serve(now);
  }

  /** Drops waiting arrivals: they belong to the previous load and would be late in this one. */
  level(load: number, now: number): void {
    const first = this.#stages.at(-1)?.to ?? load;
    const factor = load / (first * this.#factor);
    const planMs = this.#host.planMs(now);
    // A new leader repeats the level: it is in effect already.
    if (this.#halted ? load === 0 : factor === 1) return;
    if (this.#halted) this.#arrivals.skipTo(planMs);
    else {
      this.#serve(now);
      this.missed = this.#missedAt(planMs);
      this.#drop(planMs, now);
      this.#dropped = this.missed;
    }
    this.#halted = load === 0;
    if (!this.#halted && factor !== 1) {
      this.#factor *= factor;
      this.#arrivals.scale(factor, planMs);
    }
    this.tick(now);
  }

  resume(now: number): void {
    this.#serve(now);
  }

  exhausted(now: number): void {
    this.stop(now);
    for (const user of this.#free.splice(0)) this.#host.retire(user);
  }

  stop(now: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#stopped = true;
    const planMs = this.#host.planMs(now);
    this.missed = this.#missedAt(planMs);
    if (!this.#halted) this.#drop(planMs, now);
  }

  #drop(planMs: number, now: number): void {
    let due = this.#arrivals.peek();
    for (; due !== null && due <= planMs; due = this.#arrivals.peek()) {
      this.#host.arrivalMissed(this.#host.clockAt(due), now);
      this.#arrivals.advance();
    }
  }
}

class IterationDriver<User extends Driven> implements LoadDriver<User> {
  readonly target: number;
  readonly missed = 0;
  readonly #host: DriverHost<User>;
  /** Null when iterations are shared: then the lease of tickets decides. */
  readonly #perUser: number | null;
  readonly #waiting: User[] = [];
  #started = 0;

  constructor(users: number, perUser: number | null, host: DriverHost<User>) {
    this.target = users;
    this.#perUser = perUser;
    this.#host = host;
  }

  get active(): number {
    return this.#host.users;
  }

  begin(): void {
    if (this.#host.stopping) return;
    const now = performance.now();
    for (
      let i = 0;
      i < USERS_STARTED_PER_TURN && this.#started < this.target;
      i++, this.#started++
    ) {
      this.#host.beginIteration(this.#host.newUser(), now, now);
    }
    if (this.#started < this.target) setImmediate(() => this.begin());
  }

  tick(): void {}
  serveDue(): void {}

  iterationDone(user: User, now: number): void {
    if (this.#perUser !== null && user.context.iteration >= this.#perUser) this.#host.retire(user);
    else if (this.#host.paused) this.#waiting.push(user);
    else this.#host.rest(user, now);
  }

  /** The number of iterations is fixed; there is nothing to scale. */
  scale(): void {}
  level(): void {}

  resume(now: number): void {
    for (const user of this.#waiting.splice(0)) this.#host.rest(user, now);
  }

  stop(): void {}
}
