/**
 * Measurements of one execution on this core: which calls count, where, and in which window of time. Counting itself is
 * `core/load/stats/stats-recorder.ts`.
 */

import { formatDuration } from "../core/base/duration.ts";
import { WHOLE_ITERATION } from "../core/load/stats/group-stats.ts";
import { Histogram } from "../core/load/stats/histogram.ts";
import type { Tags } from "../core/load/stats/names.ts";
import { sampledCall, sampledText } from "../core/load/stats/samples.ts";
import { StatsRecorder } from "../core/load/stats/stats-recorder.ts";
import type { StepRecorder } from "../core/load/stats/step-stats.ts";
import { typicalUs, UNANSWERED } from "../core/load/stats/unanswered.ts";
import { WINDOW_MS } from "../core/load/stats/window-store.ts";
import type { Moment, WorkflowStats } from "../core/load/stats/workflow-stats.ts";
import { clock } from "../protocols/call.ts";
import {
  type CallRecord,
  CallResult,
  ERROR_KINDS,
  type ErrorKind,
  hasFirstByte,
} from "../protocols/protocol.ts";
import type { MetricKind, MetricSink, MetricTags } from "../workflow/metrics.ts";
import { CallSamples, type SampledCalls } from "./call-samples.ts";
import { LAG_INTERVAL_MS, type LagMonitor } from "./lag.ts";
import type { Outcome } from "./outcome.ts";

const KIND_INDEX = new Map<ErrorKind, number>(ERROR_KINDS.map((kind, index) => [kind, index]));
const EXCEPTION = ERROR_KINDS.indexOf("exception");
/** Nothing of the request was sent: a failure that does not show how fast the target answers. */
const NEVER_SENT: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  "dns",
  "refused",
  "tls",
  "resources",
  "exception",
]);

/** Record for observers of single calls when code threw: there was no call. */
const THREW: CallRecord = {
  ...{ errorKind: "exception", status: 0, connectMs: -1, tlsMs: -1, bytesIn: 0, bytesOut: 0 },
  ...{ startedAt: Number.NaN, firstByteAt: Number.NaN, endedAt: Number.NaN },
};

/** A call that was cut off: its answer is unknown. */
const CUT_OFF = {
  errorKind: UNANSWERED,
  ...{ status: 0, connectMs: -1, tlsMs: -1, bytesIn: 0, bytesOut: 0 },
} as const;

/** Samples of one stall: ten minutes of them. */
const LAG_SAMPLES_MAX = 60_000;
/** Times are sums of doubles: a call due exactly when measuring begins is measured. */
export const MOMENT_SLACK_MS = 1e-4;
/** Clock and load of the execution. */
export interface RecorderHost {
  /** Milliseconds of measured time at a clock time; negative in the warm-up. */
  measuredMs(at: number): number;
  /** Clock time of a measured time. */
  clockAtMeasured(ms: number): number;
  /** Active users, and the plan's target for this core: users or arrivals per second. */
  readonly load: { readonly active: number; readonly target: number };
  readonly lag: Pick<LagMonitor, "vitalsOfWindow">;
  /** A custom metric was given a value that it cannot record. */
  metricRefused?(name: string): void;
}

/**
 * Why a frame is written, and thus its content. "window": everything up to the last closed window. "load": everything
 * from the start, because a resend may be impossible. "all": calls of a teardown after that.
 */
export type FrameOver = "window" | "load" | "all";

export class Recorder implements MetricSink {
  readonly #host: RecorderHost;
  readonly #corrected: boolean;
  readonly #stats: StatsRecorder;
  readonly #wholeIteration: number;
  /** Null unless single calls are sampled, so that they cost nothing else. */
  #calls: CallSamples | null = null;
  /** Typical latency of a step, while its number of successes stays the same. */
  readonly #typical = new Map<number, { readonly ok: number; readonly us: number }>();
  /** Times that users took to be set up, in microseconds. */
  readonly #setUps = new Histogram();
  #windowEndsAt = Number.POSITIVE_INFINITY;
  /** Calls due earlier belong to the warm-up and are not recorded. */
  #measureFrom = Number.POSITIVE_INFINITY;
  /** Calls that end later are recorded, and in no rate. */
  #measureUntil = Number.POSITIVE_INFINITY;

  /** Names known before anything runs; others may follow. */
  constructor(
    corrected: boolean,
    host: RecorderHost,
    names?: ConstructorParameters<typeof WorkflowStats>[1],
  ) {
    this.#host = host;
    this.#corrected = corrected;
    this.#stats = new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected }, names);
    this.#wholeIteration = this.groupNumber(WHOLE_ITERATION);
  }

  get counts(): StatsRecorder["counts"] {
    return this.#stats.counts;
  }

  /** Returns the number of a step, assigned when it is first seen. */
  stepNumber(name: string, protocol: string, tags?: Tags): number {
    return this.#stats.stepNumber(name, protocol, tags);
  }

  /** Returns the number of "(other)", for a step whose name exceeds the limit. */
  giveUpStep(name: string, protocol: string, tags: Tags): number {
    return this.#stats.giveUpStep(name, protocol, tags);
  }

  checkNumber(name: string): number {
    return this.#stats.checkNumber(name);
  }

  groupNumber(name: string): number {
    return this.#stats.groupNumber(name);
  }

  /** Enables sampling of single calls. */
  sampleCalls(share: number, workflow: string): void {
    this.#calls = new CallSamples(share, workflow, (index) => this.#stats.stepName(index));
  }

  /** Whether single calls are sampled. */
  get samplesCalls(): boolean {
    return this.#calls !== null;
  }

  /** Sets the title of a client call: its result does not carry it. */
  entitle(result: CallResult, title: string): void {
    this.#calls?.entitle(result, title);
  }

  sampledCalls(): SampledCalls | null {
    return this.#calls?.take() ?? null;
  }

  measureFrom(at: number): void {
    this.#measureFrom = at - MOMENT_SLACK_MS;
    this.#windowEndsAt = this.#host.clockAtMeasured((this.#stats.window + 1) * WINDOW_MS);
  }

  /** Begins recording; measured time may have passed before. */
  beginAt(now: number): void {
    this.#stats.begin(Math.floor(Math.max(0, this.#host.measuredMs(now)) / WINDOW_MS));
  }

  measureUntil(at: number): void {
    this.#measureUntil = at;
  }

  measures(dueAt: number): boolean {
    return dueAt >= this.#measureFrom;
  }

  /** Whether a time lies in the measured time. */
  inside(at: number): boolean {
    return at >= this.#measureFrom && at <= this.#measureUntil;
  }

  /**
   * Records a call that was due at `dueAt`, began at `startedAt` and ended at `endedAt`. A custom result may be
   * measured with a clock of its own, so only differences of its times count.
   */
  call(index: number, record: CallRecord, startedAt: number, dueAt: number, endedAt: number): void {
    if (endedAt >= this.#windowEndsAt) this.#advance(endedAt);
    const step = this.#stats.step(index);
    const { bytesIn, bytesOut, errorKind } = record;
    step.sent(record.sent ?? 0);
    if (dueAt < this.#measureFrom) {
      if (this.inside(endedAt)) step.early(errorKind !== null, bytesIn, bytesOut);
      return;
    }
    // Timers may begin a call slightly early: lateness is never negative.
    this.#measured(index, record, this.#corrected ? Math.max(0, startedAt - dueAt) : 0, endedAt);
  }

  #measured(index: number, record: CallRecord, lateMs: number, endedAt: number): void {
    const step = this.#stats.step(index);
    const { bytesIn, bytesOut, errorKind } = record;
    this.#record(step, record, lateMs * 1_000);
    if (errorKind !== null) this.#sample(index, record, endedAt);
    if (this.#calls !== null) this.#calls.offer(index, record, lateMs);
    if (endedAt > this.#measureUntil) step.late(errorKind !== null, bytesIn, bytesOut);
  }

  #sample(index: number, record: CallRecord, at: number): void {
    const { samples } = this.#stats;
    const kind = KIND_INDEX.get(record.errorKind ?? "exception") ?? EXCEPTION;
    if (!samples.wants(index, kind, record.status)) return;
    const excerpt = record instanceof CallResult ? record.excerpt : "";
    samples.add({
      step: index,
      kind,
      status: record.status,
      atMs: this.#host.measuredMs(at),
      call: sampledCall(record.title ?? ""),
      text: sampledText(excerpt === "" ? (record.error ?? "") : excerpt),
    });
  }

  #record(step: StepRecorder, record: CallRecord, lateUs: number): void {
    const { bytesIn, bytesOut, connectMs, errorKind, tlsMs } = record;
    if (errorKind !== null && NEVER_SENT.has(errorKind)) {
      step.record(KIND_INDEX.get(errorKind) ?? EXCEPTION, 0, -1, -1, -1, -1, -1, bytesIn, bytesOut);
      return;
    }
    const service = (record.endedAt - record.startedAt) * 1_000;
    step.record(
      errorKind === null ? -1 : (KIND_INDEX.get(errorKind) ?? EXCEPTION),
      record.status,
      service + lateUs,
      service,
      hasFirstByte(record) ? (record.firstByteAt - record.startedAt) * 1_000 : -1,
      connectMs < 0 ? -1 : connectMs * 1_000,
      tlsMs < 0 ? -1 : tlsMs * 1_000,
      bytesIn,
      bytesOut,
    );
  }

  /** User code threw instead of returning a result: a failure without a call. */
  exception(index: number, dueAt: number, now: number, error: string): void {
    if (now >= this.#windowEndsAt) this.#advance(now);
    const step = this.#stats.step(index);
    if (dueAt < this.#measureFrom) {
      if (this.inside(now)) step.early(true, 0, 0);
      return;
    }
    step.record(EXCEPTION, 0, -1, -1, -1, -1, -1, 0, 0);
    this.#calls?.offer(index, THREW, 0);
    if (this.#stats.samples.wants(index, EXCEPTION, 0))
      this.#stats.samples.add({
        step: index,
        kind: EXCEPTION,
        status: 0,
        atMs: this.#host.measuredMs(now),
        call: "",
        text: sampledText(error),
      });
    if (now > this.#measureUntil) step.late(true, 0, 0);
  }

  /**
   * A call was cut off at the end of the graceful stop: it failed as unanswered, with its waiting time as latency,
   * unless it is younger than typical calls of its step.
   */
  cutOff(index: number, startedAt: number, dueAt: number, now: number, sent: number): void {
    if (now >= this.#windowEndsAt) this.#advance(now);
    this.sent(index, sent);
    if (!this.#outlasts(dueAt, now)) return;
    const lateMs = this.#corrected ? Math.max(0, startedAt - dueAt) : 0;
    const record = this.#unanswered(index, startedAt, lateMs, now);
    if (record === null) this.#stats.step(index).interrupted(1);
    else this.#measured(index, record, lateMs, now);
  }

  /** The same for a call of userSetup or a similar phase. */
  asideCutOff(index: number, startedAt: number, now: number, sent: number): void {
    this.sent(index, sent);
    const record = this.#unanswered(index, startedAt, 0, now);
    if (record === null) this.#stats.step(index).interrupted(1);
    else this.aside(index, record);
  }

  /** Null for a call that is younger than typical calls of its step. */
  #unanswered(index: number, startedAt: number, lateMs: number, now: number): CallRecord | null {
    const waitedMs = now - startedAt + lateMs;
    if (waitedMs * 1_000 < this.#typicalLatencyUs(index)) return null;
    const error = `no answer for ${formatDuration(waitedMs)}, until the run ended`;
    return { ...CUT_OFF, startedAt, firstByteAt: Number.NaN, endedAt: now, error };
  }

  /**
   * Whether what is cut off at `now` counts: it was due in the measured time, or has hung since the warm-up. Nothing of
   * a run that was stopped in its warm-up does.
   */
  #outlasts(dueAt: number, now: number): boolean {
    if (this.measures(dueAt)) return true;
    return this.measures(now) && this.#measureUntil > this.#measureFrom;
  }

  /** Failures do not change it, so calls that are cut off together share it. */
  #typicalLatencyUs(index: number): number {
    const { ok } = this.#stats.step(index);
    const known = this.#typical.get(index);
    if (known?.ok === ok) return known.us;
    const us = this.#stats.typicalLatencyUs(index);
    this.#typical.set(index, { ok, us });
    return us;
  }

  /** An iteration was cut off while its code awaited no call: unresolved, unless it is younger than typical ones. */
  unresolved(dueAt: number, beganAt: number, now: number): void {
    if (!this.#outlasts(dueAt, now)) return;
    const ageUs = (now - Math.min(dueAt, beganAt)) * 1_000;
    if (ageUs >= this.#stats.typicalDurationUs(this.#wholeIteration)) this.counts.unresolved++;
  }

  /** A user was set up within this time. */
  setUp(ms: number): void {
    this.#setUps.record(Math.max(0, ms * 1_000));
  }

  /** The set-up of a user was cut off: its iteration is unresolved, unless the set-up is younger than typical ones. */
  neverSetUp(dueAt: number, beganAt: number, now: number): void {
    if (!this.#outlasts(dueAt, now)) return;
    if ((now - beganAt) * 1_000 >= typicalUs(this.#setUps)) this.counts.unresolved++;
  }

  /** Counts requests of a call without an end. */
  sent(index: number, count: number): void {
    this.#stats.step(index).sent(count);
  }

  /** Records a check of what was due at `dueAt`. */
  check(index: number, passed: boolean, dueAt: number): void {
    if (this.measures(dueAt)) this.#stats.check(index, passed);
    else this.#stats.checkedEarly(index);
  }

  /**
   * Records a group that was due at `dueAt`; `pausedMs` of it are declared pauses. Timers may begin it slightly early:
   * it lasts from the earlier of the two.
   */
  group(
    index: number,
    failed: boolean,
    dueAt: number,
    beganAt: number,
    endedAt: number,
    pausedMs: number,
  ): void {
    if (!this.measures(dueAt)) return;
    const duration = (endedAt - Math.min(dueAt, beganAt)) * 1_000;
    this.#stats.group(index).record(failed, duration, Math.max(0, duration - pausedMs * 1_000));
  }

  /** The same for a whole iteration. */
  wholeIteration(
    outcome: Outcome,
    dueAt: number,
    beganAt: number,
    endedAt: number,
    pausedMs: number,
  ): void {
    this.group(this.#wholeIteration, outcome !== "completed", dueAt, beganAt, endedAt, pausedMs);
  }

  /** Records a call of userSetup or a similar phase: it belongs to no measured time, and is always recorded. */
  aside(index: number, record: CallRecord): void {
    const step = this.#stats.step(index);
    step.sent(record.sent ?? 0);
    this.#record(step, record, 0);
  }

  /** Records a value of a custom metric, except in the warm-up. */
  add(name: string, kind: MetricKind, value: number, tags: MetricTags): void {
    const now = clock();
    if (!this.measures(now)) return;
    if (!this.#stats.metrics.series(name, kind, tags).add(value, now))
      this.#host.metricRefused?.(name);
  }

  arrivalStarted(lagMs: number): void {
    this.counts.arrivalsStarted++;
    this.#stats.sendLag.record(Math.max(0, lagMs * 1_000));
  }

  /** An arrival never reached its first call: its waiting time is all that is known. */
  waited(dueAt: number, now: number): void {
    if (this.measures(dueAt)) this.#stats.waited.record(Math.max(0, (now - dueAt) * 1_000));
  }

  /** Records how long a user waited for a row, or for its share of the iterations. */
  waitedForRow(ms: number): void {
    this.#stats.rowWait.record(Math.max(0, ms * 1_000));
  }

  /**
   * Records a lag of the event loop; `isOwn`: it was computing meanwhile. Timers that would have fired in between were
   * late, too: without them a stall of a second would weigh as much as 10 ms without one.
   */
  lagged(ms: number, isOwn: boolean): void {
    const samples = Math.min(LAG_SAMPLES_MAX, 1 + Math.floor(ms / LAG_INTERVAL_MS));
    for (let at = 0; at < samples; at++) {
      const lateUs = (ms - at * LAG_INTERVAL_MS) * 1_000;
      this.#stats.loopLag.record(lateUs);
      if (isOwn) this.#stats.ownLag.record(lateUs);
    }
  }

  /** The receiver acknowledged this frame. */
  acknowledged(frame: number): void {
    this.#stats.acknowledged(frame);
  }

  /** Whether the receiver gets another frame. */
  isFrameDue(): boolean {
    return this.#stats.isFrameDue();
  }

  frame(moment: Moment, now: number, over: FrameOver): Uint8Array {
    this.#advance(now);
    if (over !== "window") this.#seal(this.#stats.window + 1);
    return this.#stats.frame(moment, over === "load");
  }

  /** Closes elapsed windows and adds them to the totals. */
  #advance(now: number): void {
    const reached = Math.floor(Math.max(0, this.#host.measuredMs(now)) / WINDOW_MS);
    if (reached > this.#stats.window) this.#seal(reached);
    this.#windowEndsAt = this.#host.clockAtMeasured((this.#stats.window + 1) * WINDOW_MS);
  }

  #seal(next: number): void {
    const { active, target } = this.#host.load;
    this.#stats.seal(next, { users: active, target, ...this.#host.lag.vitalsOfWindow() });
  }
}
