/**
 * What `workflow(name, options)` takes, and how it becomes a plan. The load models are a union, so
 * that the compiler refuses combinations that mean nothing (a rate together with iterations).
 */

import { type Duration, parseDuration } from "../core/base/duration.ts";
import { didYouMean } from "../core/base/nearest.ts";
import type { LoadPlan, Stage } from "../core/run/plan/load.ts";
import { type CallSettings, DEFAULT_CALL_SETTINGS } from "../protocols/protocol.ts";
import { DefinitionError } from "./errors.ts";

/** Closed: so many virtual users loop for so long. */
interface ConstantUsers {
  readonly vus: number;
  readonly duration: Duration;
}
/** Closed, with virtual users that ramp linearly through the stages. */
interface UserStages {
  readonly stages: readonly { readonly duration: Duration; readonly vus: number }[];
  /** Users at the start of the first stage; 0 by default. */
  readonly startVus?: number;
}
/** Open: so many iterations begin per second, however long each takes. */
interface ConstantRate {
  readonly rate: number;
  readonly duration: Duration;
  /** At most so many users at once; later arrivals wait, and their waiting is measured. */
  readonly maxVus?: number;
}
/** Open, with a rate that ramps linearly through the stages. */
interface RateStages {
  readonly rateStages: readonly { readonly duration: Duration; readonly rate: number }[];
  readonly startRate?: number;
  readonly maxVus?: number;
}
/** So many iterations in all, shared by the users. */
interface SharedIterations {
  readonly vus: number;
  readonly iterations: number;
  /** Upper bound; an hour by default. */
  readonly maxDuration?: Duration;
}
/** Each user does so many iterations. */
interface IterationsPerUser {
  readonly vus: number;
  readonly iterationsPerVu: number;
  readonly maxDuration?: Duration;
}
/** A workflow without steps runs its actions once; a time limit is all it takes. */
interface RunOnce {
  readonly maxDuration?: Duration;
}

/** Any one of the models. */
type LoadModel =
  | ConstantUsers
  | UserStages
  | ConstantRate
  | RateStages
  | SharedIterations
  | IterationsPerUser
  | RunOnce;

type KeyOf<Model> = Model extends unknown ? keyof Model : never;
/** The options of one model, and none of the others. */
type Only<Model> = Model extends unknown
  ? Model & { readonly [Key in Exclude<KeyOf<LoadModel>, keyof Model>]?: never }
  : never;

type LoadOptions = Only<LoadModel>;

export type ThresholdOption =
  | string
  | {
      /** For example "latency.p99 < 200ms". */
      readonly threshold: string;
      /** End the run as soon as it fails. */
      readonly abortOnFail?: boolean;
      /** Not judged before so much of the run is over. */
      readonly after?: Duration;
    };

/** The signal of the code is aborted shortly before its limit is over. */
interface LimitOptions {
  readonly setup?: Duration;
  readonly teardown?: Duration;
  readonly userSetup?: Duration;
  readonly userTeardown?: Duration;
}

interface CommonOptions {
  /** Begins so long after the workflows that begin with it; 0 by default. */
  readonly startAfter?: Duration;
  /** Load before the measured time; its results are left out. */
  readonly warmup?: Duration;
  /** How long work in flight may take to finish after the end; 5s by default. */
  readonly gracefulStop?: Duration;
  /** How long code beside the steps may take; a minute each by default. */
  readonly limits?: LimitOptions;
  /** Pause of a user after each iteration, fixed or drawn between two bounds. */
  readonly think?: Duration | { readonly min: Duration; readonly max: Duration };
  /** A user begins at most one iteration per this time. */
  readonly pacing?: Duration;
  readonly priority?: "low" | "normal" | "high" | "exclusive" | "auto" | Uppercase<string>;
  readonly thresholds?: readonly ThresholdOption[];
  /** Tags of every step. */
  readonly tags?: Readonly<Record<string, string>>;
  /** Whole call. */
  readonly timeout?: Duration;
  readonly connectTimeout?: Duration;
  /** Until the first byte of the answer. */
  readonly firstByteTimeout?: Duration;
  readonly keepAlive?: boolean;
  /** "user": each virtual user its own connections (default). "shared": one pool per core. */
  readonly connections?: "user" | "shared";
  readonly sharedConnectionsMax?: number;
  /** Redirects to follow per call; none by default. */
  readonly redirects?: number;
  /** "user": kept over iterations (default). "iteration": each iteration begins without. "off". */
  readonly cookies?: "user" | "iteration" | "off";
  /** Accept any TLS certificate. */
  readonly insecure?: boolean;
}

export type WorkflowOptions = LoadOptions & CommonOptions;

export const DEFAULT_GRACEFUL_STOP_MS = 5_000;
const DEFAULT_ITERATIONS_DURATION_MS = 3_600_000;
/** Bounds of the users an open model may have when the author names none: two seconds' worth of arrivals. */
const DEFAULT_OPEN_VUS_MIN = 100;
const DEFAULT_OPEN_VUS_MAX = 10_000;
const OPEN_VUS_PER_RATE = 2;
const VUS_MAX = 1_000_000;
const RATE_MAX = 10_000_000;

/** Every load model has one of these; `vus` goes with some of them. */
const MODEL_KEYS = ["rate", "rateStages", "stages", "iterations", "iterationsPerVu"];
const OPTION_NAMES = new Set([
  ...MODEL_KEYS,
  "vus",
  "duration",
  "startVus",
  "startRate",
  "maxVus",
  "maxDuration",
  "startAfter",
  "warmup",
  "gracefulStop",
  "limits",
  "think",
  "pacing",
  "priority",
  "thresholds",
  "tags",
  "timeout",
  "connectTimeout",
  "firstByteTimeout",
  "keepAlive",
  "connections",
  "sharedConnectionsMax",
  "redirects",
  "cookies",
  "insecure",
]);

/** What the compiler tells TypeScript users: no misspelt option, no two load models at once. */
export function checkOptions(options: object, where: string): void {
  for (const name of Object.keys(options)) {
    if (OPTION_NAMES.has(name)) continue;
    throw new DefinitionError(
      `${where}: there is no option "${name}"${didYouMean(name, OPTION_NAMES)}`,
    );
  }
  const [model, second] = MODEL_KEYS.filter((name) => name in options);
  if (model !== undefined && second !== undefined) {
    throw new DefinitionError(`${where}: ${model} and ${second} exclude each other`);
  }
  const open = model === "rate" || model === "rateStages";
  if ("vus" in options && (open || model === "stages")) {
    const hint = open ? "maxVus bounds the users of an open model" : "each stage has its own vus";
    throw new DefinitionError(`${where}: vus and ${model} exclude each other; ${hint}`);
  }
  checkOneModel(options, where);
}

/** `where` opens each message: `workflow "checkout"`. */
export function planOf(options: LoadModel, where: string): LoadPlan {
  if ("rate" in options) {
    const rate = positive(options.rate, "rate", where, RATE_MAX);
    const durationMs = required(options.duration, "duration", where);
    return open([{ durationMs, from: rate, to: rate }], options.maxVus, where);
  }
  if ("rateStages" in options) {
    const stages = stagesOf(options.rateStages, "rate", options.startRate ?? 0, where);
    return open(stages, options.maxVus, where);
  }
  if ("stages" in options) {
    return { kind: "vus", stages: stagesOf(options.stages, "vus", options.startVus ?? 0, where) };
  }
  if ("iterations" in options) {
    const vus = whole(options.vus, "vus", where, VUS_MAX);
    const iterations = whole(options.iterations, "iterations", where, Number.MAX_SAFE_INTEGER);
    return {
      kind: "shared",
      vus: Math.min(vus, iterations),
      iterations,
      durationMsMax: limitOf(options, where),
    };
  }
  if ("iterationsPerVu" in options) {
    const vus = whole(options.vus, "vus", where, VUS_MAX);
    const iterations = whole(
      options.iterationsPerVu,
      "iterationsPerVu",
      where,
      Number.MAX_SAFE_INTEGER,
    );
    return { kind: "perUser", vus, iterations, durationMsMax: limitOf(options, where) };
  }
  if ("vus" in options || "duration" in options) {
    // JavaScript users may have left one of the two out.
    const given = options as Partial<ConstantUsers>;
    const users = whole(given.vus, "vus", where, VUS_MAX);
    const durationMs = required(given.duration, "duration", where);
    return { kind: "vus", stages: [{ durationMs, from: users, to: users }] };
  }
  return { kind: "once", durationMsMax: limitOf(options, where) };
}

/** The option that makes a model what it is, and what else goes with it. */
const MODELS: readonly (readonly [string, readonly string[]])[] = [
  ["rate", ["duration", "maxVus"]],
  ["rateStages", ["startRate", "maxVus"]],
  ["stages", ["startVus"]],
  ["iterations", ["vus", "maxDuration"]],
  ["iterationsPerVu", ["vus", "maxDuration"]],
  ["vus", ["duration"]],
  ["duration", ["vus"]],
];
const LOAD_KEYS = new Set(MODELS.flatMap(([name, others]) => [name, ...others]));

/** Refuses an option that this model would ignore. */
function checkOneModel(options: object, where: string): void {
  const given = Object.entries(options)
    .filter(([key, value]) => LOAD_KEYS.has(key) && value !== undefined)
    .map(([key]) => key);
  const [name, others] = MODELS.find(([key]) => given.includes(key)) ?? ["", ["maxDuration"]];
  const stray = given.find((key) => key !== name && !others.includes(key));
  if (stray === undefined) return;
  const problem =
    name === ""
      ? `${stray} needs a rate or stages beside it`
      : `${stray} does not go with ${name}; beside ${name} there may be ${others.join(" and ")}`;
  throw new DefinitionError(`${where}: ${problem}`);
}

function open(stages: readonly Stage[], maxVus: number | undefined, where: string): LoadPlan {
  const peak = Math.max(...stages.map((stage) => Math.max(stage.from, stage.to)));
  const wanted = Math.ceil(peak * OPEN_VUS_PER_RATE);
  const vusMax =
    maxVus === undefined
      ? Math.min(Math.max(wanted, DEFAULT_OPEN_VUS_MIN), DEFAULT_OPEN_VUS_MAX)
      : whole(maxVus, "maxVus", where, VUS_MAX);
  return { kind: "rate", stages, vusMax };
}

function stagesOf(
  given: readonly { readonly duration: Duration; readonly vus?: number; readonly rate?: number }[],
  key: "vus" | "rate",
  start: number,
  where: string,
): Stage[] {
  const name = key === "vus" ? "stages" : "rateStages";
  if (!Array.isArray(given) || given.length === 0)
    throw new DefinitionError(`${where}: ${name} is empty`);
  let from = atLeastZero(start, key === "vus" ? "startVus" : "startRate", where);
  const stages = given.map((stage, i) => {
    const to = atLeastZero(stage[key], `${name}[${i}].${key}`, where);
    const durationMs = milliseconds(stage.duration, `${name}[${i}].duration`, where);
    const made = { durationMs, from, to };
    from = to;
    return made;
  });
  if (stages.every((stage) => stage.to === 0 && stage.from === 0)) {
    throw new DefinitionError(`${where}: all ${name} are 0, so nothing would run`);
  }
  return stages;
}

/** Settings of calls; what the author leaves out keeps its default. */
export function settingsOf(options: CommonOptions, where: string): CallSettings {
  const time = (value: Duration | undefined, name: string, fallback: number): number =>
    value === undefined ? fallback : required(value, name, where);
  return {
    ...DEFAULT_CALL_SETTINGS,
    timeoutMs: time(options.timeout, "timeout", DEFAULT_CALL_SETTINGS.timeoutMs),
    connectTimeoutMs: time(
      options.connectTimeout,
      "connectTimeout",
      DEFAULT_CALL_SETTINGS.connectTimeoutMs,
    ),
    firstByteTimeoutMs: time(
      options.firstByteTimeout,
      "firstByteTimeout",
      DEFAULT_CALL_SETTINGS.firstByteTimeoutMs,
    ),
    keepAlive: options.keepAlive ?? DEFAULT_CALL_SETTINGS.keepAlive,
    connections: oneOf(
      options.connections ?? DEFAULT_CALL_SETTINGS.connections,
      ["user", "shared"],
      "connections",
      where,
    ),
    sharedConnectionsMax: whole(
      options.sharedConnectionsMax ?? DEFAULT_CALL_SETTINGS.sharedConnectionsMax,
      "sharedConnectionsMax",
      where,
      VUS_MAX,
    ),
    redirectsMax: atLeastZero(
      options.redirects ?? DEFAULT_CALL_SETTINGS.redirectsMax,
      "redirects",
      where,
    ),
    cookies: oneOf(
      options.cookies ?? DEFAULT_CALL_SETTINGS.cookies,
      ["user", "iteration", "off"],
      "cookies",
      where,
    ),
    insecure: options.insecure ?? DEFAULT_CALL_SETTINGS.insecure,
  };
}

export interface Limits {
  readonly setupMs: number;
  readonly teardownMs: number;
  readonly userSetupMs: number;
  readonly userTeardownMs: number;
}

const DEFAULT_LIMIT_MS = 60_000;
const LIMIT_NAMES = ["setup", "teardown", "userSetup", "userTeardown"] as const;

export function limitsOf({ limits = {} }: CommonOptions, where: string): Limits {
  const stray = Object.keys(limits).find((name) => !LIMIT_NAMES.some((known) => known === name));
  if (stray !== undefined)
    throw new DefinitionError(
      `${where}: there is no limit "${stray}"${didYouMean(stray, LIMIT_NAMES)}`,
    );
  const limit = (name: (typeof LIMIT_NAMES)[number]): number =>
    required(limits[name] ?? DEFAULT_LIMIT_MS, `limits.${name}`, where);
  return {
    setupMs: limit("setup"),
    teardownMs: limit("teardown"),
    userSetupMs: limit("userSetup"),
    userTeardownMs: limit("userTeardown"),
  };
}

export interface PaceOptions {
  readonly thinkMinMs: number;
  readonly thinkMaxMs: number;
  readonly pacingMs: number;
}

export function paceOf(options: CommonOptions, where: string): PaceOptions {
  const { think } = options;
  const range = typeof think === "object" ? think : { min: think ?? 0, max: think ?? 0 };
  const thinkMinMs = milliseconds(range.min, "think", where);
  const thinkMaxMs = milliseconds(range.max, "think", where);
  if (thinkMaxMs < thinkMinMs)
    throw new DefinitionError(`${where}: think.max is less than think.min`);
  return { thinkMinMs, thinkMaxMs, pacingMs: milliseconds(options.pacing ?? 0, "pacing", where) };
}

export function milliseconds(value: Duration, name: string, where: string): number {
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new DefinitionError(`${where}: ${name}: ${parsed.problem}`);
  return parsed.ms;
}

function required(value: Duration | undefined, name: string, where: string): number {
  if (value === undefined)
    throw new DefinitionError(`${where}: ${name} is missing; write for example ${name}: "30s"`);
  const ms = milliseconds(value, name, where);
  if (ms <= 0) throw new DefinitionError(`${where}: ${name} must be more than zero`);
  return ms;
}

function limitOf(options: { readonly maxDuration?: Duration }, where: string): number {
  return options.maxDuration === undefined
    ? DEFAULT_ITERATIONS_DURATION_MS
    : required(options.maxDuration, "maxDuration", where);
}

function oneOf<Value extends string>(
  value: Value,
  allowed: readonly Value[],
  name: string,
  where: string,
): Value {
  if (allowed.includes(value)) return value;
  throw new DefinitionError(
    `${where}: ${name} is "${String(value)}"; it must be one of ${allowed.join(", ")}`,
  );
}

function whole(value: unknown, name: string, where: string, most: number): number {
  if (value === undefined)
    throw new DefinitionError(`${where}: ${name} is missing; write for example ${name}: 10`);
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > most) {
    throw new DefinitionError(
      `${where}: ${name} is ${String(value)}; it must be a whole number of at least 1`,
    );
  }
  return value;
}

function positive(value: unknown, name: string, where: string, most: number): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || value > most) {
    throw new DefinitionError(
      `${where}: ${name} is ${String(value)}; it must be a number above 0 (per second)`,
    );
  }
  return value;
}

function atLeastZero(value: unknown, name: string, where: string): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > RATE_MAX) {
    throw new DefinitionError(
      `${where}: ${name} is ${String(value)}; it must be a number of at least 0`,
    );
  }
  return value;
}
