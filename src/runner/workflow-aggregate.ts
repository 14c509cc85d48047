/** The numbers of one workflow as its cores report them: totals per core, series, checks, metrics, vitals. */

import { ByteReader } from "../core/base/bytes.ts";
import type { WorkflowManifest } from "../core/run/job/manifest.ts";
import type { Fault, WorkflowData } from "../core/run/results/metric-source.ts";
import type { WorkflowStatus } from "../core/run/results/model.ts";
import { GroupTotals } from "../core/run/stats/group-stats.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import { MetricTotals } from "../core/run/stats/metrics.ts";
import { type Name, NameTable, NO_TAGS } from "../core/run/stats/names.ts";
import { Series } from "../core/run/stats/series.ts";
import { StepTotals } from "../core/run/stats/step-stats.ts";
import { type FrameHead, readFrameHead, readNewNames } from "../engine/frame.ts";
import type { CoreVitals } from "../engine/messages.ts";
import type { Outcome } from "../engine/outcome.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";

const OVER: ReadonlySet<WorkflowStatus> = new Set(["completed", "failed", "interrupted"]);

/** What one core has told; its names and totals by the core's own numbers. */
interface CorePart {
  head: FrameHead | undefined;
  vitals: CoreVitals | undefined;
  readonly names: { readonly steps: Name[]; readonly checks: Name[]; readonly groups: Name[] };
  readonly steps: StepTotals[];
  readonly checks: { passed: number; failed: number }[];
  readonly groups: GroupTotals[];
  readonly metrics: MetricTotals;
}

export class WorkflowAggregate {
  readonly manifest: WorkflowManifest;
  status: WorkflowStatus = "waiting";
  error: string | null = null;
  startedAtMs = 0;
  /** Beside making load. */
  doing: "setting up" | "tearing down" | null = null;
  doingSinceMs = 0;
  cores: readonly number[] = [];
  readonly faults: Fault[] = [];
  readonly #steps: NameTable;
  readonly #checks: NameTable;
  readonly #groups = new NameTable();
  readonly #series: Series[] = [];
  readonly #parts = new Map<number, CorePart>();

  constructor(manifest: WorkflowManifest) {
    this.manifest = manifest;
    this.#steps = new NameTable(manifest.steps.filter((step) => step.kind === "step"));
    this.#checks = new NameTable(
      manifest.checks.map((name) => ({ name, protocol: "", tags: NO_TAGS })),
    );
  }

  /** Measured steps: those of the manifest, then others as they were first seen. */
  get steps(): readonly Name[] {
    return this.#steps.list;
  }

  /** The series of a step, in the order of `steps`. */
  seriesOf(step: number): Series {
    let series = this.#series[step];
    if (series === undefined) {
      series = new Series();
      this.#series[step] = series;
    }
    return series;
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
    if (head === undefined || !this.#readNames(reader, part)) return false;
    part.head = head;
    part.vitals = vitals;
    if (!this.#readSteps(reader, part, atMs)) return false;
    for (const check of part.checks) {
      check.passed = Math.max(check.passed, reader.varint());
      check.failed = Math.max(check.failed, reader.varint());
    }
    if (!part.groups.every((group) => group.applyChanges(reader))) return false;
    return part.metrics.applyChanges(reader);
  }

  /** New names get totals at once, so that a number is known as soon as it is told. */
  #readNames(reader: ByteReader, { checks, groups, names, steps }: CorePart): boolean {
    if (!readNewNames(reader, names.steps)) return false;
    if (!readNewNames(reader, names.checks)) return false;
    if (!readNewNames(reader, names.groups)) return false;
    for (const { name, protocol, tags } of names.steps.slice(steps.length)) {
      this.#steps.numberOf(name, protocol, tags);
      steps.push(new StepTotals(ERROR_KINDS.length, this.manifest.corrected));
    }
    for (const { name } of names.checks.slice(checks.length)) {
      this.#checks.numberOf(name);
      checks.push({ passed: 0, failed: 0 });
    }
    for (const { name } of names.groups.slice(groups.length)) {
      this.#groups.numberOf(name);
      groups.push(new GroupTotals());
    }
    return true;
  }

  #readSteps(reader: ByteReader, part: CorePart, atMs: number): boolean {
    const changed = reader.varint();
    for (let i = 0; i < changed; i++) {
      const number = reader.varint();
      const [name, totals] = [part.names.steps[number], part.steps[number]];
      if (reader.failed || name === undefined || totals === undefined) return false;
      const window = this.seriesOf(this.#stepOf(name)).at(atMs);
      if (!totals.applyChanges(reader, window)) return false;
    }
    return true;
  }

  #stepOf({ name, protocol, tags }: Name): number {
    return this.#steps.numberOf(name, protocol, tags);
  }

  #part(core: number): CorePart {
    let part = this.#parts.get(core);
    if (part === undefined) {
      part = {
        head: undefined,
        vitals: undefined,
        names: { steps: [], checks: [], groups: [] },
        steps: [],
        checks: [],
        groups: [],
        metrics: new MetricTotals(),
      };
      this.#parts.set(core, part);
    }
    return part;
  }

  vitalsOf(core: number): CoreVitals | undefined {
    return this.#parts.get(core)?.vitals;
  }

  /** Merged over the cores, by name. */
  #stepTotals(): StepTotals[] {
    const merged = this.steps.map(
      () => new StepTotals(ERROR_KINDS.length, this.manifest.corrected),
    );
    for (const { names, steps } of this.#parts.values()) {
      for (const [at, name] of names.steps.entries()) {
        const into = merged[this.#stepOf(name)];
        if (into !== undefined) steps[at]?.mergeInto(into);
      }
    }
    return merged;
  }

  /** Everything measured so far, merged over the cores. */
  data(): WorkflowData {
    const metrics = new MetricTotals();
    for (const part of this.#parts.values()) part.metrics.mergeInto(metrics);
    const totals = this.#stepTotals();
    return {
      name: this.manifest.name,
      startedAtSeconds: this.startedAtMs / 1_000,
      measuredFromSeconds: (this.startedAtMs + this.manifest.warmupMs) / 1_000,
      elapsedSeconds: this.elapsedMs / 1_000,
      ...apart(
        this.steps.flatMap(({ name, protocol, tags }, at) => {
          const own = totals[at];
          return own === undefined
            ? []
            : [{ name, protocol, tags, totals: own, series: this.seriesOf(at) }];
        }),
      ),
      measures: this.manifest.isTest,
      checks: this.#checkCounts(),
      groups: this.#groupTotals(),
      namesOverflowed: [this.#steps, this.#checks, this.#groups].some((one) => one.overflowed),
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
    return this.outcome("completed");
  }

  get interruptedIterations(): number {
    return this.outcome("interrupted");
  }

  /** Iterations that ended so. */
  outcome(outcome: Outcome): number {
    return this.#sum((head) => head.outcomes[outcome]);
  }

  /** Event-loop lag of one core. */
  loopLag(core: number): Histogram {
    return this.#parts.get(core)?.head?.loopLagUs ?? new Histogram();
  }

  #checkCounts(): { readonly name: string; readonly passed: number; readonly failed: number }[] {
    const merged = this.#checks.list.map(({ name }) => ({ name, passed: 0, failed: 0 }));
    for (const { checks, names } of this.#parts.values()) {
      for (const [at, { name }] of names.checks.entries()) {
        const into = merged[this.#checks.numberOf(name)];
        if (into === undefined) continue;
        into.passed += checks[at]?.passed ?? 0;
        into.failed += checks[at]?.failed ?? 0;
      }
    }
    return merged;
  }

  #groupTotals(): { readonly name: string; readonly totals: GroupTotals }[] {
    const merged = this.#groups.list.map(({ name }) => ({ name, totals: new GroupTotals() }));
    for (const { groups, names } of this.#parts.values()) {
      for (const [at, { name }] of names.groups.entries()) {
        const into = merged[this.#groups.numberOf(name)];
        if (into !== undefined) groups[at]?.mergeInto(into.totals);
      }
    }
    return merged;
  }

  #heads(): FrameHead[] {
    return [...this.#parts.values()].flatMap(({ head }) => (head === undefined ? [] : [head]));
  }

  #sum(value: (head: FrameHead) => number): number {
    return this.#heads().reduce((sum, head) => sum + value(head), 0);
  }
}

/** Calls beside the iterations are no steps of the workflow: no total and no gate looks at them. */
function apart<Step extends Pick<Name, "tags">>(
  all: readonly Step[],
): { readonly steps: Step[]; readonly aside: Step[] } {
  return { steps: all.filter((step) => !isAside(step)), aside: all.filter(isAside) };
}

/** The tag of calls that setup and its kin made. */
export function isAside({ tags }: Pick<Name, "tags">): boolean {
  return "phase" in tags;
}
