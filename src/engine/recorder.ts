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

/** What the execution adds to a frame. */
export type FrameMoment = Pick<
  FrameHead,
  "measuredMs" | "warmingUp" | "target" | "arrivalsMissed" | "loopLagUs"
>;

export class Recorder implements MetricSink {
  iterations = 0;
  interruptedIterations = 0;
  arrivalsStarted = 0;
  readonly #metrics = new MetricRecorder();
  readonly #steps: readonly StepRecorder[];
  readonly #corrected: boolean;
  readonly #checks: { passed: number; failed: number }[];
  readonly #sendLagUs = new Histogram();
  readonly #writer = new ByteWriter(4_096);
  /** What began earlier belongs to the warm-up and is not recorded. */
  #measureFrom = Number.POSITIVE_INFINITY;

  constructor(steps: number, checks: number, corrected: boolean) {
    this.#corrected = corrected;
    this.#steps = Array.from(
      { length: steps },
      () => new StepRecorder(ERROR_KINDS.length, corrected),
    );
    this.#checks = Array.from({ length: checks }, () => ({ passed: 0, failed: 0 }));
  }

  measureFrom(at: number): void {
    this.#measureFrom = at;
  }

  measures(startedAt: number): boolean {
    return startedAt >= this.#measureFrom;
  }

  /**
   * `startedAt` is when the step began and `intendedAt` when it should have. A custom result may be
   * measured with a clock of its own, so only differences of its times count.
   */
  call(index: number, record: CallRecord, startedAt: number, intendedAt: number): void {
    if (intendedAt < this.#measureFrom) return;
    const { connectMs, errorKind, tlsMs } = record;
    const service = (record.endedAt - record.startedAt) * 1_000;
    (this.#steps[index] as StepRecorder).record(
      errorKind === null ? -1 : (KIND_INDEX.get(errorKind) ?? EXCEPTION),
      record.status,
      this.#corrected ? service + (startedAt - intendedAt) * 1_000 : service,
      service,
      (record.firstByteAt - record.startedAt) * 1_000,
      connectMs < 0 ? -1 : connectMs * 1_000,
      tlsMs < 0 ? -1 : tlsMs * 1_000,
      record.bytesIn,
      record.bytesOut,
    );
  }

  exception(index: number, startedAt: number, endedAt: number, intendedAt: number): void {
    if (intendedAt < this.#measureFrom) return;
    const service = (endedAt - startedAt) * 1_000;
    const latency = this.#corrected ? (endedAt - intendedAt) * 1_000 : service;
    (this.#steps[index] as StepRecorder).record(
      EXCEPTION,
      0,
      latency,
      service,
      service,
      -1,
      -1,
      0,
      0,
    );
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

  frame(moment: FrameMoment): Uint8Array {
    const writer = this.#writer;
    writer.clear();
    writeFrameHead(writer, {
      ...moment,
      iterations: this.iterations,
      interruptedIterations: this.interruptedIterations,
      arrivalsStarted: this.arrivalsStarted,
      checks: this.#checks,
      sendLagUs: this.#sendLagUs,
    });
    writer.varint(this.#steps.length);
    for (const step of this.#steps) step.writeChanges(writer);
    this.#metrics.writeChanges(writer);
    return writer.take();
  }
}
