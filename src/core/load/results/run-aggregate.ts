/**
 * Aggregate of a run: frames come in, the live view and the summary go out. One model for all that is shown
 * (`src/core/load/results/model.ts`).
 */

import { assert } from "../../base/assert.ts";
import { isoText } from "../../base/civil.ts";
import type { CoreVitals, MergedFigures } from "../job/core-messages.ts";
import { type CountedNote, CountedNotes } from "../job/counted-notes.ts";
import { type Fault, FaultCounts } from "../job/faults.ts";
import { Histogram } from "../stats/histogram.ts";
import { withTrust } from "./doubt.ts";
import { faultGates, implicitGates } from "./gates.ts";
import { generatorHealth, lateShares, loadFacts } from "./generator-health.ts";
import type { LiveDetail, LiveRun, LiveStep, LiveWorkflow, RunPhase, RunProgress } from "./live.ts";
import { latenciesOf, livePhase, liveSteps, liveWorkflow, mergedLag } from "./live-workflow.ts";
import {
  givenUpNote,
  modelNotes,
  remarksOf,
  scalable,
  scaleNotes,
  scaleText,
  totalSecondsOf,
} from "./load-figures.ts";
import type { LossDetails, LossFigures } from "./loss-figures.ts";
import { Losses, lossBeganMs, lossFigures } from "./losses.ts";
import { metricSource } from "./metric-source.ts";
import {
  type CoreHealth,
  type RunSummary,
  SUMMARY_SCHEMA,
  type TimelineEvent,
  type Totals,
  type WorkflowStatus,
  type WorkflowSummary,
} from "./model.ts";
import { coreSeries, stallsOf } from "./over-time.ts";
import { type Searched, Searches, type WorkflowSearch } from "./searches.ts";
import { distribution, judge, thresholdOutcome, totalsOf } from "./summarise.ts";
import { type JudgedRun, thresholdJudges } from "./threshold-judges.ts";
import type { MetricSource, ThresholdJudge } from "./thresholds.ts";
import { TimelineEvents } from "./timeline-events.ts";
import { heldOf, measuredOf, WorkflowAggregate } from "./workflow-aggregate.ts";
import type { WorkflowData } from "./workflow-data.ts";
import { type Detail, seconds, secondsOf, workflowSummary } from "./workflow-summary.ts";

interface RunAggregateOptions extends JudgedRun {
  readonly runId: string;
  readonly name: string;
  /** Title given by the author. */
  readonly title?: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
  readonly environment: RunSummary["environment"];
  /** Names of the kinds of failures, in the order that the cores number them. */
  readonly errorKinds: readonly string[];
  /** When the time of the run is 0, as ISO 8601. */
  readonly startedAt: string;
}

/** Refresh interval of live metrics: faster is not readable, and computing them costs more than drawing. */
const FIGURES_MS = 500;
/** Metrics requested this recently are going to be requested again. */
const WATCHED_MS = 2 * FIGURES_MS;
const JUDGE_MS_MAX = 500;
/** A search is checked with every frame: its probes begin and end on time. */
const SEARCH_MS = 100;

/** Actions requested by the judges. */
interface Decision {
  /** Thresholds that ask for the end of the run. */
  readonly abortedBy: readonly string[];
  readonly searches: readonly WorkflowSearch[];
}

interface SummaryRequest {
  readonly interrupted: boolean;
  readonly ended: boolean;
  readonly detail: Detail;
}

/** Remarks of a run beside its metrics. */
export interface RunRemarks {
  readonly notes: readonly string[];
  readonly counted: readonly CountedNote[];
  /** Null for those of the whole run. */
  readonly faults: readonly { readonly workflow: string | null; readonly fault: Fault }[];
}

/** Live data that is not updated with every frame of the picture. */
interface LiveFigures {
  readonly atMs: number;
  /** Frames received by then. */
  readonly frames: number;
  readonly summary: RunSummary;
  readonly steps: ReadonlyMap<WorkflowAggregate, readonly LiveStep[]>;
}

export class RunAggregate {
  readonly #options: RunAggregateOptions;
  readonly #workflows: ReadonlyMap<string, WorkflowAggregate>;
  readonly #judges: readonly ThresholdJudge[];
  readonly losses = new Losses();
  readonly #notes = new Set<string>();
  readonly #counted = new CountedNotes();
  /** Faults of the run (null) and of mixes; flows have their own. */
  readonly #faults = new Map<string | null, FaultCounts>();
  readonly #events = new TimelineEvents();
  #now = 0;
  #firstStartMs: number | undefined;
  #endedMs: number | undefined;
  /** Set by hand; null when unchanged. */
  #scale: number | null = null;
  readonly #searches: Searches;
  #frames = 0;
  /** Metrics shown last. */
  #figures: LiveFigures | null = null;

  constructor(options: RunAggregateOptions) {
    this.#options = options;
    this.#workflows = new Map(
      measuredOf(options.manifests).map((one) => [
        one.name,
        new WorkflowAggregate(one, options.errorKinds),
      ]),
    );
    this.#judges = thresholdJudges(options);
    this.#searches = new Searches(options.manifests);
  }

  /** Milliseconds since the run began; called first whenever it has changed. */
  setTime(now: number): void {
    this.#now = now;
  }

  /** Workflows that are measured separately. */
  get measured(): readonly WorkflowAggregate[] {
    return [...this.#workflows.values()];
  }

  get remarks(): RunRemarks {
    const own = this.measured.map(({ faults, manifest }) => [manifest.name, faults] as const);
    const faults = [...this.#faults, ...own].flatMap(([workflow, { list }]) =>
      list.map((fault) => ({ workflow, fault })),
    );
    return { notes: [...this.#notes], counted: this.#counted.list, faults };
  }

  get anyStarted(): boolean {
    return this.#firstStartMs !== undefined;
  }

  workflowBusy(name: string, doing: WorkflowAggregate["doing"]): void {
    for (const workflow of this.#named(name)) {
      workflow.doing = doing;
      workflow.doingSinceMs = this.#now;
    }
  }

  workflowStarted(name: string, cores: readonly number[]): void {
    this.#firstStartMs ??= this.#now;
    for (const workflow of this.#named(name)) {
      workflow.started(cores, this.#now);
      if (this.#scale !== null && scalable(workflow)) workflow.loadChanged(this.#scale, this.#now);
    }
  }

  shareJoined(name: string, core: number): void {
    for (const workflow of this.#named(name)) workflow.joined(core);
  }

  planMs(name: string): number | null {
    return this.#named(name)[0]?.planMs(this.#now) ?? null;
  }

  frame(name: string, core: number, bytes: Uint8Array, vitals: CoreVitals): number {
    this.#frames++;
    const received = this.#workflows.get(name)?.frame(core, bytes, vitals, this.#now);
    return heldOf(this, received, `executor core ${core}`);
  }

  figures(name: string, from: string, figures: MergedFigures): number {
    this.#frames++;
    return heldOf(this, this.#workflows.get(name)?.figures(from, figures, this.#now), from);
  }

  coreFinished(name: string, core: number): void {
    for (const workflow of this.#named(name)) workflow.coreEnded(core);
  }

  workflowFinished(name: string, status: WorkflowStatus, error: string | null): void {
    for (const workflow of this.#named(name)) {
      workflow.status = status;
      workflow.error = error;
    }
    this.#endedMs = this.#now;
  }

  /** The run ends without waiting for its cores: unreported results are not counted. */
  givenUp(): void {
    const running = this.measured.filter(({ status }) => status === "running");
    for (const workflow of running) workflow.status = "interrupted";
    if (running.length === 0) return;
    this.note(givenUpNote(running.reduce((sum, { activeUsers }) => sum + activeUsers, 0)));
  }

  /** A workflow, or the flows of a mix. */
  #named(name: string): WorkflowAggregate[] {
    return [...this.#workflows.values()].filter(
      ({ manifest }) => manifest.name === name || manifest.mix?.name === name,
    );
  }

  workflowSkipped(name: string, becauseOf: string | null): void {
    const why =
      becauseOf === null
        ? "the run was stopped before"
        : `"${becauseOf}" failed, on which it depends`;
    this.workflowFinished(name, "not run", why);
  }

  /** Cost of losing the core now. */
  lossOf(core: number): LossFigures {
    return lossFigures(this.#runningOn(core), core, this.#now);
  }

  #runningOn(core: number): WorkflowAggregate[] {
    return [...this.#workflows.values()].filter(
      (workflow) => workflow.status === "running" && workflow.cores.includes(core),
    );
  }

  /** `figures`: metrics when the loss was noticed. */
  coreLost(core: number, what: string, { figures: known, worker = null }: LossDetails = {}): void {
    const figures = known ?? this.lossOf(core);
    const wallMs = Date.parse(this.#options.startedAt) + this.#now;
    const running = this.#runningOn(core);
    const atSeconds = seconds(this.#sinceStart(lossBeganMs(running, figures, this.#now)));
    for (const workflow of running) workflow.coreLost(core);
    const { workflow } = figures;
    this.#events.add({ atSeconds, kind: "core lost", workflow, text: what });
    const at = { atSeconds, wallMs, lostAtMs: this.#now };
    this.losses.add({ ...at, core, what, worker, figures, isUnknown: known === null });
  }

  /** Another core has replaced a lost one. */
  coreJoined(core: number, instead: number, worker: string | null): void {
    this.losses.joined(core, instead, worker);
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  countedNote(note: CountedNote): void {
    this.#counted.add(note);
  }

  fault(name: string | null, fault: Fault): void {
    const own = name === null ? undefined : this.#workflows.get(name)?.faults;
    const faults = own ?? this.#faults.get(name) ?? new FaultCounts();
    if (own === undefined) this.#faults.set(name, faults);
    faults.add(fault);
  }

  paused(): void {
    for (const workflow of this.#workflows.values()) workflow.paused(this.#now);
    this.#event("pause", "the run was paused");
  }

  resumed(): void {
    for (const workflow of this.#workflows.values()) workflow.resumed(this.#now);
    this.#event("resume", "the run went on");
  }

  /** The load was changed by hand to `factor` times the plan. */
  scaled(factor: number): void {
    const changed = this.measured.filter(scalable);
    if (changed.length > 0) this.#scale = factor;
    this.#event("scale", scaleText(factor, changed.length > 0));
    for (const one of changed) if (one.status === "running") one.loadChanged(factor, this.#now);
  }

  /** Judges what can be judged while running; without `floors` excludes thresholds that require more calls. */
  decide(floors = true): Decision {
    if (this.#judges.length + this.#searches.all.length === 0)
      return { abortedBy: [], searches: [] };
    const data = this.#data();
    const source = this.#source(data);
    const judges = this.#judges.filter(({ isFloor }) => floors || !isFloor);
    const aborting = judges.filter((one) => one.observe(source));
    for (const one of judges) this.#events.judged(one, seconds(this.#sinceStart()));
    return {
      abortedBy: aborting.map(({ threshold }) => threshold.expression),
      searches: data.flatMap((one) =>
        this.#searches.tick(one, this.#workflows.get(one.name), source),
      ),
    };
  }

  #event(kind: TimelineEvent["kind"], text: string, workflow: string | null = null): void {
    this.#events.add({ atSeconds: seconds(this.#sinceStart()), kind, workflow, text });
  }

  /** Stalled event loops are derived from the windows of their cores. */
  #stalls(): TimelineEvent[] {
    return [...this.#workflows.values()].flatMap((workflow) => {
      const secondsAt = secondsOf(workflow, this.#firstStartMs ?? 0);
      return workflow.cores.flatMap((core) => {
        const load = workflow.loadOf(core);
        if (load === undefined) return [];
        const { name } = workflow.manifest;
        return stallsOf(core, load, secondsAt).map(
          (stall): TimelineEvent => ({ ...stall, kind: "stall", workflow: name }),
        );
      });
    });
  }

  /** Records a probe judged here or by a previous leader; see `Searches`. */
  searched(searched: Searched): string | null {
    return this.#searches.searched(this.#workflows.get(searched.workflow), searched, this.#now);
  }

  /** Interval at which `decide` should be called. */
  get judgeEveryMs(): number {
    const searching = this.#searches.all.length > 0 ? SEARCH_MS : JUDGE_MS_MAX;
    return Math.min(searching, ...this.#judges.map(({ observeEveryMs }) => observeEveryMs));
  }

  live(phase: RunPhase, detail: LiveDetail): LiveRun {
    const { steps, summary } = this.#liveFigures(detail);
    const workflows = this.measured.map((workflow) =>
      liveWorkflow(workflow, steps.get(workflow) ?? [], this.#now, this.#searches),
    );
    const running = workflows.filter((workflow) => workflow.status === "running");
    const warm = running.length > 0 && running.every((workflow) => workflow.warmingUp);
    const total = (value: (workflow: LiveWorkflow) => number): number =>
      workflows.reduce((all, workflow) => all + value(workflow), 0);
    return {
      phase: livePhase(phase, warm, this.measured),
      elapsedSeconds: this.#sinceStart() / 1_000,
      totalSeconds: totalSecondsOf(this.#options.manifests),
      summary,
      workflows,
      scale: this.#scale ?? 1,
      ratePerSecond: total((workflow) => workflow.ratePerSecond),
      failedPerSecond: total((workflow) =>
        workflow.steps.reduce((all, step) => all + step.failedPerSecond, 0),
      ),
    };
  }

  /** Progress for reporters on this machine, which are called rarely: current values. */
  progress(): RunProgress {
    const summary = this.#progressSummary();
    const workflows = this.measured.map((one) => liveWorkflow(one, [], this.#now, this.#searches));
    return { summary, workflows, latencies: latenciesOf(summary, this.#data()) };
  }

  /** Where a view requests metrics, too, one summary serves both. */
  #progressSummary(): RunSummary {
    const figures = this.#figures;
    if (figures === null || this.#now - figures.atMs > WATCHED_MS)
      return this.summary({ interrupted: false, ended: false, detail: "totals" });
    if (figures.atMs === this.#now && figures.frames === this.#frames) return figures.summary;
    this.#figures = this.#figuresNow("figures");
    return this.#figures.summary;
  }

  /** Remote reporters need more detail, are called rarely and get current values. */
  #liveFigures(detail: LiveDetail): LiveFigures {
    if (detail !== "figures") return this.#figuresNow(detail);
    if (this.#figures === null || this.#now - this.#figures.atMs >= FIGURES_MS)
      this.#figures = this.#figuresNow(detail);
    return this.#figures;
  }

  #figuresNow(detail: LiveDetail): LiveFigures {
    return {
      atMs: this.#now,
      frames: this.#frames,
      summary: this.summary({ interrupted: false, ended: false, detail }),
      steps: new Map(this.measured.map((one) => [one, liveSteps(one, this.#now)])),
    };
  }

  summary(how: SummaryRequest): RunSummary {
    const data = this.#data();
    const workflows = data.map((one) => this.#workflowSummary(one, how.detail));
    const source = this.#source(data);
    const thresholds = [
      ...this.#judges.map((one) => thresholdOutcome(one, source)),
      ...this.#searches.all.flatMap((one) => one.outcomes()),
      ...data.flatMap((one) =>
        implicitGates(one, this.#judges, this.#searches.get(one.name) !== undefined),
      ),
      ...[...this.#faults].flatMap(([name, faults]) => faultGates(faults.list, name)),
    ];
    return withTrust({
      schema: SUMMARY_SCHEMA,
      runId: this.#options.runId,
      name: this.#options.name,
      title: this.#options.title,
      tags: this.#options.tags,
      headline: this.#searches.headline,
      ...judge({ thresholds, workflows, interrupted: how.interrupted, remarks: remarksOf(data) }),
      startedAt: isoText(Date.parse(this.#options.startedAt) + Math.round(this.#firstStartMs ?? 0)),
      durationSeconds: this.#durationSeconds(how.ended),
      thresholds,
      generator: generatorHealth({
        cores: this.#coreHealth(how.ended),
        cpus: this.#options.environment.cpus,
        ...loadFacts(data, this.measured),
      }),
      lost: this.losses.list((name) => this.#named(name), this.#now),
      notes: [
        ...this.#notes,
        ...this.#counted.texts,
        ...this.#searches.all.flatMap((one) => one.notes),
        ...scaleNotes(this.#scale),
        ...modelNotes(workflows),
        ...this.#events.dropped,
      ],
      workflows,
      ...(how.ended
        ? { totals: this.#totals(data), events: this.#events.with(this.#stalls()) }
        : {}),
      environment: this.#options.environment,
    });
  }

  #totals(data: readonly WorkflowData[]): Totals {
    const steps = data.flatMap((one) => one.steps.map(({ totals }) => totals));
    const aside = data.flatMap((one) => one.aside.map(({ totals }) => totals));
    const sent = [...steps, ...aside].reduce((sum, totals) => sum + totals.sent, 0);
    return totalsOf(steps, sent, this.#source(data).measuredMs(null) / 1_000);
  }

  #data(): WorkflowData[] {
    return [...this.#workflows.values()].map((workflow) => workflow.data());
  }

  #source(data: readonly WorkflowData[]): MetricSource {
    const lag = new Histogram();
    for (const workflow of this.#workflows.values()) lag.merge(workflow.lagOf("loopLag", null));
    const cpu = Math.max(0, ...this.measured.map(({ vitals }) => vitals.cpu));
    return metricSource(data, { cpu, lag }, this.#options.errorKinds);
  }

  #workflowSummary(data: WorkflowData, detail: Detail): WorkflowSummary {
    const workflow = this.#workflows.get(data.name);
    assert(workflow !== undefined, "data comes from a workflow that is known");
    const search = this.#searches.get(data.name)?.summary();
    return workflowSummary(workflow, data, this.#firstStartMs ?? 0, { search, detail });
  }

  #coreHealth(overTime = false): CoreHealth[] {
    const atStart = Array.from({ length: this.#options.environment.cores }, (_, core) => core);
    return [...atStart, ...this.losses.joinedCores].map((core) => {
      const aggregates = this.measured.filter((one) => one.vitalsOf(core) !== undefined);
      const merged = mergedLag(aggregates, core);
      const lag = distribution(merged);
      const vitals = aggregates.map((workflow) => workflow.vitalsOf(core));
      return {
        core,
        cpu: Math.max(0, ...vitals.map((one) => one?.cpu ?? 0)),
        lagMsP50: lag.p50,
        lagMsP99: lag.p99,
        lagMsMax: lag.max,
        ...lateShares(merged, mergedLag(aggregates, core, "ownLag")),
        residentBytes: Math.max(0, ...vitals.map((one) => one?.residentBytes ?? 0)),
        alive: !this.losses.has(core),
        ...(overTime ? { series: this.#coreSeries(core) } : {}),
      };
    });
  }

  #coreSeries(core: number): CoreHealth["series"] {
    const ran = [...this.#workflows.values()].flatMap((workflow) => {
      const store = workflow.loadOf(core);
      return store === undefined
        ? []
        : [{ store, secondsAt: secondsOf(workflow, this.#firstStartMs ?? 0) }];
    });
    return coreSeries(ran);
  }

  /** Milliseconds since the first workflow began. */
  #sinceStart(atMs = this.#now): number {
    return Math.max(0, atMs - (this.#firstStartMs ?? atMs));
  }

  #durationSeconds(ended: boolean): number {
    const end = ended && this.#endedMs !== undefined ? this.#endedMs : this.#now;
    return Math.max(0, end - (this.#firstStartMs ?? end)) / 1_000;
  }
}
