/**
 * A mix on one core: one plan, whose iterations are shared by flows. Each flow is an execution of its own, with its
 * users, rows and metrics; the mix decides which flow begins an iteration, and when.
 *
 *   plan ──driver──▶ place ──shares──▶ flow 0: a free user of it, or a new one ──▶ iteration
 *                                      flow 1 …                                       │
 *          driver ◀── iteration done ◀────────────────────────────────────────────────┘
 *
 * A place corresponds to a user of a plain workflow's driver: as many as may run at once. A user belongs to one flow,
 * and rests between the iterations assigned to it.
 */

import { Random } from "../core/base/random.ts";
import { ITERATIONS_LEASE } from "../core/load/job/core-messages.ts";
import {
  isOpen,
  isOpenEnded,
  type LoadPlan,
  type Share,
  shareName,
} from "../core/load/plan/load.ts";
import { Shares } from "../core/load/plan/shares.ts";
import { clock } from "../protocols/call.ts";
import { clearTimeout, setTimeout } from "../protocols/net/timers.ts";
import { declaredMetrics } from "../workflow/metrics.ts";
import type { PaceOptions } from "../workflow/options.ts";
import type { CompiledWorkflow } from "./compiled.ts";
import { type Driven, type DriverHost, driverOf, type LoadDriver } from "./drivers.ts";
import type { Execution } from "./execution.ts";
import type { CoreLag, LagListener, LagMonitor } from "./lag.ts";
import { type IndexLease, type LeaseRequester, ticketLease } from "./leases.ts";
import { MixMetrics } from "./mix-metrics.ts";
import { Pace, type Paced } from "./pace.ts";
import type { VirtualUser } from "./user.ts";

interface MixInputs {
  readonly name: string;
  readonly plan: LoadPlan;
  readonly warmupMs: number;
  readonly share: Share;
  readonly pace: PaceOptions;
  readonly weights: readonly number[];
  /** Seed of the run. */
  readonly seed: string;
  readonly requester: LeaseRequester;
  readonly lag: LagMonitor;
}

class MixPlace implements Driven, Paced {
  retiring = false;
  readonly context = { iteration: 0 };
  ticketTaken = false;
  admitted = false;
  readonly iteration = { beganAt: 0 };
  timer: NodeJS.Timeout | undefined;
}

/** Driver of a flow of the mix, in place of a plan. */
class FlowDriver implements LoadDriver<VirtualUser> {
  missed = 0;
  readonly free: VirtualUser[] = [];
  readonly places = new Map<VirtualUser, MixPlace>();
  readonly share: number;
  readonly #mix: MixExecution;

  constructor(mix: MixExecution, share: number) {
    this.#mix = mix;
    this.share = share;
  }

  get target(): number {
    return this.#mix.target * this.share;
  }
  get active(): number {
    return this.places.size;
  }
  begin(): void {}
  tick(now: number): void {
    this.#mix.tick(now);
  }
  serveDue(now: number): void {
    this.#mix.serveDue(now);
  }
  iterationDone(user: VirtualUser, now: number): void {
    const place = this.places.get(user);
    this.places.delete(user);
    this.free.push(user);
    if (place !== undefined) this.#mix.iterationDone(place, now);
  }
  scale(): void {}
  level(): void {}
  resume(): void {}
  stop(now: number): void {
    this.#mix.stopDriver(now);
  }
  /** A flow without rows can have no share: the mix is over. */
  exhausted(): void {
    this.#mix.stop();
  }
}

export class MixExecution implements DriverHost<MixPlace> {
  readonly parts: Execution[] = [];
  readonly metrics = new MixMetrics(this.parts);
  readonly #inputs: MixInputs;
  readonly #driver: LoadDriver<MixPlace>;
  readonly #shares: Shares;
  readonly #drivers: FlowDriver[];
  readonly #tickets: IndexLease | null;
  readonly #random: Random;
  readonly #pace: Pace;
  readonly #places = new Set<MixPlace>();
  readonly #waiting = new Map<MixPlace, number>();
  readonly #lagListeners: LagListener[] = [];
  #stopped = 0;
  #driverStopped = false;

  constructor(inputs: MixInputs) {
    const { plan, requester, share, warmupMs, weights } = inputs;
    this.#inputs = inputs;
    const sum = weights.reduce((all, weight) => all + weight, 0);
    this.#shares = new Shares(weights);
    this.#drivers = weights.map((weight) => new FlowDriver(this, weight / sum));
    this.#random = new Random(`${inputs.seed}/${inputs.name}/${shareName(share)}`);
    this.#tickets =
      plan.kind === "shared" ? ticketLease(plan.iterations, share.count, requester) : null;
    const seed = `${inputs.seed}/${inputs.name}/arrivals`;
    this.#driver = driverOf(plan, { share, warmupMs, seed }, this);
    this.#pace = new Pace(inputs.pace, plan, share);
  }

  /** The lag of the core for one flow: started and stopped together, its CPU reported once. */
  lagOf(flow: number): CoreLag {
    const { lag } = this.#inputs;
    return {
      start: (listener) => {
        this.#lagListeners.push(listener);
        if (this.#lagListeners.length === 1) lag.start(this.#lagHeard);
      },
      stop: () => {
        if (++this.#stopped === this.parts.length) lag.stop();
      },
      get lastTurnAt() {
        return lag.lastTurnAt;
      },
      vitalsOfWindow: () => (flow === 0 ? lag.vitalsOfWindow() : { cpuMs: 0, lagMsMax: 0 }),
    };
  }

  readonly #lagHeard: LagListener = {
    lagged: (ms, isOwn) => {
      for (const listener of this.#lagListeners) listener.lagged(ms, isOwn);
    },
    stoodStill: (ms) => {
      for (const listener of this.#lagListeners) listener.stoodStill(ms);
    },
  };

  /** Wraps the workflow of this flow's execution: its metrics are its own. */
  followed(flow: number, workflow: CompiledWorkflow): CompiledWorkflow {
    if (workflow.flow === null || declaredMetrics().length === 0) return workflow;
    return { ...workflow, flow: this.metrics.follow(flow, workflow.flow) };
  }

  /** Returns the driver for this flow's execution. */
  driverOf(flow: number): LoadDriver<VirtualUser> {
    return this.#drivers[flow] as FlowDriver;
  }

  get target(): number {
    return this.#driver.target;
  }
  get users(): number {
    return this.#places.size;
  }
  get stopping(): boolean {
    return this.#first.stopping;
  }
  get paused(): boolean {
    return this.#first.paused;
  }
  planMs(now: number): number {
    return this.#first.planMs(now);
  }
  clockAt(planMs: number): number {
    return this.#first.clockAt(planMs);
  }

  get #first(): Execution {
    return this.parts[0] as Execution;
  }

  /** `setup` has the result of each flow's setup, by name. */
  start(setup: unknown, planMs: number): void {
    const values = Object(setup) as Readonly<Record<string, unknown>>;
    const now = clock();
    for (const part of this.parts) part.start(values[part.workflow.definition.name], planMs, now);
    this.#tickets?.prefetch();
    this.#driver.begin(now);
    this.#driver.tick(now);
  }

  tick(now: number): void {
    if (this.#driverStopped) return;
    this.#driver.tick(now);
    const ahead = this.#shares.ahead(this.#driver.missed, this.parts.length);
    for (const [flow, driver] of this.#drivers.entries()) driver.missed = ahead[flow] ?? 0;
  }

  serveDue(now: number): void {
    if (!this.#driverStopped) this.#driver.serveDue(now);
  }

  pause(): void {
    const now = clock();
    for (const part of this.parts) part.pause(now);
  }

  resume(): void {
    const now = clock();
    for (const part of this.parts) part.resume(now);
    this.#resumeWaiting();
    this.#driver.resume(now);
  }

  scale(factor: number): void {
    if (!this.stopping) this.#driver.scale(factor, clock());
  }

  level(load: number): void {
    if (!this.stopping) this.#driver.level(load, clock());
  }

  stop(): void {
    for (const part of this.parts) part.stop();
  }

  /** One flow stops: the plan is shared by all. */
  stopDriver(now: number): void {
    if (this.#driverStopped) return;
    this.#driverStopped = true;
    for (const driver of this.#drivers) driver.missed = 0;
    this.#driver.stop(now);
    for (const place of this.#places) clearTimeout(place.timer);
    this.stop();
  }

  newUser(): MixPlace {
    const place = new MixPlace();
    this.#places.add(place);
    return place;
  }

  beginIteration(place: MixPlace, intendedAt: number, now: number): void {
    if (this.stopping) {
      this.retire(place);
      return;
    }
    if (this.paused) {
      this.#waiting.set(place, intendedAt);
      return;
    }
    if (this.#tickets !== null && !place.ticketTaken) {
      const ticket = this.#tickets.take();
      if (ticket === "exhausted") this.retire(place);
      else if (ticket === "wait") this.#waiting.set(place, intendedAt);
      if (typeof ticket !== "number") return;
      place.ticketTaken = true;
    }
    const wait = this.#pace.throttleMs(place, this.planMs(now));
    if (wait > 0) {
      place.timer = setTimeout(() => {
        const at = clock();
        this.beginIteration(place, at, at);
      }, wait);
      return;
    }
    place.admitted = false;
    place.ticketTaken = false;
    place.iteration.beganAt = now;
    this.#begin(place, intendedAt, now);
  }

  #begin(place: MixPlace, intendedAt: number, now: number): void {
    const flow = this.#shares.take();
    const [driver, part] = [this.#drivers[flow], this.parts[flow]];
    if (driver === undefined || part === undefined) return;
    const user = driver.free.pop() ?? part.newUser();
    driver.places.set(user, place);
    part.feeds.expect(1);
    part.beginIteration(user, intendedAt, now);
  }

  iterationDone(place: MixPlace, now: number): void {
    place.context.iteration++;
    this.#driver.iterationDone(place, now);
  }

  rest(place: MixPlace, now: number): void {
    const pause = this.#pace.restMs(place, now, this.#random);
    if (pause <= 0) {
      this.beginIteration(place, now, now);
      return;
    }
    place.timer = setTimeout(() => {
      const at = clock();
      if (place.retiring) this.#driver.iterationDone(place, at);
      else this.beginIteration(place, at, at);
    }, pause);
  }

  /** Gives up the place; when iterations end the plan, the last one ends the mix. */
  retire(place: MixPlace): void {
    clearTimeout(place.timer);
    this.#waiting.delete(place);
    this.#places.delete(place);
    if (this.#places.size === 0 && !isOpenEnded(this.#inputs.plan)) this.stop();
  }

  arrivalMissed(dueAt: number, now: number): void {
    const flow = this.#shares.take();
    const [driver, part] = [this.#drivers[flow], this.parts[flow]];
    if (driver === undefined || part === undefined) return;
    part.arrivalMissed(dueAt, now);
    if (part.recorder.measures(dueAt)) driver.missed++;
  }

  leaseGranted(name: string, from: number, to: number, last: boolean): void {
    if (name === ITERATIONS_LEASE) {
      this.#tickets?.granted(from, to, last);
      this.#resumeWaiting();
      return;
    }
    for (const part of this.parts) part.leaseGranted(name, from, to, last);
  }

  #resumeWaiting(): void {
    for (const [place, intendedAt] of [...this.#waiting]) {
      this.#waiting.delete(place);
      const now = clock();
      this.beginIteration(place, isOpen(this.#inputs.plan) ? intendedAt : now, now);
    }
  }
}
