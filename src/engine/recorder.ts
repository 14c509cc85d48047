/** What one execution has measured on this core, and its frames. */

import { ByteWriter } from "../core/base/bytes.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import { MetricRecorder } from "../core/run/stats/metrics.ts";
import { StepRecorder } from "../core/run/stats/step-stats.ts";
import { clock } from "../protocols/call.ts";
import { type CallRecord, ERROR_KINDS, type ErrorKind } from "../protocols/protocol.ts";
import type { MetricKind, MetricSink, MetricTags } from "../workflow/metrics.ts";
import { type FrameHead, writeFrameHead } from "./frame.ts";

const KIND_INDEX = new Map<ErrorKind, number>(ERROR_KINDS.map((kind, index) => [kind, index]));
const EXCEPTION = ERROR_KINDS.indexOf("exception");
/** Nothing of the request was sent: a failure that says nothing of how fast the target answers. */
const NEVER_SENT: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  "dns",
  "refused",
  "tls",
  "resources",
  "exception",
]);

/** Moments are sums of doubles: what is due at the very moment measuring begins is measured. */
export const MOMENT_SLACK_MS = 1e-4;

/** What the execution adds to a frame. */
type FrameMoment = Pick<
  FrameHead,
  "measuredMs" | "warmingUp" | "target" | "arrivalsMissed" | "loopLagUs"
>;

export class Recorder implements MetricSink {
  iterations = 0;
  iterationsInside = 0;
  interruptedIterations = 0;
  arrivalsStarted = 0;
  readonly #metrics = new MetricRecorder();
  readonly #steps: readonly StepRecorder[];
  readonly #corrected: boolean;
  readonly #checks: { passed: number; failed: number }[];
  readonly #sendLagUs = new Histogram();
  readonly #waitedUs = new Histogram();
  readonly #writer = new ByteWriter(4_096);
  /** What was due earlier belongs to the warm-up and is not recorded. */
  #measureFrom = Number.POSITIVE_INFINITY;
  /** What ends later is recorded, and in no rate. */
  #measureUntil = Number.POSITIVE_INFINITY;

  constructor(steps: number, checks: number, corrected: boolean) {
    this.#corrected = corrected;
    this.#steps = Array.from(
      { length: steps },
      () => new StepRecorder(ERROR_KINDS.length, corrected),
    );
    this.#checks = Array.from({ length: checks }, () => ({ passed: 0, failed: 0 }));
  }

  measureFrom(at: number): void {
    this.#measureFrom = at - MOMENT_SLACK_MS;
  }

  measureUntil(at: number): void {
    this.#measureUntil = at;
  }

  measures(dueAt: number): boolean {
    return dueAt >= this.#measureFrom;
  }

  /** The moment lies in the measured time. */
  inside(at: number): boolean {
    return at >= this.#measureFrom && at <= this.#measureUntil;
  }

  /**
   * A call that was due at `dueAt`, began at `startedAt` and ended at `endedAt`. A custom result may
   * be measured with a clock of its own, so only differences of its times count.
   */
  call(index: number, record: CallRecord, startedAt: number, dueAt: number, endedAt: number): void {
    const step = this.#steps[index] as StepRecorder;
    const { bytesIn, bytesOut, connectMs, errorKind, tlsMs } = record;
    if (dueAt < this.#measureFrom) {
      if (this.inside(endedAt)) step.early(errorKind !== null, bytesIn, bytesOut);
      return;
    }
    if (errorKind !== null && NEVER_SENT.has(errorKind)) {
      step.record(KIND_INDEX.get(errorKind) ?? EXCEPTION, 0, -1, -1, -1, -1, -1, bytesIn, bytesOut);
      if (endedAt > this.#measureUntil) step.late(true, bytesIn, bytesOut);
      return;
    }
    const service = (record.endedAt - record.startedAt) * 1_000;
    step.record(
      errorKind === null ? -1 : (KIND_INDEX.get(errorKind) ?? EXCEPTION),
      record.status,
      // Timers may begin a call a hair before it is due: nobody is early.
      this.#corrected ? service + Math.max(0, startedAt - dueAt) * 1_000 : service,
      service,
      (record.firstByteAt - record.startedAt) * 1_000,
      connectMs < 0 ? -1 : connectMs * 1_000,
      tlsMs < 0 ? -1 : tlsMs * 1_000,
      bytesIn,
      bytesOut,
    );
    if (endedAt > this.#measureUntil) step.late(errorKind !== null, bytesIn, bytesOut);
  }

  /** User code threw instead of giving a result: a failure without a call. */
  exception(index: number, dueAt: number, now: number): void {
    const step = this.#steps[index] as StepRecorder;
    if (dueAt < this.#measureFrom) {
      if (this.inside(now)) step.early(true, 0, 0);
      return;
    }
    step.record(EXCEPTION, 0, -1, -1, -1, -1, -1, 0, 0);
    if (now > this.#measureUntil) step.late(true, 0, 0);
  }

  interrupted(index: number): void {
    this.#steps[index]?.interrupted(1);
  }

  check(index: number, passed: boolean): void {
    const check = this.#checks[index];
    if (check === undefined) return;
    if (passed) check.passed++;
    else check.failed++;
  }

  /** A value of a custom metric; those of the warm-up are left out like everything else. */
  add(name: string, kind: MetricKind, value: number, tags: MetricTags): void {
    const now = clock();
    if (this.measures(now)) this.#metrics.series(name, kind, tags).add(value, now);
  }

  arrivalStarted(lagMs: number): void {
    this.arrivalsStarted++;
    this.#sendLagUs.record(Math.max(0, lagMs * 1_000));
  }

  /** An arrival never came to its first call: what it waited is all that is known of it. */
  waited(dueAt: number, now: number): void {
    if (this.measures(dueAt)) this.#waitedUs.record(Math.max(0, (now - dueAt) * 1_000));
  }

  frame(moment: FrameMoment): Uint8Array {
    const writer = this.#writer;
    writer.clear();
    writeFrameHead(writer, {
      ...moment,
      iterations: this.iterations,
      iterationsInside: this.iterationsInside,
      interruptedIterations: this.interruptedIterations,
      arrivalsStarted: this.arrivalsStarted,
      checks: this.#checks,
      sendLagUs: this.#sendLagUs,
      waitedUs: this.#waitedUs,
    });
    writer.varint(this.#steps.length);
    for (const step of this.#steps) step.writeChanges(writer);
    this.#metrics.writeChanges(writer);
    return writer.take();
  }
}
