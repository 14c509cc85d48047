/**
 * Load models as users write them, and how each becomes a plan. They are a union, so that the compiler rejects
 * meaningless combinations (a rate together with iterations).
 */

import type { Duration } from "../core/base/duration.ts";
import { didYouMean } from "../core/base/nearest.ts";
import type { LoadPlan, Stage } from "../core/load/plan/load.ts";
import { DefinitionError } from "./errors.ts";
import {
  atLeastZero,
  milliseconds,
  oneOf,
  perSecond,
  positive,
  RATE_MAX,
  type Rate,
  required,
  VUS_MAX,
  whole,
} from "./option-values.ts";

/** Every option of a load model. */
type LoadKey =
  | (
      | "arrivals"
      | "breakpoint"
      | "duration"
      | "iterations"
      | "iterationsPerVu"
      | "maxDuration"
      | "maxRate"
      | "maxVus"
    )
  | ("rate" | "rateStages" | "stages" | "startRate" | "startVus" | "vus");
/** The options of one model, and none of the others. */
type Only<Key extends LoadKey> = { readonly [Other in Exclude<LoadKey, Key>]?: never };

interface Throttled {
  /** Maximum of iterations begun per second by all users together. */
  readonly maxRate?: Rate;
}
interface Arrivals {
  /** Maximum of concurrent users; later arrivals wait, and their waiting is measured. */
  readonly maxVus?: number;
  /** "even" (default), or "poisson": at random times, as independent visitors. */
  readonly arrivals?: "even" | "poisson";
}
/** Closed: a number of virtual users loops for a time. */
interface ConstantUsers extends Throttled, Only<"vus" | "duration" | "maxRate"> {
  readonly vus: number;
  readonly duration: Duration;
}
/** Closed, with virtual users that ramp linearly through the stages. */
interface UserStages extends Throttled, Only<"stages" | "startVus" | "maxRate"> {
  readonly stages: readonly { readonly duration: Duration; readonly vus: number }[];
  /** Users at the start of the first stage; 0 by default. */
  readonly startVus?: number;
}
/** Open: iterations begin at a rate, however long each takes. */
interface ConstantRate extends Arrivals, Only<"rate" | "duration" | "maxVus" | "arrivals"> {
  /** Per second: 300, "300/s", "20/min", "5/h". */
  readonly rate: Rate;
  readonly duration: Duration;
}
/** Open, with a rate that ramps linearly through the stages. */
interface RateStages extends Arrivals, Only<"rateStages" | "startRate" | "maxVus" | "arrivals"> {
  readonly rateStages: readonly { readonly duration: Duration; readonly rate: Rate }[];
  readonly startRate?: Rate;
}
/** A total number of iterations, shared by the users. */
interface SharedIterations
  extends Throttled,
    Only<"vus" | "iterations" | "maxDuration" | "maxRate"> {
  readonly vus: number;
  readonly iterations: number;
  /** Upper bound; an hour by default. */
  readonly maxDuration?: Duration;
}
/** A number of iterations per user. */
interface IterationsPerUser
  extends Throttled,
    Only<"vus" | "iterationsPerVu" | "maxDuration" | "maxRate"> {
  readonly vus: number;
  readonly iterationsPerVu: number;
  readonly maxDuration?: Duration;
}
/** Search for the highest load at which the workflow's thresholds hold. */
interface Breakpoint extends Only<"breakpoint" | "maxVus" | "maxDuration"> {
  readonly breakpoint: BreakpointOptions;
  /** Maximum of concurrent users in a search of a rate. */
  readonly maxVus?: number;
  /** Upper bound of the whole search; an hour by default. */
  readonly maxDuration?: Duration;
}
interface Range<Level> {
  /** The first level, which must hold. */
  readonly from: Level;
  /** The highest level tried. */
  readonly to: Level;
}
type BreakpointOptions = (
  | { readonly rate: Range<Rate>; readonly vus?: never }
  | { readonly vus: Range<number>; readonly rate?: never }
) & {
  /** How long each level is evaluated; 20s by default. */
  readonly hold?: Duration;
  /** Settling time of each level, not evaluated; 5s by default. */
  readonly settle?: Duration;
  /** The longest wait for the calls of a level that broke, before the next one; 1m by default. */
  readonly drain?: Duration;
  /** Width of the answer, as a share of the level that broke; 0.05 by default. */
  readonly precision?: number;
};
/** A workflow without steps runs its actions once; it takes only a time limit. */
interface RunOnce extends Only<"maxDuration"> {
  readonly maxDuration?: Duration;
}

/** Any one of the models, each an interface: the compiler names it when an option is wrong. */
export type LoadOptions =
  | ConstantUsers
  | UserStages
  | ConstantRate
  | RateStages
  | SharedIterations
  | IterationsPerUser
  | Breakpoint
  | RunOnce;

const DEFAULT_ITERATIONS_DURATION_MS = 3_600_000;
/** Bounds of the users an open model may have by default: two seconds' worth of arrivals. */
const DEFAULT_OPEN_VUS_MIN = 100;
const DEFAULT_OPEN_VUS_MAX = 10_000;
const OPEN_VUS_PER_RATE = 2;

/** Every load model has one of these; `vus` goes with some of them. */
export const MODEL_KEYS = [
  "rate",
  "rateStages",
  "stages",
  "iterations",
  "iterationsPerVu",
  "breakpoint",
];

const VUS_HINTS: Readonly<Record<string, string>> = {
  stages: "each stage has its own vus",
  breakpoint: "write breakpoint: { vus: { from, to } }",
};

/** Checks what the compiler would: no two load models at once, no option that one would ignore. */
export function checkModel(options: object, where: string): void {
  const [model, second] = MODEL_KEYS.filter((name) => name in options);
  if (model !== undefined && second !== undefined) {
    throw new DefinitionError(`${where}: ${model} and ${second} exclude each other`);
  }
  const open = model === "rate" || model === "rateStages";
  if ("vus" in options && (open || model === "stages" || model === "breakpoint")) {
    const hint = VUS_HINTS[model ?? ""] ?? "maxVus bounds the users of an open model";
    throw new DefinitionError(`${where}: vus and ${model} exclude each other; ${hint}`);
  }
  checkOneModel(options, where);
}

/** `where` opens each message: `workflow "checkout"`. */
export function planOf(options: LoadOptions, where: string): LoadPlan {
  if ("rate" in options) {
    const rate = positive(perSecond(options.rate), "rate", where, RATE_MAX);
    const durationMs = required(options.duration, "duration", where);
    return open([{ durationMs, from: rate, to: rate }], options, where);
  }
  if ("rateStages" in options) {
    const stages = stagesOf(options.rateStages, "rate", options.startRate ?? 0, where);
    return open(stages, options, where);
  }
  if ("stages" in options) {
    const stages = stagesOf(options.stages, "vus", options.startVus ?? 0, where);
    return { kind: "vus", stages, ...throttleOf(options, where) };
  }
  if (options.breakpoint !== undefined) return searchOf(options, where);
  if ("iterations" in options) {
    const vus = whole(options.vus, "vus", where, VUS_MAX);
    const iterations = whole(options.iterations, "iterations", where, Number.MAX_SAFE_INTEGER);
    return {
      kind: "shared",
      vus: Math.min(vus, iterations),
      iterations,
      durationMsMax: limitOf(options, where),
      ...throttleOf(options, where),
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
    const durationMsMax = limitOf(options, where);
    return { kind: "perUser", vus, iterations, durationMsMax, ...throttleOf(options, where) };
  }
  if ("vus" in options || "duration" in options) {
    // JavaScript users may have omitted one of the two.
    const given = options as Partial<ConstantUsers>;
    const users = whole(given.vus, "vus", where, VUS_MAX);
    const durationMs = required(given.duration, "duration", where);
    const stages = [{ durationMs, from: users, to: users }];
    return { kind: "vus", stages, ...throttleOf(given, where) };
  }
  return { kind: "once", durationMsMax: limitOf(options, where) };
}

/** The option that selects a model, and the options that go with it. */
const MODELS: readonly (readonly [string, readonly string[]])[] = [
  ["rate", ["duration", "maxVus", "arrivals"]],
  ["rateStages", ["startRate", "maxVus", "arrivals"]],
  ["stages", ["startVus", "maxRate"]],
  ["iterations", ["vus", "maxDuration", "maxRate"]],
  ["iterationsPerVu", ["vus", "maxDuration", "maxRate"]],
  ["breakpoint", ["maxVus", "maxDuration"]],
  ["vus", ["duration", "maxRate"]],
  ["duration", ["vus", "maxRate"]],
];
const LOAD_KEYS = new Set(MODELS.flatMap(([name, others]) => [name, ...others]));

/** Rejects an option that this model would ignore. */
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

function open(stages: readonly Stage[], options: Arrivals, where: string): LoadPlan {
  const peak = Math.max(...stages.map((stage) => Math.max(stage.from, stage.to)));
  const spacing = oneOf(options.arrivals ?? "even", ["even", "poisson"], "arrivals", where);
  const plan = { kind: "rate", stages, vusMax: openVusMax(peak, options.maxVus, where) } as const;
  return spacing === "poisson" ? { ...plan, poisson: true } : plan;
}

function openVusMax(peakRate: number, maxVus: number | undefined, where: string): number {
  if (maxVus !== undefined) return whole(maxVus, "maxVus", where, VUS_MAX);
  const wanted = Math.ceil(peakRate * OPEN_VUS_PER_RATE);
  return Math.min(Math.max(wanted, DEFAULT_OPEN_VUS_MIN), DEFAULT_OPEN_VUS_MAX);
}

const DEFAULT_HOLD_MS = 20_000;
const DEFAULT_SETTLE_MS = 5_000;
/** Serves the backlog of twice the capacity over the default probe twice. */
const DEFAULT_DRAIN_MS = 60_000;
const DEFAULT_PRECISION = 0.05;
const BREAKPOINT_NAMES = ["rate", "vus", "hold", "settle", "drain", "precision"];

function searchOf({ breakpoint, ...options }: Breakpoint, where: string): LoadPlan {
  const name = (key: string): string => `breakpoint.${key}`;
  const stray = Object.keys(breakpoint).find((key) => !BREAKPOINT_NAMES.includes(key));
  if (stray !== undefined)
    throw new DefinitionError(
      `${where}: there is no option "${name(stray)}"${didYouMean(stray, BREAKPOINT_NAMES)}`,
    );
  if ((breakpoint.rate === undefined) === (breakpoint.vus === undefined))
    throw new DefinitionError(`${where}: a breakpoint is looked for in either a rate or vus`);
  const of = breakpoint.rate === undefined ? "vus" : "rate";
  const range = breakpoint.rate ?? breakpoint.vus;
  const level = (key: "from" | "to"): number =>
    of === "vus"
      ? whole(range[key], name(`vus.${key}`), where, VUS_MAX)
      : positive(perSecond(range[key]), name(`rate.${key}`), where, RATE_MAX);
  const [from, to] = [level("from"), level("to")];
  if (to < from) throw new DefinitionError(`${where}: breakpoint: to is less than from`);
  if (of === "vus" && options.maxVus !== undefined)
    throw new DefinitionError(`${where}: maxVus does not go with a search of vus; to bounds it`);
  return {
    kind: "search",
    of,
    from,
    to,
    holdMs: required(breakpoint.hold ?? DEFAULT_HOLD_MS, name("hold"), where),
    settleMs: milliseconds(breakpoint.settle ?? DEFAULT_SETTLE_MS, name("settle"), where),
    drainMs: milliseconds(breakpoint.drain ?? DEFAULT_DRAIN_MS, name("drain"), where),
    precision: positive(breakpoint.precision ?? DEFAULT_PRECISION, name("precision"), where, 1),
    vusMax: of === "vus" ? to : openVusMax(to, options.maxVus, where),
    durationMsMax: limitOf(options, where),
  };
}

function throttleOf({ maxRate }: Throttled, where: string): { readonly rateMax?: number } {
  return maxRate === undefined
    ? {}
    : { rateMax: positive(perSecond(maxRate), "maxRate", where, RATE_MAX) };
}

function stagesOf(
  given: readonly { readonly duration: Duration; readonly vus?: number; readonly rate?: Rate }[],
  key: "vus" | "rate",
  start: Rate,
  where: string,
): Stage[] {
  const name = key === "vus" ? "stages" : "rateStages";
  if (!Array.isArray(given) || given.length === 0)
    throw new DefinitionError(`${where}: ${name} is empty`);
  const read = (value: unknown): unknown => (key === "rate" ? perSecond(value) : value);
  let from = atLeastZero(read(start), key === "vus" ? "startVus" : "startRate", where);
  const stages = given.map((stage, i) => {
    const to = atLeastZero(read(stage[key]), `${name}[${i}].${key}`, where);
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

function limitOf(options: { readonly maxDuration?: Duration }, where: string): number {
  return options.maxDuration === undefined
    ? DEFAULT_ITERATIONS_DURATION_MS
    : required(options.maxDuration, "maxDuration", where);
}
