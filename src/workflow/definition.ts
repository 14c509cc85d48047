/**
 * A workflow as data: what the builder collected, what the engine runs, and (`manifestOf`) the plain part that is sent
 * to a manager, which plans from it alone without running user code. (WF-6)
 */

import { didYouMean } from "../core/base/nearest.ts";
import { layersOf } from "../core/load/job/graph.ts";
import type { FlowManifest, WorkflowManifest } from "../core/load/job/manifest.ts";
import { type Priority, parsePriority } from "../core/load/job/partition.ts";
import { isOpen, type LoadPlan, planVusMax, shareOfPlan } from "../core/load/plan/load.ts";
import {
  type KnownNames,
  parseThreshold,
  type ThresholdSpec,
} from "../core/load/results/thresholds.ts";
import type { CallResult, CallSettings, PreparedCall } from "../protocols/protocol.ts";
import type { ProvideContext, SetupContext, StepContext } from "./context.ts";
import { DefinitionError } from "./errors.ts";
import type { Feed } from "./feed.ts";
import type { FlowPart } from "./flow-part.ts";
import { planOf } from "./load-options.ts";
import { declaredMetrics, Metric, type MetricKind } from "./metrics.ts";
import { milliseconds, shareOf } from "./option-values.ts";
import {
  checkOptions,
  DEFAULT_GRACEFUL_STOP_MS,
  type Limits,
  limitsOf,
  type PaceOptions,
  paceOf,
  reportsOf,
  settingsOf,
  type WorkflowOptions,
} from "./options.ts";
import type { ThresholdList, ThresholdOption } from "./threshold-types.ts";

/** Inside the engine names are checked and types are erased. */
// biome-ignore lint/suspicious/noExplicitAny: user functions of any result and data types meet here.
type AnyContext = StepContext<any, any, any, any>;
export type StepFunction = (context: AnyContext) => unknown;

export interface StepDefinition {
  readonly name: string;
  /** A step is measured, an action is not. */
  readonly kind: "step" | "action";
  readonly after: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
  readonly run: PreparedCall | StepFunction;
}

export interface CheckDefinition {
  readonly name: string;
  /** Steps it refers to: it runs right after their layer; at the end of the iteration when empty. */
  readonly after: readonly string[];
  readonly test: (context: AnyContext) => unknown;
}

export interface MetricDefinition {
  readonly name: string;
  readonly kind: MetricKind;
  readonly value: (context: AnyContext) => unknown;
}

interface ProvideDefinition {
  readonly key: string;
  readonly to: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: see AnyContext.
  readonly value: (context: ProvideContext<any, any>) => unknown;
}

interface UseDefinition {
  readonly name: string;
  readonly from: readonly string[];
  readonly keys: Readonly<Record<string, unknown>>;
  readonly value: (values: Readonly<Record<string, unknown>>) => unknown;
}

/** One flow of a mix. */
interface MixPart {
  readonly definition: WorkflowDefinition;
  /** Share of the iterations, relative to the others. */
  readonly weight: number;
}

let made = 0;

export class WorkflowDefinition {
  /** Order in the file: exports of a module come in alphabetical order. */
  readonly place = made++;
  readonly name: string;
  readonly plan: LoadPlan;
  readonly pace: PaceOptions;
  readonly settings: CallSettings;
  readonly priority: Priority;
  readonly startAfterMs: number;
  readonly warmupMs: number;
  readonly gracefulStopMs: number;
  /** Undefined for the default. */
  readonly unansweredMax: number | undefined;
  readonly limits: Limits;
  readonly thresholds: ThresholdSpec[] = [];
  readonly tags: Readonly<Record<string, string>>;
  /** Destinations of the run's results. */
  readonly reports: readonly string[];
  readonly dependsOn: string[] = [];
  readonly steps: StepDefinition[] = [];
  readonly checks: CheckDefinition[] = [];
  readonly metrics: MetricDefinition[] = [];
  readonly provides: ProvideDefinition[] = [];
  readonly uses: UseDefinition[] = [];
  readonly feeds = new Map<string, Feed<unknown>>();
  setup: ((context: SetupContext) => unknown) | undefined;
  teardown: ((context: SetupContext & { readonly setup: unknown }) => unknown) | undefined;
  userSetup: ((context: AnyContext) => unknown) | undefined;
  userTeardown: ((context: AnyContext) => unknown) | undefined;
  /** Functions instead of layers: a flow. */
  readonly flow: FlowPart | null;
  /** Flows that share its iterations: a mix. */
  readonly mix: readonly MixPart[];
  /** Opens each message: `workflow "checkout"`. */
  readonly #where: string;
  /** Names of its declared metrics; undefined: any of the file. */
  readonly #metricNames: readonly string[] | undefined;

  constructor(
    name: string,
    options: WorkflowOptions,
    flow: FlowPart | null = null,
    mix: readonly MixPart[] = [],
  ) {
    if (typeof name !== "string" || name.trim() === "") {
      throw new DefinitionError('a workflow needs a name: workflow("checkout", { … })');
    }
    this.flow = flow;
    this.mix = mix;
    const where = `${mix.length > 0 ? "mix" : flow === null ? "workflow" : "flow"} "${name}"`;
    if (typeof options !== "object" || options === null) {
      throw new DefinitionError(
        `${where}: options are missing; write for example { vus: 10, duration: "30s" }`,
      );
    }
    checkOptions(options, where);
    this.name = name;
    this.plan = planOf(options, where);
    this.pace = paceOf(options, where);
    this.settings = { ...settingsOf(options, where), ...(flow === null ? {} : flowSettings(flow)) };
    const priority = parsePriority(options.priority ?? "auto");
    if (!priority.ok) throw new DefinitionError(`${where}: ${priority.problem}`);
    this.priority = priority.priority;
    this.startAfterMs = milliseconds(options.startAfter ?? 0, "startAfter", where);
    this.warmupMs = milliseconds(options.warmup ?? 0, "warmup", where);
    const graceful = options.gracefulStop ?? DEFAULT_GRACEFUL_STOP_MS;
    this.gracefulStopMs = milliseconds(graceful, "gracefulStop", where);
    this.unansweredMax =
      options.maxUnanswered === undefined
        ? undefined
        : shareOf(options.maxUnanswered, "maxUnanswered", where);
    this.limits = limitsOf(options, where);
    this.#where = where;
    this.#metricNames = options.metrics && namesOf(options.metrics, where);
    this.judge(options.thresholds ?? []);
    this.tags = options.tags ?? {};
    this.reports = reportsOf(options, where);
    for (const [feed, source] of flow?.feeds ?? []) this.feeds.set(feed, source);
    if (this.plan.kind === "search" && this.thresholds.length === 0)
      throw new DefinitionError(
        `${where}: a search for the breakpoint needs thresholds that can break, for example ` +
          'thresholds: ["latency.p99 < 250ms", "errors.rate < 1%"]',
      );
  }

  /** Further thresholds, beside those of the options. */
  judge(given: ThresholdList): void {
    if (!Array.isArray(given))
      throw new DefinitionError(
        `${this.#where}: thresholds are a list: thresholds: ["latency.p99 < 200ms"]`,
      );
    const own = this.metrics.map(({ name }) => name);
    const known = this.#metricNames && { customMetrics: [...this.#metricNames, ...own] };
    for (const option of given) {
      const threshold = thresholdOf(option, known, this.#where);
      if (this.plan.kind === "search" && threshold.abortOnFail)
        throw new DefinitionError(
          `${this.#where}: abortOnFail would end the search at its first answer`,
        );
      this.thresholds.push(threshold);
    }
  }

  get isTest(): boolean {
    if (this.flow !== null || this.mix.length > 0) return true;
    return this.steps.some((step) => step.kind === "step");
  }

  /** Tags of a flow's steps that make a series: those it lists, and those its thresholds select. */
  get series(): string[] {
    const selected = this.thresholds.flatMap(({ expression }) => {
      const parsed = parseThreshold(expression);
      return parsed.ok ? Object.keys(parsed.threshold.tags) : [];
    });
    const own = selected.filter((key) => !["step", "kind", "ok", "group", "check"].includes(key));
    return [...new Set([...(this.flow?.series ?? []), ...own])];
  }

  /** Step names by layer; throws when a name is unknown or steps form a cycle. */
  layers(): string[][] {
    const result = layersOf(this.steps);
    if (!result.ok) throw new DefinitionError(`workflow "${this.name}": ${result.message}`);
    return result.layers;
  }
}

/** Limit of browsers: parallel calls of one user open further connections up to this. */
const FLOW_CONNECTIONS_PER_ORIGIN_MAX = 6;

function flowSettings({ readBody }: FlowPart): Partial<CallSettings> {
  return { readBody, connectionsPerOriginMax: FLOW_CONNECTIONS_PER_ORIGIN_MAX };
}

function namesOf(metrics: unknown, where: string): readonly string[] {
  const isMetric = (one: unknown): one is Metric => one instanceof Metric;
  if (!Array.isArray(metrics) || !metrics.every(isMetric))
    throw new DefinitionError(
      `${where}: metrics are a list of those that it has: metrics: [counter("paid")]`,
    );
  return metrics.map(({ name }) => name);
}

const THRESHOLD_OPTIONS = ["threshold", "abortOnFail", "after"];

function thresholdOf(
  option: ThresholdOption,
  known: KnownNames | undefined,
  where: string,
): ThresholdSpec {
  const given = typeof option === "string" ? { threshold: option } : option;
  const stray = Object.keys(given).find((name) => !THRESHOLD_OPTIONS.includes(name));
  if (stray !== undefined)
    throw new DefinitionError(
      `${where}: a threshold has no option "${stray}"${didYouMean(stray, THRESHOLD_OPTIONS)}`,
    );
  const parsed = parseThreshold(given.threshold, known);
  if (!parsed.ok)
    throw new DefinitionError(
      `${where}: threshold "${String(given.threshold)}": ${parsed.problem}`,
    );
  return {
    expression: parsed.threshold.expression,
    abortOnFail: given.abortOnFail ?? false,
    afterMs: milliseconds(given.after ?? 0, "threshold.after", where),
  };
}

export function isPreparedCall(value: unknown): value is PreparedCall<CallResult> {
  return typeof value === "object" && value !== null && "prepare" in value && "bind" in value;
}

/** The plain-data description of a workflow. */
export function manifestOf(definition: WorkflowDefinition): WorkflowManifest {
  const layers = definition.layers();
  const layerOf = new Map(
    layers.flatMap((names, layer) => names.map((name) => [name, layer] as const)),
  );
  const plan = definition.isTest
    ? definition.plan
    : ({ kind: "once", durationMsMax: onceLimit(definition.plan) } as const);
  return {
    name: definition.name,
    load: plan,
    startAfterMs: definition.startAfterMs,
    warmupMs: definition.isTest ? definition.warmupMs : 0,
    gracefulStopMs: definition.gracefulStopMs,
    unansweredMax: definition.unansweredMax,
    setupMsMax: definition.limits.setupMs,
    teardownMsMax: definition.limits.teardownMs,
    priority: definition.priority,
    dependsOn: [...definition.dependsOn],
    isTest: definition.isTest,
    parts: partsOf(definition),
    mix: null,
    flow: flowManifestOf(definition),
    steps: definition.steps.map((step) => ({
      name: step.name,
      kind: step.kind,
      protocol: protocolOf(step),
      after: [...step.after],
      layer: layerOf.get(step.name) ?? 0,
      tags: { ...definition.tags, ...step.tags },
    })),
    checks: definition.checks.map((check) => check.name),
    metrics: declaredMetrics(),
    provides: definition.provides.map(({ key, to }) => ({ key, to: [...to] })),
    uses: definition.uses.map(({ name, from, keys }) => ({
      name,
      from: [...from],
      keys: Object.keys(keys),
    })),
    thresholds: [...definition.thresholds],
    corrected: isOpen(plan),
    connectionsMax: connectionsMax(definition, layers),
    targets: targetsOf(definition, layers),
  };
}

export function protocolOf({ kind, run }: StepDefinition): string {
  if (kind === "action") return "action";
  return isPreparedCall(run) ? run.protocol : "function";
}

/** Flows of a mix: its load and times, their own names, thresholds and settings. */
function partsOf(mix: WorkflowDefinition): WorkflowManifest[] {
  const sum = mix.mix.reduce((all, { weight }) => all + weight, 0);
  return mix.mix.map(({ definition, weight }) => ({
    ...manifestOf(definition),
    load: shareOfPlan(mix.plan, weight / sum),
    startAfterMs: mix.startAfterMs,
    warmupMs: mix.warmupMs,
    gracefulStopMs: mix.gracefulStopMs,
    unansweredMax: mix.unansweredMax ?? definition.unansweredMax,
    corrected: isOpen(mix.plan),
    mix: { name: mix.name, share: weight / sum },
  }));
}

function flowManifestOf({ flow, series }: WorkflowDefinition): FlowManifest | null {
  return flow === null ? null : { patterns: [...flow.stepPatterns], series };
}

function onceLimit(plan: LoadPlan): number {
  return "durationMsMax" in plan
    ? plan.durationMsMax
    : plan.stages.reduce((sum, stage) => sum + stage.durationMs, 0);
}

/** Groups targets by destination: per layer, as many as it has steps for it, and the widest layer counts. */
function targetsOf(
  definition: WorkflowDefinition,
  layers: readonly (readonly string[])[],
): WorkflowManifest["targets"] {
  if (!definition.isTest) return [];
  const { settings, steps } = definition;
  const widest = new Map<string | null, number>();
  for (const names of definition.flow === null ? layers : [[""]]) {
    const here = new Map<string | null, number>();
    for (const name of names) {
      const run = steps.find((step) => step.name === name)?.run;
      const origin = isPreparedCall(run) ? run.origin?.(settings) : undefined;
      const to = origin === undefined ? null : `${origin.hostname}:${origin.port}`;
      here.set(to, (here.get(to) ?? 0) + 1);
    }
    for (const [to, count] of here) widest.set(to, Math.max(widest.get(to) ?? 0, count));
  }
  const shared = settings.connections === "shared";
  return [...widest].map(([to, count]) => ({
    to,
    perUser: shared ? 0 : count,
    perCore: shared ? settings.sharedConnectionsMax : 0,
  }));
}

/** Sockets this workflow may hold open at once: widest layer, for every user. */
function connectionsMax(
  definition: WorkflowDefinition,
  layers: readonly (readonly string[])[],
): number {
  if (!definition.isTest) return 1;
  if (definition.settings.connections === "shared") return definition.settings.sharedConnectionsMax;
  // Parallel calls of a body are unknown: most await each call.
  return planVusMax(definition.plan) * Math.max(1, ...layers.map((names) => names.length));
}
