/**
 * Admission control under overload: each request is admitted or rejected at once, before any work starts, and a
 * rejected client gets a retry time.
 *
 *     request ─▶ within its rate? ─▶ priority high enough for the state? ─▶ slot of its class free? ─▶ admitted
 *                  rateLimited         overloaded                             overloaded
 *
 * Every admitted request finishes with `done`; its duration feeds the overload detector.
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

/** Callers whose rates are remembered; the one silent longest is evicted. (AD-24) */
const CALLERS_MAX = 10_000;
/** Minimum retry delay by state. */
const RETRY_AFTER_MS: Readonly<Record<OverloadState, number>> = {
  ...{ healthy: 500, busy: 1_000, stressed: 1_000, overloaded: 1_000 },
};
/** A stressed node admits no more of one class than it answers in this time, with a minimum. */
const QUEUED_MS_MAX = 1_000;
const AT_ONCE_MIN = 12;
/** Lower bound of the baseline: from 1 to 20 ms is a rise of 1,900 %, and no overload. */
const NODE_BASELINE_MS_MIN = 250;
/** Weight of a new sample: a second of full CPU is no overload, five are. */
const CPU_WEIGHT = 0.2;

/** Periodic measurements of the driver. */
export interface PressureSample {
  /** Lateness of the event loop. */
  readonly lagMs: number;
  /** Share of one core, which is what a node can use: 0 to 1. */
  readonly cpu: number;
  /** Share of the memory of the machine or container: 0 to 1. */
  readonly memory: number;
  /** Fill of the fullest queue of this node: 0 to 1. */
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
  /** For each class: in flight, admitted so far, and the limit in flight; 0: unlimited. (BEX-8) */
  readonly classes: Readonly<
    Record<
      Priority,
      { readonly inFlight: number; readonly acquired: number; readonly limit: number }
    >
  >;
  readonly rateLimited: number;
  /** Fill of its one core or its fullest queue, whichever is higher: metrics pass through both. */
  readonly fill: number;
  /** Latency of its log when it was last measured. */
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
  /** State at the last sample. */
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

  /** Takes a sample and logs a change of state. `logMs`: current latency of the log. */
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

  /** Gates and managers have no health score of membership: only lateness counts. (BP-1) */
  #degrade(lagMs: number): readonly PressureLog[] {
    const change = this.#levels.sample({ health: 0, lagMs });
    return change === null ? [] : [degradationLog(change, lagMs)];
  }

  /** Changes in behaviour while this node is slow. */
  get degraded(): DegradationActions {
    return this.#levels.actions;
  }

  /** Level reported to senders of metrics. (AD-37.3) */
  get backpressure(): BackpressureLevel {
    return this.#gauge.level;
  }

  /** `caller`: null for members of the cluster, which have no rate limit. */
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

  /** A request behind too many others would be answered after its caller has given up. */
  #hasRoom(priority: Priority, state: OverloadState, now: Millis): boolean {
    if (priority === "critical" || state === "healthy" || state === "busy") return true;
    const most = (this.#slots[priority].perSecond(now) * QUEUED_MS_MAX) / 1_000;
    return this.#admission.stats(priority).inFlight < Math.max(AT_ONCE_MIN, most);
  }

  #isShed(priority: Priority, state: OverloadState): boolean {
    const isServed = priority !== "critical" || this.rules.criticalServed;
    return isShed(isServed ? priority : "high", state);
  }

  /** Completes an admitted request; `tookMs`: null when its caller disconnected. */
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
