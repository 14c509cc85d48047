/** Which features a generated run combines. Every choice is drawn from the seed alone. */

import { Random } from "../../src/core/base/random.ts";

export interface Combination {
  readonly seed: string;
  readonly cores: number;
  /** Two workflows run side by side, or the second behind the first. */
  readonly order: "alone" | "together" | "chained";
  readonly workflows: readonly Part[];
  /** The run is stopped by hand so long after it began; null: it ends by itself. */
  readonly stopAfterMs: number | null;
}

export interface Part {
  readonly name: string;
  readonly load: Load;
  /** Steps one behind the other. */
  readonly layers: number;
  readonly first: "prepared" | "function" | "action";
  readonly userSetup: "none" | "quick" | "slow";
  readonly pauseFirstMs: number;
  readonly warmupMs: number;
  /** It begins so long after its layer. */
  readonly startAfterMs: number;
  /** The server answers 500 in this time, counted from the workflow's first moment. */
  readonly failures: Span | null;
  /** The server holds every answer until the end of this time. */
  readonly stall: Span | null;
  /** The last step throws in every so-manieth iteration; 0: never. */
  readonly throwEvery: number;
  readonly abortOnFail: boolean;
}

type Load =
  | { readonly kind: "closed"; readonly vus: number; readonly durationMs: number }
  | {
      readonly kind: "open";
      readonly rate: number;
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

export function combination(seed: string): Combination {
  const random = new Random(`combination/${seed}`);
  const order = pick(random, ["alone", "alone", "together", "chained"] as const);
  const names = order === "alone" ? ["w0"] : ["w0", "w1"];
  return {
    seed,
    cores: pick(random, [1, 2]),
    order,
    workflows: names.map((name) => part(name, random)),
    stopAfterMs: random.chance(0.15) ? 800 : null,
  };
}

function part(name: string, random: Random): Part {
  const load = pick(random, [
    () => ({ kind: "closed" as const, vus: pick(random, [1, 2, 4]), durationMs: DURATION_MS }),
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
    first: pick(random, ["prepared", "function", "action"] as const),
    userSetup: pick(random, ["none", "none", "quick", "slow"] as const),
    pauseFirstMs: random.chance(0.3) ? 60 : 0,
    warmupMs,
    startAfterMs: random.chance(0.2) ? 250 : 0,
    failures: timed ? failures(random, warmupMs) : null,
    stall: timed && random.chance(0.3) ? { fromMs: 500, toMs: 750 } : null,
    throwEvery: layers > 1 && random.chance(0.25) ? 5 : 0,
    abortOnFail: random.chance(0.2),
  };
}

function open(random: Random): Load {
  const rate = pick(random, [20, 50, 100]);
  return { kind: "open", rate, maxVus: pick(random, [2, 10, 60]), durationMs: DURATION_MS };
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
