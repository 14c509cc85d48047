/** Which features a generated run combines. Every choice is drawn from the seed alone. */

import { Random } from "../../src/core/base/random.ts";

export interface Combination {
  readonly seed: string;
  readonly cores: number;
  /** Two workflows run side by side, or the second behind the first. */
  readonly order: "alone" | "together" | "chained";
  readonly workflows: readonly Part[];
  /** The run is stopped by hand this long after its start; null: it ends by itself. */
  readonly stopAfterMs: number | null;
}

export interface Part {
  readonly name: string;
  readonly load: Load;
  /** Steps one behind the other. */
  readonly layers: number;
  /** Calls of the first layer, at the same time: s0, and p1 and so on beside it. */
  readonly parallel: number;
  /** Rows of a feed: one per user, each once, or each once and too few of them. */
  readonly rows: Rows;
  readonly first: "prepared" | "function" | "action";
  readonly userSetup: "none" | "quick" | "slow";
  readonly pauseFirstMs: number;
  readonly warmupMs: number;
  /** Delay of the start after its layer. */
  readonly startAfterMs: number;
  /** The server answers 500 in this span, counted from the start of the workflow. */
  readonly failures: Span | null;
  /** The server holds every answer until the end of this time. */
  readonly stall: Span | null;
  /** The last step throws in every so-manieth iteration; 0: never. */
  readonly throwEvery: number;
  readonly abortOnFail: boolean;
  /** Each user makes a call when it leaves. */
  readonly userTeardown: boolean;
  /** Each user's second iteration ends with an unanswered call, and is cut off in it. */
  readonly hangs: boolean;
  /** The server stops answering from here on, counted from the start of the workflow; null: never. */
  readonly hangsFromMs: number | null;
}

export type Rows = "none" | "user" | "once" | "few";

type Load =
  | {
      readonly kind: "closed";
      readonly vus: number;
      /** Where its users are in the middle, if it ramps there and back. */
      readonly peak: number | null;
      readonly durationMs: number;
    }
  | {
      readonly kind: "open";
      readonly rate: number;
      /** Rate in the middle, if it ramps there and back. */
      readonly peak: number | null;
      readonly maxVus: number;
      readonly durationMs: number;
    }
  | { readonly kind: "shared" | "perUser"; readonly vus: number; readonly iterations: number };

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export const WINDOW_MS = 500;
export const SLOW_SETUP_MS = 150;
const DURATION_MS = 1_200;
export const PACING_MS = 20;
/** No limit of a call is over on a machine that gives it no time: seen at a load of 35. */
export const PATIENT = {
  timeout: "10m",
  connectTimeout: "10m",
  firstByteTimeout: "10m",
  gracefulStop: "10m",
} as const;

/** How long an unanswered call is waited for; all others have finished long before. */
export const HANGING_STOP_MS = 500;

/** Rows of a feed that are enough for every iteration, and of one that runs out. */
export const ROWS_ENOUGH = 2_000;
export const ROWS_FEW = 9;

/** The two stages of a load that ramps to its peak and back. */
export function ramp(
  from: number,
  peak: number,
  durationMs: number,
): readonly [readonly [number, number], readonly [number, number]] {
  return [
    [durationMs / 2, peak],
    [durationMs / 2, from],
  ];
}

interface Ramp {
  readonly rate: number;
  readonly peak: number | null;
  readonly durationMs: number;
}

/** How many arrivals an open load has. */
export function arrivalsOf({ durationMs, peak, rate }: Ramp): number {
  return Math.ceil((((rate + (peak ?? rate)) / 2) * durationMs) / 1_000 - 1e-9);
}

/** When arrival `number` is due, after the first: where the area under the rate has grown to it. */
export function dueMs({ durationMs, peak, rate }: Ramp, number: number): number {
  if (peak === null) return (number * 1_000) / rate;
  const half = durationMs / 2_000;
  const rising = ((rate + peak) / 2) * half;
  const after = (start: number, slope: number, area: number): number =>
    (Math.sqrt(start * start + 2 * slope * area) - start) / slope;
  const slope = (peak - rate) / half;
  const seconds =
    number <= rising ? after(rate, slope, number) : half + after(peak, -slope, number - rising);
  return seconds * 1_000;
}

export function combination(seed: string): Combination {
  const random = new Random(`combination/${seed}`);
  const order = pick(random, ["alone", "alone", "together", "chained"] as const);
  const names = order === "alone" ? ["w0"] : ["w0", "w1"];
  const further = new Random(`combination/${seed}/further`);
  const ends = new Random(`combination/${seed}/ends`);
  const hangs = new Random(`combination/${seed}/hangs`);
  return {
    seed,
    cores: pick(random, [1, 2]),
    order,
    workflows: names
      .map((name) => withEnds(withFurther(part(name, random), further), ends))
      .map((made) => withHang(made, hangs)),
    stopAfterMs: random.chance(0.15) ? 800 : null,
  };
}

function part(name: string, random: Random): Part {
  const load = pick(random, [
    () => closed(random),
    () => open(random),
    () => open(random),
    () => ({ kind: "shared" as const, vus: pick(random, [1, 3]), iterations: 20 }),
    () => ({ kind: "perUser" as const, vus: pick(random, [1, 3]), iterations: 8 }),
  ])();
  const timed = load.kind === "closed" || load.kind === "open";
  const warmupMs = timed && random.chance(0.35) ? 300 : 0;
  const layers = pick(random, [1, 2, 3]);
  return {
    name,
    load,
    layers,
    parallel: 1,
    rows: "none",
    first: pick(random, ["prepared", "function", "action"] as const),
    userSetup: pick(random, ["none", "none", "quick", "slow"] as const),
    pauseFirstMs: random.chance(0.3) ? 60 : 0,
    warmupMs,
    startAfterMs: random.chance(0.2) ? 250 : 0,
    failures: timed ? failures(random, warmupMs) : null,
    stall: timed && random.chance(0.3) ? { fromMs: 500, toMs: 750 } : null,
    throwEvery: layers > 1 && random.chance(0.25) ? 5 : 0,
    abortOnFail: random.chance(0.2),
    userTeardown: false,
    hangs: false,
    hangsFromMs: null,
  };
}

/** Drawn apart as well: a target that hangs for good, in a load that time ends. */
function withHang(made: Part, random: Random): Part {
  const { load, warmupMs } = made;
  const timed = load.kind === "closed" || load.kind === "open";
  const hangs = random.chance(0.25) && timed && warmupMs === 0 && !made.hangs;
  return hangs ? { ...made, hangsFromMs: 600 } : made;
}

/** Drawn apart as well. */
function withEnds(made: Part, random: Random): Part {
  const userTeardown = random.chance(0.4);
  return { ...made, userTeardown, hangs: random.chance(0.2) && made.load.kind === "closed" };
}

/** Drawn apart from the rest, so that what a seed gave before it still gives. */
function withFurther(made: Part, random: Random): Part {
  const { load, warmupMs } = made;
  const ramps = random.chance(0.3) && warmupMs === 0;
  const timed = load.kind === "closed" || load.kind === "open";
  const rows = random.pick<Rows>(["none", "none", "user", "once", "few"]);
  return {
    ...made,
    load: ramps && timed ? { ...load, peak: load.kind === "closed" ? 5 : 61 } : load,
    parallel: random.pick([1, 1, 2, 3]),
    // Arrivals without a row are dropped: the plan of an open load is over then.
    rows: rows === "few" && load.kind === "open" ? "once" : rows,
  };
}

function closed(random: Random): Load {
  const vus = pick(random, [1, 2, 4]);
  return { kind: "closed", vus, peak: null, durationMs: DURATION_MS };
}

function open(random: Random): Load {
  const rate = pick(random, [20, 50, 100]);
  const maxVus = pick(random, [2, 10, 60]);
  return { kind: "open", rate, peak: null, maxVus, durationMs: DURATION_MS };
}

/** In the warm-up, in the first moments, in the middle, in the last moments, or never. */
function failures(random: Random, warmupMs: number): Span | null {
  const from = pick(random, [null, null, -200, 0, 500, DURATION_MS - 300]);
  if (from === null || warmupMs + from < 0) return null;
  return { fromMs: warmupMs + from, toMs: warmupMs + from + (from < 0 ? 100 : 300) };
}

function pick<Value>(random: Random, values: readonly Value[]): Value {
  const value = values[Math.floor(random.float() * values.length)];
  if (value === undefined) throw new Error("there is something to pick from");
  return value;
}
