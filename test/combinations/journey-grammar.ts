/** Journeys that only a flow can write, drawn from the seed alone: what a body does, under which load. */

import { Random } from "../../src/core/base/random.ts";
import type { Rows } from "./grammar.ts";

/** Actions of a body, in order. */
export type Deed =
  | { readonly kind: "call"; readonly name: string; readonly required: boolean }
  /** Calls at the same time, without groups. */
  | { readonly kind: "parallel"; readonly names: readonly string[] }
  /** A call that the body does not wait for. */
  | { readonly kind: "floating"; readonly name: string }
  | { readonly kind: "pause"; readonly ms: number }
  | { readonly kind: "group"; readonly name: string; readonly deeds: readonly Deed[] }
  /** Groups that are open side by side. */
  | { readonly kind: "together"; readonly groups: readonly Group[] }
  /** Met by the so-manieth try. */
  | { readonly kind: "poll"; readonly name: string; readonly tries: number; readonly met: boolean }
  | { readonly kind: "throw" | "end"; readonly every: number }
  /** A call that is retried when the iteration may not continue. */
  | { readonly kind: "stubborn"; readonly name: string };
type Group = Extract<Deed, { kind: "group" }>;

type JourneyLoad =
  | {
      readonly kind: "closed";
      readonly vus: number;
      readonly durationMs: number;
      /** Where its users are in the middle, if it ramps there and back. */
      readonly peak: number | null;
      /** All users together start at most this many a second. */
      readonly maxRate: number | null;
    }
  | {
      readonly kind: "open";
      readonly rate: number;
      /** Rate in the middle, if it ramps there and back. */
      readonly peak: number | null;
      readonly poisson: boolean;
      readonly maxVus: number;
      readonly durationMs: number;
    }
  | { readonly kind: "shared" | "perUser"; readonly vus: number; readonly iterations: number };

export interface JourneyFlow {
  readonly name: string;
  readonly deeds: readonly Deed[];
  /** Weight in a mix. */
  readonly weight: number;
  readonly rows: Rows;
  /** Each user makes a call before its first iteration. */
  readonly userSetup: boolean;
}

export interface Journey {
  readonly seed: string;
  readonly cores: number;
  /** The flows share the first load, or each has its own. */
  readonly mixed: boolean;
  readonly flows: readonly JourneyFlow[];
  readonly loads: readonly JourneyLoad[];
  readonly warmupMs: number;
  /** Start delay of the second flow, where each has its own load. */
  readonly startAfterMs: number;
  /** The server answers every so-manieth call of a step with 500; 0: never. */
  readonly failEvery: number;
  readonly stopAfterMs: number | null;
  readonly abortOnFail: boolean;
}

const DURATION_MS = 900;
const MIX_ITERATIONS = 160;
const WEIGHTS = [
  [1, 1],
  [70, 30],
  [70, 25, 5],
] as const;

export function journey(seed: string): Journey {
  const random = new Random(`journey/${seed}`);
  const mixed = random.chance(0.35);
  const weights = mixed ? random.pick([...WEIGHTS]) : random.pick([[1], [1], [1, 1]]);
  const loads = weights.map(() => (mixed ? mixLoad(random) : load(random)));
  const timed = loads.every(({ kind }) => kind === "closed" || kind === "open");
  return withFurther({
    seed,
    cores: random.pick([1, 2]),
    mixed,
    flows: weights.map((weight, at) => ({
      name: `f${at}`,
      deeds: [...rest(random), ...deeds(random, 2, "", mixed ? "short" : "any")],
      weight,
      rows: random.pick(["none", "none", "user", "once"] as const),
      userSetup: false,
    })),
    loads: mixed ? loads.slice(0, 1) : loads,
    warmupMs: timed && random.chance(0.3) ? 250 : 0,
    startAfterMs: random.chance(0.4) ? 200 : 0,
    failEvery: random.pick([0, 0, 4, 7]),
    stopAfterMs: random.chance(0.15) ? 500 : null,
    abortOnFail: random.chance(0.15),
  });
}

/** Drawn apart from the rest, so that what a seed gave before it still gives. */
function withFurther(made: Journey): Journey {
  const random = new Random(`journey/${made.seed}/further`);
  const flows = made.flows.map((one, at) => {
    const kind = made.loads[at]?.kind;
    const few = random.chance(0.25) && !made.mixed && kind !== "open";
    return {
      ...one,
      deeds: random.chance(0.25) ? withParallel(one.deeds, random.pick([2, 3])) : one.deeds,
      rows: few ? "few" : one.rows,
      userSetup: random.chance(0.3) && !made.mixed,
    };
  });
  const loads = made.loads.map((one): JourneyLoad => {
    const ramps = random.chance(0.3) && made.warmupMs === 0;
    if (ramps && one.kind === "closed") return { ...one, peak: 4 };
    return ramps && one.kind === "open" ? { ...one, peak: one.rate + 41 } : one;
  });
  return withStubborn({ ...made, flows, loads });
}

/** Drawn apart as well. */
function withStubborn(made: Journey): Journey {
  const random = new Random(`journey/${made.seed}/stubborn`);
  const flows = made.flows.map((one): JourneyFlow => {
    if (!random.chance(0.3)) return one;
    return { ...one, deeds: [...one.deeds, { kind: "stubborn", name: "stubborn" }] };
  });
  return { ...made, flows };
}

/** Behind the pause that it may begin with. */
function withParallel(deeds: readonly Deed[], length: number): Deed[] {
  const resting = deeds[0]?.kind === "pause" ? 1 : 0;
  const names = Array.from({ length }, (_, at) => `side${at}`);
  return [...deeds.slice(0, resting), { kind: "parallel", names }, ...deeds.slice(resting)];
}

function load(random: Random): JourneyLoad {
  const rate = random.pick([20, 60]);
  const maxVus = random.pick([2, 40]);
  const vus = random.pick([1, 3]);
  return random.pick<() => JourneyLoad>([
    () => ({
      kind: "closed",
      vus,
      peak: null,
      durationMs: DURATION_MS,
      maxRate: random.pick([null, 15]),
    }),
    () => ({
      kind: "open",
      rate,
      peak: null,
      poisson: random.chance(0.4),
      maxVus,
      durationMs: DURATION_MS,
    }),
    () => ({ kind: "shared", vus, iterations: 15 }),
    () => ({ kind: "perUser", vus, iterations: 6 }),
  ])();
}

function mixLoad(random: Random): JourneyLoad {
  return random.chance(0.5)
    ? { kind: "shared", vus: 16, iterations: MIX_ITERATIONS }
    : { kind: "open", rate: 160, peak: null, poisson: false, maxVus: 60, durationMs: DURATION_MS };
}

/** Many visitors look first and act later. */
function rest(random: Random): Deed[] {
  return random.chance(0.3) ? [{ kind: "pause", ms: random.pick([20, 80]) }] : [];
}

/** A short one for many iterations; one beside another group, which nothing in it may end. */
type How = "any" | "short" | "beside";

/** Names are unique along the way down, so that each call has one place. */
function deeds(random: Random, depth: number, prefix: string, how: How): Deed[] {
  const length = how === "short" ? 1 : random.pick([1, 2, 3]);
  const required = random.chance(0.3) && how !== "beside";
  const made: Deed[] = [
    { kind: "call", name: `${prefix}first`, required },
    ...Array.from({ length }, (_, at) => deed(random, depth, `${prefix}${at}`, how)),
  ];
  return random.chance(0.2) ? made.slice(1) : made;
}

function deed(random: Random, depth: number, name: string, how: How): Deed {
  const inside = how === "beside" ? "beside" : "any";
  const group = (own: string, its: How = inside): Group => ({
    kind: "group",
    name: own,
    deeds: deeds(random, depth - 1, `${own}-`, its),
  });
  const kinds: (() => Deed)[] = [
    () => ({ kind: "call", name, required: random.chance(0.3) && how !== "beside" }),
    () => ({ kind: "floating", name }),
    () => ({ kind: "pause", ms: random.pick([10, 40]) }),
    () => ({ kind: "poll", name, tries: random.pick([1, 3]), met: random.chance(0.7) }),
  ];
  if (how !== "beside")
    kinds.push(() => ({ kind: random.pick(["throw", "end"] as const), every: 4 }));
  if (depth > 0) {
    kinds.push(
      () => group(name),
      () => group(name),
      () => ({
        kind: "together",
        groups: [group(`${name}a`, "beside"), group(`${name}b`, "beside")],
      }),
    );
  }
  return random.pick(kinds)();
}
