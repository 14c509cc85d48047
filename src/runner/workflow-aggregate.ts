/** The numbers of one workflow as its cores report them: totals per core, series, checks, metrics, vitals. */

import { ByteReader } from "../core/base/bytes.ts";
import type { WorkflowManifest } from "../core/run/job/manifest.ts";
import type { Fault, WorkflowData } from "../core/run/results/metric-source.ts";
import type { WorkflowStatus } from "../core/run/results/model.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import { MetricTotals } from "../core/run/stats/metrics.ts";
import { Series } from "../core/run/stats/series.ts";
import { StepTotals } from "../core/run/stats/step-stats.ts";
import { type FrameHead, readFrameHead } from "../engine/frame.ts";
import type { CoreVitals } from "../engine/messages.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";

const OVER: ReadonlySet<WorkflowStatus> = new Set(["completed", "failed", "interrupted"]);

interface CorePart {
  head: FrameHead | undefined;
  vitals: CoreVitals | undefined;
  readonly steps: readonly StepTotals[];
  readonly metrics: MetricTotals;
}

export class WorkflowAggregate {
  readonly manifest: WorkflowManifest;
  /** Names, protocols and tags of the measured steps, in the order of frames. */
  readonly steps: WorkflowManifest["steps"];
  readonly series: readonly Series[];
  status: WorkflowStatus = "waiting";
  error: string | null = null;
  startedAtMs = 0;
  cores: readonly number[] = [];
  readonly faults: Fault[] = [];
  readonly #parts = new Map<number, CorePart>();

  constructor(manifest: WorkflowManifest) {
    this.manifest = manifest;
    this.steps = manifest.steps.filter((step) => step.kind === "step");
    this.series = this.steps.map(() => new Series());
  }

  started(cores: readonly number[], atMs: number): void {
    this.status = "running";
    this.startedAtMs = atMs;
    this.cores = cores;
  }

  /** False when the bytes are not a frame: the core speaks another version. */
  frame(core: number, bytes: Uint8Array, vitals: CoreVitals, atMs: number): boolean {
    const part = this.#part(core);
    const reader = new ByteReader(bytes);
    const head = readFrameHead(reader);
    if (head === undefined || reader.varint() !== part.steps.length) return false;
    part.head = head;
    part.vitals = vitals;
    for (const [at, totals] of part.steps.entries()) {
      const window = this.series[at]?.at(atMs) ?? null;
      if (!totals.applyChanges(reader, window)) return false;
    }
    return part.metrics.applyChanges(reader);
  }

  #part(core: number): CorePart {
    let part = this.#parts.get(core);
    if (part === undefined) {
      part = {
        head: undefined,
        vitals: undefined,
        steps: this.steps.map(() => new StepTotals(ERROR_KINDS.length, this.manifest.corrected)),
        metrics: new MetricTotals(),
      };
      this.#parts.set(core, part);
    }
    return part;
  }

  vitalsOf(core: number): CoreVitals | undefined {
    return this.#parts.get(core)?.vitals;
  }

  #totals(step: number): StepTotals {
    const merged = new StepTotals(ERROR_KINDS.length, this.manifest.corrected);
    for (const part of this.#parts.values()) part.steps[step]?.mergeInto(merged);
    return merged;
  }

  /** Everything measured so far, merged over the cores. */
  data(): WorkflowData {
    const metrics = new MetricTotals();
    for (const part of this.#parts.values()) part.metrics.mergeInto(metrics);
    return {
      name: this.manifest.name,
      startedAtSeconds: this.startedAtMs / 1_000,
      measuredFromSeconds: (this.startedAtMs + this.manifest.warmupMs) / 1_000,
      elapsedSeconds: this.elapsedMs / 1_000,
      steps: this.steps.map(({ name, tags }, at) => ({ name, tags, totals: this.#totals(at) })),
      checks: this.#checks(),
      iterations: this.iterations,
      iterationsInside: this.#sum((head) => head.iterationsInside),
      arrivals: this.manifest.corrected ? this.#arrivals() : null,
      metrics,
      counters: this.manifest.metrics
        .filter(({ kind }) => kind === "counter")
        .map(({ name }) => name),
      ended: OVER.has(this.status),
      faults: this.faults,
    };
  }

  #arrivals(): WorkflowData["arrivals"] {
    const lag = new Histogram();
    const waited = new Histogram();
    for (const head of this.#heads()) {
      lag.merge(head.sendLagUs);
      waited.merge(head.waitedUs);
    }
    return {
      started: this.#sum((head) => head.arrivalsStarted),
      missed: this.#sum((head) => head.arrivalsMissed),
      lag,
      waited,
    };
  }

  /** Measured time: the longest of the cores. */
  get elapsedMs(): number {
    return Math.max(0, ...this.#heads().map((head) => head.measuredMs));
  }

  get warmingUp(): boolean {
    const heads = this.#heads();
    return heads.length > 0 && heads.every((head) => head.warmingUp);
  }

  get activeUsers(): number {
    return [...this.#parts.values()].reduce(
      (sum, { vitals }) => sum + (vitals?.activeUsers ?? 0),
      0,
    );
  }

  /** Users or arrivals per second asked for now. */
  get target(): number {
    return this.#sum((head) => head.target);
  }

  get iterations(): number {
    return this.#sum((head) => head.iterations);
  }

  get interruptedIterations(): number {
    return this.#sum((head) => head.interruptedIterations);
  }

  /** Event-loop lag of one core. */
  loopLag(core: number): Histogram {
    return this.#parts.get(core)?.head?.loopLagUs ?? new Histogram();
  }

  #checks(): { readonly name: string; readonly passed: number; readonly failed: number }[] {
    return this.manifest.checks.map((name, at) => ({
      name,
      passed: this.#sum((head) => head.checks[at]?.passed ?? 0),
      failed: this.#sum((head) => head.checks[at]?.failed ?? 0),
    }));
  }

  #heads(): FrameHead[] {
    return [...this.#parts.values()].flatMap(({ head }) => (head === undefined ? [] : [head]));
  }

  #sum(value: (head: FrameHead) => number): number {
    return this.#heads().reduce((sum, head) => sum + value(head), 0);
  }
}
