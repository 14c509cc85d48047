/**
 * Who is served when there is too much to do: each request is admitted or refused at once, before anything is
 * begun, and who is refused hears when to come back.
 *
 *   request ─▶ asks too often? ─▶ too important for the state of this node? ─▶ room for its class? ─▶ admitted
 *                rateLimited            overloaded                               overloaded
 *
 * Every admitted request ends with `done`; how long it took tells the detector how this node does.
 */

import { Admission, type AdmissionLimits } from "../../../wire/admission.ts";
import { BucketTable } from "../../../wire/rate-limit.ts";
import { PRIORITIES, type Priority } from "../../../wire/registry.ts";
import type { Millis } from "../../base/brand.ts";
import type { OverloadState } from "../views.ts";
import { BackpressureGauge, type BackpressureLevel } from "./backpressure.ts";
import {
  Degradation,
  type DegradationActions,
  type DegradationView,
  degradationLog,
} from "./degradation.ts";
import {
  isNewWork,
  isShed,
  OPERATION_NAMES,
  OPERATIONS,
  type Operation,
  priorityOf,
} from "./operations.ts";
import { OVERLOAD_DEFAULTS, type OverloadConfig, OverloadDetector } from "./overload.ts";
import { ReturnSlots } from "./return-slots.ts";
import { PRESSURE_RULES, type PressureRules } from "./rules.ts";

/** Callers whose rates are remembered; the one that was silent longest makes room. (AD-24) */
const CALLERS_MAX = 10_000;
/** Until a node that is pressed is worth asking again, at least. */
const RETRY_AFTER_MS: Readonly<Record<OverloadState, number>> = {
  ...{ healthy: 500, busy: 1_000, stressed: 1_000, overloaded: 1_000 },
};
/** A node that is stressed takes on no more of one class than it answers in this time, but some at once. */
const QUEUED_MS_MAX = 1_000;
const AT_ONCE_MIN = 12;
/**
 * Latencies and delays below this are not judged against the past: from 1 to 20 ms is a rise of 1,900 %, and
 * nobody is hard-pressed.
 */
const NODE_BASELINE_MS_MIN = 250;
/** Of a new sample: a second of full CPU is no pressure, five are. */
const CPU_WEIGHT = 0.2;

/** What the driver measures, now and then. */
export interface PressureSample {
  /** How late the event loop came to its timers. */
  readonly lagMs: number;
  /** Of one core, which is what a node can use: 0 to 1. */
  readonly cpu: number;
  /** Of what the machine, or the container, has: 0 to 1. */
  readonly memory: number;
  /** How full the fullest queue of this node is: 0 to 1. */
  readonly queue: number;
}

interface PressureLog {
  readonly kind: "log";
  readonly level: "info" | "warn";
  readonly event: "pressure.changed" | "degradation.changed";
  readonly fields: Readonly<Record<string, string | number>>;
}

export interface GuardRefusal {
  readonly reason: "overloaded" | "rateLimited";
  readonly message: string;
  readonly retryAfterMs: number;
}

export interface PressureView {
  readonly state: OverloadState;
  readonly inFlight: number;
  readonly shed: Readonly<Record<Priority, number>>;
  /** Of each class: under way, taken on so far, and how many may be under way; 0: any number. (BEX-8) */
  readonly classes: Readonly<
    Record<
      Priority,
      { readonly inFlight: number; readonly acquired: number; readonly limit: number }
    >
  >;
  readonly rateLimited: number;
  /** Of the fuller of its one core and its fullest queue: figures come through both. */
  readonly fill: number;
  /** How long its log took when it was last looked at. */
  readonly logMs: number;
  readonly backpressure: BackpressureLevel;
  readonly degradation: DegradationView;
}

export class RequestGuard {
  readonly rules: PressureRules;
  readonly #detector: OverloadDetector;
  readonly #admission: Admission;
  readonly #rates = new Map<Operation, BucketTable>();
  readonly #shed: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly #gauge = new BackpressureGauge();
  readonly #levels = new Degradation();
  readonly #slots: Readonly<Record<Priority, ReturnSlots>> = {
    ...{ critical: new ReturnSlots(), high: new ReturnSlots() },
    ...{ normal: new ReturnSlots(), low: new ReturnSlots() },
  };
  #rateLimited = 0;
  #cpu = 0;
  #logMs = 0;
  /** When it was last sampled. */
  #state: OverloadState = "healthy";

  constructor(
    limits: AdmissionLimits,
    config: Partial<OverloadConfig> = {},
    rules: PressureRules = PRESSURE_RULES,
  ) {
    this.rules = rules;
    this.#detector = new OverloadDetector({
      ...OVERLOAD_DEFAULTS,
      baselineMsMin: NODE_BASELINE_MS_MIN,
      ...config,
    });
    this.#admission = new Admission(limits);
    for (const operation of OPERATION_NAMES) {
      const { perTenSeconds } = OPERATIONS[operation];
      if (perTenSeconds === null) continue;
      this.#rates.set(operation, new BucketTable(perTenSeconds, perTenSeconds / 10, CALLERS_MAX));
    }
  }

  /** Says so when the state of this node has changed. `logMs`: how long its log takes now. */
  sample(
    { cpu, lagMs, memory, queue }: PressureSample,
    now: Millis,
    logMs = 0,
  ): readonly PressureLog[] {
    const before = this.#state;
    this.#cpu += CPU_WEIGHT * (cpu - this.#cpu);
    this.#detector.record(lagMs, now);
    this.#detector.use({ cpu: this.#cpu, memory, queue, logMs });
    this.#logMs = logMs;
    this.#gauge.measure(Math.max(this.#cpu, queue));
    this.#state = this.#detector.state(now);
    const logs = this.#degrade(lagMs);
    if (this.#state === before) return logs;
    const level = this.#state === "healthy" ? "info" : "warn";
    const percent = (share: number) => Math.round(share * 100);
    const fields = {
      ...{ before, state: this.#state, latencyMs: Math.round(this.#detector.view().windowMs) },
      ...{ cpuPercent: percent(this.#cpu), memoryPercent: percent(memory) },
      ...{ queuePercent: percent(queue), logMs: Math.round(logMs) },
    };
    return [...logs, { kind: "log", level, event: "pressure.changed", fields }];
  }

  /** Gates and managers count no health of membership: how late they are decides alone. (BP-1) */
  #degrade(lagMs: number): readonly PressureLog[] {
    const change = this.#levels.sample({ health: 0, lagMs });
    return change === null ? [] : [degradationLog(change, lagMs)];
  }

  /** What this node does differently while it is slow. */
  get degraded(): DegradationActions {
    return this.#levels.actions;
  }

  /** What senders of figures are told. (AD-37.3) */
  get backpressure(): BackpressureLevel {
    return this.#gauge.level;
  }

  /** `caller`: null for members of the cluster, which are not limited by rate. */
  admit(operation: Operation, caller: string | null, now: Millis): GuardRefusal | null {
    const rate = caller === null ? undefined : this.#rates.get(operation);
    if (caller !== null && rate !== undefined && !rate.take(caller, now)) {
      this.#rateLimited++;
      return {
        reason: "rateLimited",
        message:
          `of one client at most ${OPERATIONS[operation].perTenSeconds} requests to ${operation} ` +
          "are taken in 10 s",
        retryAfterMs: Math.ceil(rate.waitMs(caller, now)),
      };
    }
    const priority = priorityOf(operation);
    const state = this.#detector.state(now);
    const rejects = isNewWork(operation) && !this.#levels.actions.takesWork;
    const sheds = rejects || this.#isShed(priority, state);
    const hasRoom = !sheds && this.#hasRoom(priority, state, now);
    if (hasRoom && this.#admission.tryAcquire(priority)) return null;
    this.#shed[priority]++;
    return {
      reason: "overloaded",
      message: sheds
        ? `this node is ${rejects ? this.#levels.level : state}: requests to ${operation} wait`
        : `too many requests are under way: ${operation} waits`,
      retryAfterMs: this.rules.refusalTimed
        ? this.#slots[priority].take(RETRY_AFTER_MS[state], now)
        : 0,
    };
  }

  /** What waits behind too many others is answered when nobody waits for it any more. */
  #hasRoom(priority: Priority, state: OverloadState, now: Millis): boolean {
    if (priority === "critical" || state === "healthy" || state === "busy") return true;
    const most = (this.#slots[priority].perSecond(now) * QUEUED_MS_MAX) / 1_000;
    return this.#admission.stats(priority).inFlight < Math.max(AT_ONCE_MIN, most);
  }

  #isShed(priority: Priority, state: OverloadState): boolean {
    const isServed = priority !== "critical" || this.rules.criticalServed;
    return isShed(isServed ? priority : "high", state);
  }

  /** An admitted request was answered after so long, or its caller is gone: null. */
  done(operation: Operation, tookMs: number | null, now: Millis): void {
    const priority = priorityOf(operation);
    this.#admission.release(priority);
    this.#slots[priority].served(now);
    if (tookMs !== null) this.#detector.record(tookMs, now);
  }

  view(now: Millis): PressureView {
    return {
      state: this.#detector.state(now),
      inFlight: PRIORITIES.reduce((sum, one) => sum + this.#admission.stats(one).inFlight, 0),
      shed: { ...this.#shed },
      classes: {
        critical: this.#admission.stats("critical"),
        high: this.#admission.stats("high"),
        normal: this.#admission.stats("normal"),
        low: this.#admission.stats("low"),
      },
      rateLimited: this.#rateLimited,
      fill: this.#gauge.fill,
      logMs: this.#logMs,
      backpressure: this.#gauge.level,
      degradation: this.#levels.view(),
    };
  }
}
