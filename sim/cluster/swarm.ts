/**
 * Fault plan of a seed: sizes, timings, which faults exist (about half of them) and how strong they are, then a list of
 * concrete faults with times. The list is data, so that a failing run can be shrunk by leaving faults out.
 */

import type { Random } from "../../src/core/base/random.ts";
import { CALM_LINKS, type LinkFaults } from "../kernel/network.ts";
import { CALM_STREAMS, type StreamFaults } from "../kernel/streams.ts";
import type { LedgerDiskFaults } from "../ledger/disk.ts";
import type { JobStyle } from "./jobs.ts";

/** `at`: index of a node: managers first, then workers, then clients, then gates. */
export type TiersFault =
  | {
      readonly kind: "crash";
      readonly at: number;
      readonly power: boolean;
      readonly forMs: number;
    }
  /** A worker is killed, and comes back under its name with an empty data directory. */
  | { readonly kind: "wipeWorker"; readonly at: number; readonly forMs: number }
  /** As on SIGTERM: managers hand over, workers drain. */
  | { readonly kind: "stop"; readonly at: number; readonly forMs: number }
  | { readonly kind: "pause"; readonly at: number; readonly forMs: number }
  | {
      readonly kind: "partition";
      /** Side of each node; links between the sides are cut. */
      readonly sides: readonly number[];
      readonly oneWay: boolean;
      readonly forMs: number;
    }
  /** One node receives nothing, or reaches no other, or both. */
  | {
      readonly kind: "isolate";
      readonly at: number;
      readonly hears: boolean;
      readonly isHeard: boolean;
      readonly forMs: number;
    }
  /** The connections of a node to all others break, and can be made again at once. */
  | { readonly kind: "reset"; readonly at: number }
  | {
      readonly kind: "slow";
      readonly at: number;
      readonly delayMs: number;
      readonly forMs: number;
    }
  | {
      readonly kind: "slowDisk";
      readonly at: number;
      readonly slowMs: number;
      readonly forMs: number;
    }
  /** The disk of one manager accepts no more files; its log continues. */
  | { readonly kind: "fullDisk"; readonly at: number; readonly forMs: number }
  | { readonly kind: "killCore"; readonly at: number; readonly draw: number }
  | { readonly kind: "wallJump"; readonly at: number; readonly ms: number }
  /** The current leader of a job dies, pauses, or is cut off from its peers or from all. */
  | {
      readonly kind: "leaderTrouble";
      readonly draw: number;
      readonly what: "crash" | "pause" | "stop" | "cutFromManagers" | "isolate";
      readonly forMs: number;
    }
  /** The next node that begins to lead a job, or commits the report of a workflow or the end, is struck right then. */
  | {
      readonly kind: "ambush";
      readonly on: "leads" | "report" | "end";
      readonly what: "crash" | "cutFromManagers";
      readonly forMs: number;
    }
  /** Every input costs one node this much time. */
  | {
      readonly kind: "slowCpu";
      readonly at: number;
      readonly costMs: number;
      readonly forMs: number;
    }
  /** A client sends requests without waiting for answers. */
  | {
      readonly kind: "flood";
      readonly at: number;
      readonly perSecond: number;
      /** Share of new jobs; the others query, list, watch and cancel. */
      readonly submissions: number;
      readonly forMs: number;
    }
  /** The cores of one worker send their metrics far more often. */
  | {
      readonly kind: "frames";
      readonly at: number;
      readonly everyMs: number;
      readonly forMs: number;
    }
  /** The executor processes of these workers stand still, as without any CPU; the workers themselves do not. */
  | { readonly kind: "freeze"; readonly workers: readonly number[]; readonly forMs: number }
  /** All managers and workers of a datacenter at once. */
  | {
      readonly kind: "loseDatacenter";
      readonly place: number;
      readonly power: boolean;
      readonly forMs: number;
    }
  /** Between all gates and one datacenter. */
  | { readonly kind: "cutDatacenter"; readonly place: number; readonly forMs: number }
  | { readonly kind: "restartAll"; readonly power: boolean; readonly spreadMs: number };

interface TimedFault {
  readonly at: number;
  readonly fault: TiersFault;
}

/**
 * Targets of faults: all nodes, or one tier, whose loss must then cost the others nothing; or only executor cores,
 * which their workers then replace; or none, and nodes are only overloaded, or their cores only stand still, or a
 * datacenter is cut off from the gates for about a minute.
 */
type Scope =
  | ("all" | "managers" | "workers" | "cores" | "gates" | "none")
  | ("pressure" | "frozen" | "away");

export interface TiersPlan {
  /** 0: clients use the managers of the one datacenter. */
  readonly gates: number;
  readonly datacenters: number;
  /** Managers of all datacenters. */
  readonly managers: number;
  readonly workers: number;
  /** The datacenter of each worker, from 0; absent: round robin. */
  readonly workerPlaces?: readonly number[];
  readonly clients: number;
  readonly coresPerWorker: number;
  readonly isolationMs: number;
  readonly scope: Scope;
  readonly thinkMs: number;
  readonly jobs: JobStyle;
  /** Chance that a client repeats a used key, or follows the job of another. */
  readonly repeated: number;
  /** Finished jobs that a datacenter remembers; null: the default. Few, where clients never ask for old ones. */
  readonly endedMax: number | null;
  readonly disk: LedgerDiskFaults;
  readonly links: LinkFaults;
  readonly streams: StreamFaults;
  readonly clockDrift: number;
  readonly compactEntries: number;
  readonly checkpointEveryMs: number;
  /** Cost of one input of a node; null: none. */
  readonly costMs: number | null;
  readonly faults: readonly TimedFault[];
  readonly healAt: number;
}

const WARM_UP_MS = 4_000;
/** After healing every job must have ended within this. */
export const TIERS_CALM_MS = 420_000;

interface PlanFlags {
  readonly gates: boolean;
  readonly pressure: boolean;
  /** Anything may be drawn; otherwise a profile decides what there is. */
  readonly sweeps: boolean;
}

export function drawTiersPlan(random: Random, minutes: number, flags: PlanFlags): TiersPlan {
  const { gates, pressure, sweeps } = flags;
  const isAway = pressure && sweeps && random.fork("away").chance(AWAY);
  const drawn = drawTiers(random, gates || isAway);
  const pressed = pressure ? drawPressed(random, drawn) : {};
  const tiers = { ...drawn, ...pressed, ...(isAway ? { scope: "away" as const } : {}) };
  const { scope, workers } = tiers;
  const healAt = Math.max(WARM_UP_MS + 20_000, minutes * 60_000);
  const range = { ...tiers, healAt, pressure };
  const strong = scope === "all";
  const coresPerWorker = 1 + random.below(3);
  const plan = {
    ...{ ...tiers, healAt, coresPerWorker },
    isolationMs: scope === "managers" ? 60_000 : random.pick([6_000, 20_000, 60_000]),
    thinkMs: random.pick([200, 2_000, 8_000]),
    jobs: {
      loadMsMax: random.pick(scope === "frozen" ? [25_000, 60_000] : [3_000, 10_000, 25_000]),
      limited: scope === "frozen" ? 0.6 : 0,
      stubborn: 0,
      controlled: random.pick([0, 0.3, 0.7]),
      bundleBytes: random.pick([0, 0, 300_000]),
      coresMax: (workers / tiers.datacenters) * coresPerWorker,
      datacenters: tiers.datacenters,
    },
    repeated: random.pick([0, 0.2]),
    disk: drawDisk(random.fork("disk")),
    links: strong
      ? drawLinks(random.fork("links"))
      : scope === "pressure"
        ? drawFarLinks(random.fork("links"))
        : CALM_LINKS,
    streams: strong ? drawStreams(random.fork("streams")) : CALM_STREAMS,
    clockDrift: random.pick(pressure ? [0, 0.002, 0.02] : [0, 0.002]),
    compactEntries: random.pick([60, 512]),
    checkpointEveryMs: 60_000,
    costMs: pressure ? COST_MS : null,
    faults: scope === "none" ? [] : drawFaults(random.fork("faults"), range),
  };
  const endedMax = random.fork("ended").pick([null, 3, 10]);
  const isAskedFor = plan.repeated > 0 || tiers.gates > 0 || pressure;
  return { ...plan, endedMax: isAskedFor ? null : endedMax };
}

/** Share of overload seeds with gates in which a datacenter is cut off, and nothing else. */
const AWAY = 0.15;
/** Cost of an input on nodes that are not slow. */
const COST_MS = 0.05;

/** Only overloaded, or with all other faults on top. */
function drawPressed(
  random: Random,
  { gates, workers }: Tiers,
): Pick<TiersPlan, "scope" | "clients" | "workers"> {
  const draw = random.fork("pressure");
  const scope = draw.pick<Scope>(["pressure", "pressure", "frozen", "all"]);
  const clients = 2 + draw.below(2);
  const isAlone = scope === "frozen" && gates === 0;
  return { scope, clients, workers: isAlone ? 3 + draw.below(3) : workers };
}

type Tiers = Pick<
  TiersPlan,
  "gates" | "datacenters" | "managers" | "workers" | "clients" | "scope"
>;

/** `gates`: over two datacenters; otherwise one datacenter alone. */
function drawTiers(random: Random, gates: boolean): Tiers {
  const managers = random.pick([1, 3, 3]);
  const workers = 2 + random.below(3);
  const clients = 1 + random.below(3);
  const scope = random.pick<Scope>([
    ...(["all", "all", "all", "managers", "workers", "cores", "none"] as const),
  ]);
  if (!gates) return { gates: 0, datacenters: 1, managers, workers, clients, scope };
  const wide = random.fork("gates");
  return {
    ...{ gates: wide.pick([1, 3, 3]), datacenters: 2, managers: 2 * managers, workers: 4, clients },
    scope: wide.pick<Scope>(["all", "all", "all", "gates", "gates", "none"]),
  };
}

function drawDisk(random: Random): LedgerDiskFaults {
  return {
    pageBytes: 4_096,
    writeMsMax: random.pick([0.1, 1]),
    syncMsMax: random.pick([0.5, 3, 15]),
    slowSyncChance: random.chance(0.3) ? random.float() * 0.05 : 0,
    slowSyncMsMax: random.pick([100, 1_000]),
    ...{ syncErrorChance: 0, writeErrorChance: 0, shortWriteChance: 0 },
  };
}

function drawLinks(random: Random): LinkFaults {
  return {
    ...CALM_LINKS,
    latencyMeanMs: random.pick([0.3, 3, 30]),
    loss: random.pick([0, 0, 0.02]),
    corruption: random.chance(0.2) ? random.float() * 0.0005 : 0,
  };
}

/** Up to 300 ms round trip, and links on which every tenth packet is resent. */
function drawFarLinks(random: Random): LinkFaults {
  const farMs = random.pick([0.2, 0.2, 40, 150]);
  return { ...CALM_LINKS, latencyMinMs: farMs, loss: random.pick([0, 0, 0.02, 0.1]) };
}

function drawStreams(random: Random): StreamFaults {
  return {
    split: random.chance(0.5) ? random.float() * 0.1 : 0,
    drainMsMax: random.pick([0, 20, 500]),
    patienceMs: random.pick([3_000, 15_000, 40_000]),
  };
}

type Weighted = readonly (readonly [TiersFault["kind"], number])[];

const KINDS: Weighted = [
  ["crash", 4],
  ["stop", 2],
  ["pause", 4],
  ["partition", 2],
  ["isolate", 4],
  ["reset", 2],
  ["slow", 1],
  ["slowDisk", 1],
  ["fullDisk", 1.5],
  ["killCore", 2],
  ["wipeWorker", 1.5],
  ["wallJump", 1],
  ["leaderTrouble", 5],
  ["restartAll", 0.7],
];
/** Faults of managers while their workers and clients reach the remaining ones. */
const OF_MANAGERS: readonly TiersFault["kind"][] = [
  "crash",
  "stop",
  "pause",
  "slowDisk",
  "fullDisk",
  "wallJump",
  "leaderTrouble",
];
/** Faults that overload a node without breaking it. */
const OF_PRESSURE: Weighted = [
  ["slowCpu", 4],
  ["flood", 4],
  ["frames", 2],
];
const OF_WAYS: Weighted = [["cutDatacenter", 1]];
const OF_CORES: Weighted = [["freeze", 3]];
/** Faults that only gates can tell apart. */
const OF_DATACENTERS: Weighted = [
  ["loseDatacenter", 2],
  ["cutDatacenter", 3],
];
const OF_WORKERS: readonly TiersFault["kind"][] = [
  ...(["crash", "stop", "pause", "isolate", "killCore", "wipeWorker"] as const),
];

interface FaultRange extends Tiers {
  readonly healAt: number;
  readonly pressure: boolean;
}

/** Between two faults. */
const GAPS_MS = [2_000, 6_000, 15_000, 40_000];
const PRESSED_GAPS_MS = [2_000, 6_000];
const FROZEN_GAPS_MS = [15_000, 40_000];
const AWAY_GAPS_MS = [60_000];
const AWAY_MS = 60_000;

function drawFaults(random: Random, range: FaultRange): TimedFault[] {
  const possible = possibleKinds(range);
  const { scope } = range;
  const isPressed = scope === "pressure" || scope === "frozen" || scope === "away";
  const kinds =
    scope === "cores"
      ? KINDS.filter(([kind]) => kind === "killCore")
      : possible.filter(() => isPressed || random.chance(0.6));
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0);
  const gapMs = random.pick(gapsOf(scope));
  const faults: TimedFault[] = [];
  if (kinds.length === 0) return faults;
  for (let at = WARM_UP_MS; ; ) {
    at += -Math.log(1 - random.float()) * gapMs;
    if (at >= range.healAt) return faults;
    let ticket = random.float() * total;
    const [kind] = kinds.find(([, weight]) => {
      ticket -= weight;
      return ticket < 0;
    }) ?? ["pause" as const];
    faults.push({ at, fault: drawFault(kind, random, range) });
  }
}

function gapsOf(scope: Scope): readonly number[] {
  if (scope === "frozen") return FROZEN_GAPS_MS;
  if (scope === "away") return AWAY_GAPS_MS;
  return scope === "pressure" ? PRESSED_GAPS_MS : GAPS_MS;
}

function possibleKinds({ gates, pressure, scope }: FaultRange): Weighted {
  if (scope === "pressure") return OF_PRESSURE;
  if (scope === "frozen") return OF_CORES;
  if (scope === "away") return OF_WAYS;
  // The start of a job is a wall-clock instant: the clocks of gates and managers agree.
  const kinds = gates === 0 ? KINDS : KINDS.filter(([kind]) => kind !== "wallJump");
  const pressed = pressure ? [...OF_PRESSURE, ...OF_CORES] : [];
  if (scope === "all") return [...kinds, ...pressed, ...(gates === 0 ? [] : OF_DATACENTERS)];
  const allowed = scope === "managers" || scope === "gates" ? OF_MANAGERS : OF_WORKERS;
  return kinds.filter(([kind]) => allowed.includes(kind));
}

function drawNode(
  random: Random,
  { clients, gates, managers, scope, workers }: FaultRange,
): number {
  if (scope === "gates") return managers + workers + clients + random.below(gates);
  if (scope === "managers") return random.below(managers);
  if (scope === "workers" || scope === "cores") return managers + random.below(workers);
  return random.below(managers + workers + clients + gates);
}

/** Overload must last for seconds to count. */
function pressedMs(random: Random): number {
  return random.pick([4_000, 12_000, 30_000]) * (0.5 + random.float());
}

function cutMs(random: Random, scope: Scope, forMs: number): number {
  return scope === "away" ? AWAY_MS * (0.75 + 0.5 * random.float()) : forMs;
}

/** On which side of a partition each node is. */
function drawSides(random: Random, nodes: number): readonly number[] {
  return Array.from({ length: nodes }, () => random.below(2));
}

/** Freezes this worker, and some of the others. */
function drawFreeze(random: Random, { managers, workers }: FaultRange, worker: number): TiersFault {
  const all = Array.from({ length: workers }, (_, index) => managers + index);
  const few = random.pick([0.2, 0.5, 0.9]);
  const frozen = all.filter((one) => one === worker || random.chance(few));
  const forMs = random.pick([20_000, 80_000, 120_000]) * (0.5 + random.float());
  return { kind: "freeze", workers: frozen, forMs };
}

function drawFault(kind: TiersFault["kind"], random: Random, range: FaultRange): TiersFault {
  const { clients, datacenters, gates, managers, scope, workers } = range;
  const nodes = managers + workers + clients + gates;
  const at = drawNode(random, range);
  const worker = managers + random.below(workers);
  /** Mostly seconds, sometimes beyond every lease and every timeout. */
  const forMs = random.pick([300, 1_000, 4_000, 8_000, 30_000, 100_000]) * (0.5 + random.float());
  switch (kind) {
    case "crash":
      return { kind, at, power: random.chance(0.4), forMs: Math.min(forMs, 30_000) };
    case "stop":
    case "pause":
      return { kind, at, forMs: Math.min(forMs, 30_000) };
    case "partition":
      return { kind, sides: drawSides(random, nodes), oneWay: random.chance(0.3), forMs };
    case "isolate": {
      const hears = random.chance(0.25);
      return { kind, at, hears, isHeard: !hears && random.chance(0.3), forMs };
    }
    case "reset":
      return { kind, at };
    case "fullDisk":
      return { kind, at: random.below(managers), forMs };
    case "slow":
      return { kind, at, delayMs: random.pick([50, 400, 2_000]), forMs };
    case "slowDisk":
      return { kind, at, slowMs: random.pick([100, 1_000, 4_000]), forMs };
    case "wipeWorker":
      return { kind, at: worker, forMs: Math.min(forMs, 8_000) };
    case "killCore":
      return { kind, at: worker, draw: random.uint32() };
    case "wallJump":
      return { kind, at, ms: (random.float() - 0.5) * random.pick([6_000, 7_200_000]) };
    case "leaderTrouble": {
      const whats = ["crash", "pause", "stop", "cutFromManagers", "isolate"] as const;
      const what = random.pick(
        scope === "managers" || scope === "gates" ? whats.slice(0, 4) : whats,
      );
      return { kind, draw: random.uint32(), what, forMs: Math.min(forMs, 30_000) };
    }
    case "ambush":
      return { kind, on: random.pick(["leads", "report", "end"]), what: "crash", forMs };
    case "slowCpu": {
      const server = gates > 0 ? nodes - 1 - random.below(gates) : random.below(managers);
      const costMs = random.pick([2, 6, 15]);
      return { kind, at: random.chance(0.7) ? server : at, costMs, forMs: pressedMs(random) };
    }
    case "flood":
      return {
        ...{ kind, at: managers + workers + random.below(clients), forMs: pressedMs(random) },
        perSecond: random.pick([20, 200, 1_000]),
        submissions: random.pick([0, 0.05, 0.5]),
      };
    case "frames":
      return { kind, at: worker, everyMs: random.pick([5, 20, 100]), forMs: pressedMs(random) };
    case "freeze":
      return drawFreeze(random, range, worker);
    case "loseDatacenter": {
      const [place, power] = [random.below(datacenters), random.chance(0.5)];
      return { kind, place, power, forMs: Math.min(forMs, 30_000) };
    }
    case "cutDatacenter":
      return { kind, place: random.below(datacenters), forMs: cutMs(random, scope, forMs) };
    case "restartAll":
      return { kind, power: random.chance(0.7), spreadMs: random.pick([10, 1_000, 5_000]) };
  }
}
