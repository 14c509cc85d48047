/** What one execution has measured on this core, and its frames. */

import { ByteWriter } from "../core/base/bytes.ts";
import { GroupRecorder, WHOLE_ITERATION } from "../core/run/stats/group-stats.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import { MetricRecorder } from "../core/run/stats/metrics.ts";
import { NameTable, NO_TAGS, type Tags } from "../core/run/stats/names.ts";
import { StepRecorder } from "../core/run/stats/step-stats.ts";
import { clock } from "../protocols/call.ts";
import { type CallRecord, ERROR_KINDS, type ErrorKind } from "../protocols/protocol.ts";
import type { MetricKind, MetricSink, MetricTags } from "../workflow/metrics.ts";
import { type FrameHead, writeFrameHead, writeNewNames } from "./frame.ts";
import type { Outcome } from "./outcome.ts";

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
  readonly outcomes = { completed: 0, ended: 0, failed: 0, interrupted: 0 };
  iterationsInside = 0;
  arrivalsStarted = 0;
  readonly #metrics = new MetricRecorder();
  readonly #corrected: boolean;
  readonly #stepNames: NameTable;
  readonly #checkNames: NameTable;
  readonly #groupNames = new NameTable();
  readonly #steps: StepRecorder[] = [];
  readonly #checks: { passed: number; failed: number }[] = [];
  readonly #groups: GroupRecorder[] = [];
  readonly #wholeIteration: number;
  readonly #sendLagUs = new Histogram();
  readonly #waitedUs = new Histogram();
  readonly #writer = new ByteWriter(4_096);
  /** How many of each kind earlier frames have told. */
  readonly #namesWritten = { steps: 0, checks: 0, groups: 0 };
  /** What was due earlier belongs to the warm-up and is not recorded. */
  #measureFrom = Number.POSITIVE_INFINITY;
  /** What ends later is recorded, and in no rate. */
  #measureUntil = Number.POSITIVE_INFINITY;

  /** The names that are known before anything runs; others may follow. */
  constructor(corrected: boolean, stepNames = new NameTable(), checkNames = new NameTable()) {
    this.#corrected = corrected;
    this.#stepNames = stepNames;
    this.#checkNames = checkNames;
    this.#grow();
    this.#wholeIteration = this.groupNumber(WHOLE_ITERATION);
  }

  /** The number of a step, given when it is first seen. */
  stepNumber(name: string, protocol: string, tags: Tags = NO_TAGS): number {
    const number = this.#stepNames.numberOf(name, protocol, tags);
    if (number >= this.#steps.length) this.#grow();
    return number;
  }

  checkNumber(name: string): number {
    const number = this.#checkNames.numberOf(name);
    if (number >= this.#checks.length) this.#grow();
    return number;
  }

  groupNumber(name: string): number {
    const number = this.#groupNames.numberOf(name);
    if (number >= this.#groups.length) this.#grow();
    return number;
  }

  #grow(): void {
    while (this.#steps.length < this.#stepNames.list.length)
      this.#steps.push(new StepRecorder(ERROR_KINDS.length, this.#corrected));
    while (this.#checks.length < this.#checkNames.list.length)
      this.#checks.push({ passed: 0, failed: 0 });
    while (this.#groups.length < this.#groupNames.list.length)
      this.#groups.push(new GroupRecorder());
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
    const { bytesIn, bytesOut, errorKind } = record;
    if (dueAt < this.#measureFrom) {
      if (this.inside(endedAt)) step.early(errorKind !== null, bytesIn, bytesOut);
      return;
    }
    // Timers may begin a call a hair before it is due: nobody is early.
    this.#record(step, record, this.#corrected ? Math.max(0, startedAt - dueAt) * 1_000 : 0);
    if (endedAt > this.#measureUntil) step.late(errorKind !== null, bytesIn, bytesOut);
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
      (record.firstByteAt - record.startedAt) * 1_000,
      connectMs < 0 ? -1 : connectMs * 1_000,
      tlsMs < 0 ? -1 : tlsMs * 1_000,
      bytesIn,
      bytesOut,
    );
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

  /** A group ended that was due at `dueAt`; `pausedMs` of it its author wanted nothing to happen. */
  group(index: number, failed: boolean, dueAt: number, endedAt: number, pausedMs: number): void {
    if (!this.measures(dueAt)) return;
    const duration = Math.max(0, endedAt - dueAt) * 1_000;
    this.#groups[index]?.record(failed, duration, Math.max(0, duration - pausedMs * 1_000));
  }

  /** The same of a whole iteration. */
  wholeIteration(outcome: Outcome, dueAt: number, endedAt: number, pausedMs: number): void {
    this.group(this.#wholeIteration, outcome !== "completed", dueAt, endedAt, pausedMs);
  }

  /** A call of userSetup or its kin: it belongs to no measured time, and is always recorded. */
  aside(index: number, record: CallRecord): void {
    this.#record(this.#steps[index] as StepRecorder, record, 0);
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
      outcomes: this.outcomes,
      iterationsInside: this.iterationsInside,
      arrivalsStarted: this.arrivalsStarted,
      sendLagUs: this.#sendLagUs,
      waitedUs: this.#waitedUs,
    });
    this.#namesWritten.steps = writeNewNames(writer, this.#stepNames, this.#namesWritten.steps);
    this.#namesWritten.checks = writeNewNames(writer, this.#checkNames, this.#namesWritten.checks);
    this.#namesWritten.groups = writeNewNames(writer, this.#groupNames, this.#namesWritten.groups);
    this.#writeSteps(writer);
    for (const { failed, passed } of this.#checks) {
      writer.varint(passed);
      writer.varint(failed);
    }
    for (const group of this.#groups) group.writeChanges(writer);
    this.#metrics.writeChanges(writer);
    return writer.take();
  }

  #writeSteps(writer: ByteWriter): void {
    const changed = this.#steps.flatMap((step, number) => (step.changed ? [number] : []));
    writer.varint(changed.length);
    for (const number of changed) {
      writer.varint(number);
      this.#steps[number]?.writeChanges(writer);
    }
  }
}
