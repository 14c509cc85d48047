/** Measurements of one workflow as its cores report them, and the position of its measured time in the run. */

import type { CoreVitals, MergedFigures } from "../job/core-messages.ts";
import { FaultCounts } from "../job/faults.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { isOpen, loadAt, peakLoad, plannedArrivals, planVusMax } from "../plan/load.ts";
import { FrameMerger } from "../stats/frame-merger.ts";
import { FrameWriter } from "../stats/frames.ts";
import { Histogram } from "../stats/histogram.ts";
import { type Name, NameTable, NO_TAGS, PHASE_TAG } from "../stats/names.ts";
import type { FailureSample } from "../stats/samples.ts";
import { UNANSWERED } from "../stats/unanswered.ts";
import type { WindowStore } from "../stats/window-store.ts";
import type { LoadWindow, StepWindow } from "../stats/windows.ts";
import { RUN_HISTOGRAMS, type WorkflowStats } from "../stats/workflow-stats.ts";
import type { LossFigures } from "./loss-figures.ts";
import type { WorkflowStatus } from "./model.ts";
import { OPEN_WINDOWS_MS, type Unseen, UnseenRequests } from "./unseen-requests.ts";
import type { RowWait, WorkflowData } from "./workflow-data.ts";

const OVER: ReadonlySet<WorkflowStatus> = new Set(["completed", "failed", "interrupted"]);
const OUTCOMES = ["completed", "ended", "failed", "interrupted"] as const;
/** Before any report. */
const NOTHING: Unseen = { most: 0, perSecond: 0 };
/** Standard deviations by which random arrivals may fall behind their plan before they count as missed. */
const CHANCE_DEVIATIONS = 3;
/** Pauses whose position in the run is remembered individually. */
const PAUSES_MAX = 1_000;
/** Maximum lateness of windows; beyond it the cores have stalled, and the present is shown as silence. */
const WINDOWS_LATE_MS_MAX = 1_000;

/** When measured time stood still and for how long, and the scale factors with their start. */
export interface WorkflowTiming {
  readonly pauses: readonly { readonly atMs: number; readonly ms: number }[];
  readonly factors: readonly { readonly fromMs: number; readonly factor: number }[];
}

export class WorkflowAggregate {
  readonly manifest: WorkflowManifest;
  /** Names of failure kinds, in the order in which cores number them. */
  readonly errorKinds: readonly string[];
  status: WorkflowStatus = "waiting";
  error: string | null = null;
  startedAtMs = 0;
  /** Activity beside generating load. */
  doing: "setting up" | "tearing down" | null = null;
  doingSinceMs = 0;
  cores: readonly number[] = [];
  /** Number of shares that its load is split into. */
  #shares = 1;
  readonly faults = new FaultCounts();
  /** Scale factors of the plan, with the measured time from which each applies. */
  #factors: WorkflowTiming["factors"][number][] = [];
  readonly #merger: FrameMerger;
  readonly #vitals = new Map<number, CoreVitals>();
  readonly #unseen = new Map<number, UnseenRequests>();
  /** The furthest position of any core, and when it was reported. */
  #furthest = { measuredMs: 0, seenAtMs: 0 };
  readonly #lost = new Set<number>();
  /** Cores were lost: their load may not have been generated, or is not counted. */
  hasLostLoad = false;
  /** When measured time stood still, and for how long. */
  #pauses: { readonly atMs: number; ms: number }[] = [];
  #pausedAtMs: number | undefined;
  #writer: FrameWriter | null = null;

  constructor(manifest: WorkflowManifest, errorKinds: readonly string[]) {
    this.manifest = manifest;
    this.errorKinds = errorKinds;
    const checks = manifest.checks.map((name) => ({ name, protocol: "", tags: NO_TAGS }));
    this.#merger = new FrameMerger(
      { errorKinds: errorKinds.length, corrected: manifest.corrected },
      {
        steps: new NameTable(manifest.steps.filter(({ kind }) => kind === "step")),
        checks: new NameTable(checks),
      },
    );
  }

  get #stats(): WorkflowStats {
    return this.#merger.stats;
  }

  /** Measured steps: those of the manifest, then others as they were first seen. */
  get steps(): readonly Name[] {
    return this.#stats.stepNames.list;
  }

  /** Whether a step of `steps` is counted under "(other)". */
  isFolded(step: number): boolean {
    return this.#stats.stepNames.isFolded(step);
  }

  /** Windows of a step, in the order of `steps`. */
  windowsOf(step: number): WindowStore<StepWindow> {
    return this.#stats.windowsOf(step);
  }

  started(cores: readonly number[], atMs: number): void {
    this.status = "running";
    this.startedAtMs = atMs;
    this.cores = cores;
    this.#shares = Math.max(1, cores.length);
    for (const core of cores) this.#merger.attach(core);
  }

  /** Another core continues the share of a lost one. */
  joined(core: number): void {
    this.cores = [...this.cores, core];
    this.#merger.attach(core);
  }

  /** The number of the frame that is retained now; not sound when the core uses another version. */
  frame(
    core: number,
    bytes: Uint8Array,
    vitals: CoreVitals,
    nowMs: number,
  ): ReturnType<FrameMerger["receive"]> {
    const received = this.#merger.receive(core, bytes);
    if (received.sound) this.#seen(core, vitals, nowMs);
    return received;
  }

  /** Frames of several cores at once, merged by their worker. */
  figures(
    from: string,
    { bytes, cores, execution }: MergedFigures,
    nowMs: number,
  ): ReturnType<FrameMerger["receive"]> {
    const received = this.#merger.receiveMerged(`${from}/${execution}`, bytes, cores);
    if (received.sound)
      for (const { core, health, heard } of cores) if (heard) this.#seen(core, health, nowMs);
    return received;
  }

  #seen(core: number, vitals: CoreVitals, nowMs: number): void {
    this.#vitals.set(core, vitals);
    const { measuredMs, requests } = this.#merger.progressOf(core);
    const unseen = this.#unseen.get(core) ?? new UnseenRequests();
    this.#unseen.set(core, unseen);
    const total = this.#factorAt(measuredMs) * loadAt(this.manifest.load, measuredMs);
    // A core with any load has at least one user.
    const load = this.#assignsUsers
      ? Math.max(1, Math.floor(Math.round(total) / this.#shares))
      : total;
    // A frame that was delayed or waited to be read is as old as it says.
    const saidAtMs = this.#pausedAtMs === undefined ? this.momentOf(measuredMs) : nowMs;
    unseen.seen({ measuredMs, requests, load }, Math.min(nowMs, saidAtMs));
    if (measuredMs > this.#furthest.measuredMs) this.#furthest = { measuredMs, seenAtMs: nowMs };
  }

  /** Elapsed milliseconds of the plan; null when no core has reported lately. */
  planMs(nowMs: number): number | null {
    const { measuredMs, seenAtMs } = this.#furthest;
    const sinceMs = this.#pausedAtMs === undefined ? nowMs - seenAtMs : 0;
    if (measuredMs === 0 || sinceMs > WINDOWS_LATE_MS_MAX) return null;
    return this.manifest.warmupMs + measuredMs + sinceMs;
  }

  /** Measured time of the core that is furthest. */
  get furthestMs(): number {
    return this.#furthest.measuredMs;
  }

  /** Requests counted of one core. */
  requestsOf(core: number): number {
    return this.#merger.progressOf(core).requests;
  }

  /** Known metrics of one core's share. */
  shareOf(core: number, nowMs: number): Omit<LossFigures, "workflow"> {
    const { measuredMs, requests } = this.#merger.progressOf(core);
    const users = this.#vitals.get(core)?.activeUsers ?? 0;
    const share = { users, measuredMs, requestsCounted: requests };
    const unseen = this.#unseen.get(core);
    const bound = unseen?.most(nowMs, users, this.#peakSince(unseen.measuredMs)) ?? null;
    // The load of a search is unbounded.
    const isUnbounded = bound === null || this.manifest.load.kind === "search";
    const { most: requestsUnseen, perSecond: requestsPerSecondMax } = bound ?? NOTHING;
    return { ...share, requestsUnseen, requestsPerSecondMax, isUnbounded };
  }

  /** The highest load that may have been required since a frame: its last windows were not full yet. */
  #peakSince(frameMs: number): number {
    const sinceMs = Math.max(0, frameMs - OPEN_WINDOWS_MS);
    const later = this.#factors.filter(({ fromMs }) => fromMs > sinceMs);
    const factor = Math.max(this.#factorAt(sinceMs), ...later.map((one) => one.factor));
    const peak = factor * peakLoad(this.manifest.load, sinceMs);
    return this.#assignsUsers ? Math.ceil(Math.round(peak) / this.#shares) : peak;
  }

  #factorAt(ms: number): number {
    return this.#factors.findLast(({ fromMs }) => fromMs <= ms)?.factor ?? 1;
  }

  /** Whole users, so that a core's part of them changes with their number. */
  get #assignsUsers(): boolean {
    return this.manifest.load.kind === "vus";
  }

  /** Marks the load of this core as over. */
  coreEnded(core: number): void {
    this.#merger.ended(core);
  }

  coreLost(core: number): void {
    this.#lost.add(core);
    this.hasLostLoad = true;
    this.#merger.close(core);
  }

  paused(nowMs: number): void {
    if (this.status === "running") this.#pausedAtMs ??= nowMs;
  }

  resumed(nowMs: number): void {
    if (this.#pausedAtMs === undefined) return;
    const pause = { atMs: this.elapsedMs, ms: nowMs - this.#pausedAtMs };
    this.#pausedAtMs = undefined;
    const last = this.#pauses.at(-1);
    if (last !== undefined && this.#pauses.length >= PAUSES_MAX) last.ms += pause.ms;
    else this.#pauses.push(pause);
  }

  /** True when its plan has stood still, or does. */
  get hasPaused(): boolean {
    return this.#pauses.length > 0 || this.#pausedAtMs !== undefined;
  }

  get timing(): WorkflowTiming {
    return { pauses: this.#pauses.map((one) => ({ ...one })), factors: [...this.#factors] };
  }

  /** Adopts the timing reported by the generator of the load. */
  adopt({ factors, pauses }: WorkflowTiming): void {
    this.#pauses = pauses.map((one) => ({ ...one }));
    this.#factors = [...factors];
  }

  /** Forwards what is merged here, as a frame against the one that its receiver retains. */
  tell(held: number): Uint8Array {
    this.#writer ??= new FrameWriter(this.#stats);
    this.#writer.acknowledged(held);
    return this.#writer.write();
  }

  /** Time, counted like `startedAtMs`, at which this much measured time had passed. */
  momentOf(measuredMs: number): number {
    const paused = this.#pauses.reduce(
      (sum, { atMs, ms }) => sum + (atMs < measuredMs ? ms : 0),
      0,
    );
    return this.startedAtMs + this.manifest.warmupMs + measuredMs + paused;
  }

  /** How far windows are known, in measured time; not far behind the present. */
  knownUntilMs(nowMs: number): number {
    const paused = this.#pauses.reduce((sum, { ms }) => sum + ms, 0);
    const present = nowMs - this.startedAtMs - this.manifest.warmupMs - paused;
    const stalled = this.#pausedAtMs === undefined ? present - WINDOWS_LATE_MS_MAX : 0;
    return Math.max(this.#stats.horizonMs, stalled);
  }

  /** Scales the load of the plan from now on. */
  loadChanged(factor: number, nowMs: number): void {
    const planMs = this.planMs(nowMs);
    // Frames are older than now, and the change is immediate.
    const fromMs = planMs === null ? this.elapsedMs : planMs - this.manifest.warmupMs;
    this.#factors.push({ fromMs, factor });
  }

  /** The load was changed by hand; a search changes it as planned. */
  get isScaled(): boolean {
    return this.#factors.length > 0 && this.manifest.load.kind !== "search";
  }

  /** Arrivals required in the measured time so far. */
  get plannedArrivals(): number {
    const { load } = this.manifest;
    return this.#requiredUntil((untilMs) => plannedArrivals(load, untilMs), this.elapsedMs);
  }

  /** Required load up to some measured time, including changes by hand. */
  #requiredUntil(planned: (untilMs: number) => number, endMs: number): number {
    const changes = [{ fromMs: 0, factor: 1 }, ...this.#factors].filter(
      ({ fromMs }) => fromMs <= endMs,
    );
    return changes.reduce((sum, { factor, fromMs }, at) => {
      const untilMs = changes[at + 1]?.fromMs ?? endMs;
      return sum + factor * (planned(untilMs) - planned(fromMs));
    }, 0);
  }

  /** The generated load, over all cores or by one. */
  loadOf(core: number | null): WindowStore<LoadWindow> | undefined {
    return core === null ? this.#stats.load : this.#merger.loadOf(core);
  }

  /** Samples of failures of a step, by the numbers of `steps`. */
  samplesOf(step: number): FailureSample[] {
    return this.#stats.samples.list.filter((sample) => sample.step === step);
  }

  vitalsOf(core: number): CoreVitals | undefined {
    return this.#vitals.get(core);
  }

  /** Vitals of the busiest live core, with the users of all together. */
  get vitals(): CoreVitals {
    const all = [...this.#vitals].flatMap(([core, one]) => (this.#lost.has(core) ? [] : [one]));
    return {
      cpu: Math.max(0, ...all.map(({ cpu }) => cpu)),
      residentBytes: Math.max(0, ...all.map(({ residentBytes }) => residentBytes)),
      activeUsers: this.activeUsers,
    };
  }

  /** Everything measured so far, merged over the cores. */
  data(): WorkflowData {
    const stats = this.#stats;
    const { checkNames, groupNames, stepNames } = stats;
    const measured = apart(
      shown(stepNames).map(([at, { name, protocol, tags }]) => {
        const [totals, windows] = [stats.step(at), stats.windowsOf(at)];
        return { number: at, name, protocol, tags, totals, windows };
      }),
    );
    return {
      name: this.manifest.name,
      mix: this.manifest.mix?.name ?? null,
      startedAtSeconds: this.startedAtMs / 1_000,
      measuredFromSeconds: (this.startedAtMs + this.manifest.warmupMs) / 1_000,
      elapsedSeconds: this.elapsedMs / 1_000,
      ...measured,
      measures: this.manifest.isTest,
      checks: shown(checkNames).map(([at, { name }]) => {
        const [passed = 0, failed = 0, warmup = 0] = stats.check(at).counts;
        return { name, passed, failed, ...(warmup > 0 ? { warmup } : {}) };
      }),
      groups: shown(groupNames).map(([at, { name }]) => ({ name, totals: stats.group(at) })),
      namesOverflowed: [stepNames, checkNames, groupNames].some((one) => one.overflowed),
      iterations: this.iterations,
      iterationsInside: stats.runCount("iterationsInside"),
      iterationsInterrupted: this.interruptedIterations,
      arrivals: this.manifest.corrected ? this.#arrivals() : null,
      unanswered: this.#unanswered(measured.steps),
      iterationsMissed: this.#lostIterations(),
      metrics: stats.metrics,
      counters: this.manifest.metrics
        .filter(({ kind }) => kind === "counter")
        .map(({ name }) => name),
      ended: OVER.has(this.status),
      faults: this.faults.list,
    };
  }

  #arrivals(): WorkflowData["arrivals"] {
    const stats = this.#stats;
    const started = stats.runCount("arrivalsStarted");
    const { arrivalsWaiting } = stats.moment;
    const missedByLosses = Math.max(0, this.#lostArrivals(started) - arrivalsWaiting);
    return {
      started,
      ...{ missed: arrivalsWaiting + missedByLosses, missedByLosses },
      lag: stats.runHistogram("sendLag"),
      waited: stats.runHistogram("waited"),
    };
  }

  #unanswered(steps: WorkflowData["steps"]): WorkflowData["unanswered"] {
    const kind = this.errorKinds.indexOf(UNANSWERED);
    return {
      calls: steps.reduce((sum, { totals }) => sum + (totals.failed[kind] ?? 0), 0),
      iterations: this.#stats.runCount("unresolved"),
      iterationsOver: OUTCOMES.reduce((sum, outcome) => sum + this.outcome(outcome), 0),
      shareMax: this.manifest.unansweredMax ?? null,
      users: isOpen(this.manifest.load) ? null : planVusMax(this.manifest.load),
    };
  }

  /** Required by the plan and not started, where cores were lost. Random arrivals differ from their plan anyway. */
  #lostArrivals(started: number): number {
    const { load } = this.manifest;
    if (!this.hasLostLoad || load.kind !== "rate") return 0;
    const planned = this.plannedArrivals;
    const missing = Math.floor(planned - started);
    const chance = load.poisson === true ? CHANCE_DEVIATIONS * Math.sqrt(planned) : 0;
    return missing > chance ? missing : 0;
  }

  #lostIterations(): WorkflowData["iterationsMissed"] {
    const { load } = this.manifest;
    if (!this.hasLostLoad || !OVER.has(this.status)) return null;
    if (load.kind !== "shared" && load.kind !== "perUser") return null;
    const planned = load.kind === "shared" ? load.iterations : load.iterations * load.vus;
    const made = OUTCOMES.reduce((sum, one) => sum + this.outcome(one), 0);
    return { planned, missed: Math.max(0, planned - made) };
  }

  /** Mean load of the plan in a stretch of measured time, where lost cores cannot report theirs; else null. */
  get planned(): ((fromMs: number, toMs: number) => number) | null {
    const { load, mix } = this.manifest;
    const isKnown = load.kind === "rate" || (load.kind === "vus" && mix === null);
    if (!this.hasLostLoad || !isKnown) return null;
    return (fromMs, toMs) => {
      const middleMs = (fromMs + toMs) / 2;
      return this.#factorAt(middleMs) * loadAt(load, middleMs);
    };
  }

  /** Measured time: the longest of the cores, as far as totals are known. */
  get elapsedMs(): number {
    return Math.min(this.#stats.moment.measuredMs, this.#stats.horizonMs);
  }

  get warmingUp(): boolean {
    return this.#stats.moment.warmingUp;
  }

  get activeUsers(): number {
    return [...this.#vitals].reduce(
      (sum, [core, { activeUsers }]) => sum + (this.#lost.has(core) ? 0 : activeUsers),
      0,
    );
  }

  /** Users or arrivals per second required now. */
  get target(): number {
    const { measuredMs, target } = this.#stats.moment;
    return this.planned?.(measuredMs, measuredMs) ?? target;
  }

  get iterations(): number {
    return this.outcome("completed");
  }

  get interruptedIterations(): number {
    return this.outcome("interrupted");
  }

  /** Iterations with this outcome. */
  outcome(outcome: (typeof OUTCOMES)[number]): number {
    return this.#stats.runCount(outcome);
  }

  /** Event-loop lag of one core, or of all; `ownLag`: the part caused by its own code. */
  lagOf(which: "loopLag" | "ownLag", core: number | null): Histogram {
    if (core === null) return this.#stats.runHistogram(which);
    const at = RUN_HISTOGRAMS.indexOf(which);
    return this.#merger.runOf(core)?.histograms[at]?.histogram ?? new Histogram();
  }

  /** How long users waited for rows or iterations, relative to all of their time. */
  get rowWait(): RowWait {
    const waitedMs = this.#stats.runHistogram("rowWait").sum / 1_000;
    const windows = waitedMs === 0 ? [] : this.#stats.load.list();
    const userMs = windows.reduce((sum, { content }) => sum + content.userMs, 0);
    return { workflow: this.manifest.name, waitedMs, userMs };
  }
}

/** Workflows that are measured separately: the flows of a mix replace the mix. */
export function measuredOf(manifests: readonly WorkflowManifest[]): WorkflowManifest[] {
  return manifests.flatMap((manifest) => (manifest.parts.length > 0 ? manifest.parts : [manifest]));
}

/** Rows with their numbers, without those counted under "(other)". */
function shown(names: NameTable): (readonly [number: number, name: Name])[] {
  return [...names.list.entries()].filter(([number]) => !names.isFolded(number));
}

/** Calls beside the iterations are not steps of the workflow: totals and gates exclude them. */
function apart<Step extends Pick<Name, "tags">>(
  all: readonly Step[],
): { readonly steps: Step[]; readonly aside: Step[] } {
  return { steps: all.filter((step) => !isAside(step)), aside: all.filter(isAside) };
}

/** The tag of calls made by setup and teardown code. */
export function isAside({ tags }: Pick<Name, "tags">): boolean {
  return PHASE_TAG in tags;
}

/** The frame that is retained; an unreadable one is noted in the results. */
export function heldOf(
  notes: { note(text: string): void },
  received: ReturnType<WorkflowAggregate["frame"]> | undefined,
  who: string,
): number {
  if (received?.sound === false) notes.note(`${who} sent statistics that could not be read`);
  return received?.held ?? 0;
}
