/** Runs at their edges, drawn from the seed alone: hanging targets, small feeds, many names, lost cores. */

import { Random } from "../../src/core/base/random.ts";

export interface Edge {
  readonly seed: string;
  readonly cores: number;
  /** Two flows share the load; otherwise there is one. */
  readonly mixed: boolean;
  readonly load: EdgeLoad;
  readonly rows: EdgeRows;
  /** How long a core waits for each block of rows or iterations. */
  readonly leaseMs: number;
  /** How steps are named, from how many names, and how many calls an iteration makes at the same time. */
  readonly names: {
    readonly kind: "named" | "unnamed";
    readonly count: number;
    readonly calls: number;
  };
  /** Milliseconds for which the body of an iteration blocks the loop, by the number of the iteration. */
  readonly stops: Readonly<Record<number, number>>;
  /** The target answers nothing from here on; null: it does. */
  readonly hangsFromMs: number | null;
  /** The second core is lost at this time; null: it is not. */
  readonly losesAtMs: number | null;
}

type EdgeLoad =
  | { readonly kind: "open"; readonly rate: number; readonly maxVus: number }
  | { readonly kind: "closed"; readonly vus: number }
  | { readonly kind: "shared"; readonly vus: number; readonly iterations: number }
  /** A search for the rate that a server with a queue serves. */
  | { readonly kind: "search"; readonly capacity: number };

/** A feed of four rows, in one order or another, or one whose rows are used once. */
type EdgeRows = "none" | "four" | "four random" | "four per user" | "once";

export const EDGE_DURATION_MS = 900;
export const EDGE_STOP_MS = 400;
export const FOUR = 4;
/** More than a flow keeps of steps named by their call, and of named ones. */
const UNNAMED_COUNT = 230;
const NAMED_COUNT = 560;

export function edge(seed: string): Edge {
  const random = new Random(`edge/${seed}`);
  const cores = random.pick([1, 2]);
  const mixed = random.chance(0.4);
  const load = loadOf(random);
  const timed = load.kind === "open" || load.kind === "closed";
  const names = load.kind === "shared" ? namesOf(random) : FEW;
  const rows = random.pick<EdgeRows>(["none", "four", "four random", "four per user", "once"]);
  const leaseMs = random.pick(load.kind === "shared" ? [0, 30] : [0, 40, 1_200]);
  const stops = random.pick([{}, {}, { 4: 250, 9: 250 }, { 6: 400 }]);
  const hangs = random.chance(0.3) && timed;
  const loses = random.chance(0.3) && timed && !hangs && !mixed && cores === 2;
  return {
    seed,
    ...{ cores, load, names, leaseMs },
    mixed: mixed && load.kind !== "search",
    rows: load.kind === "search" ? "none" : rows,
    stops: load.kind === "search" ? {} : stops,
    hangsFromMs: hangs ? random.pick([0, 450]) : null,
    losesAtMs: loses ? EDGE_DURATION_MS / 2 : null,
  };
}

const FEW = { kind: "named", count: 3, calls: 2 } as const;

function namesOf(random: Random): Edge["names"] {
  return random.pick<Edge["names"]>([
    FEW,
    { kind: "unnamed", count: UNNAMED_COUNT, calls: 12 },
    { kind: "named", count: NAMED_COUNT, calls: 16 },
  ]);
}

function loadOf(random: Random): EdgeLoad {
  const maxVus = random.pick([3, 60]);
  const kind = random.pick([
    "open",
    "open",
    "open",
    "closed",
    "shared",
    "shared",
    "search",
  ] as const);
  if (kind === "open") return { kind, rate: 80, maxVus };
  if (kind === "closed") return { kind, vus: 4 };
  if (kind === "search") return { kind, capacity: random.pick([50, 70]) };
  return { kind, vus: 6, iterations: 120 };
}
