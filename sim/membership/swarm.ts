/**
 * Plan of a seed. Each seed draws which faults exist at all (about half of them) and how strong they are, then a list
 * of concrete faults with times. The list is data: a failing run is shrunk by leaving faults out.
 */

import type { Random } from "../../src/core/base/random.ts";
import {
  ELECTION_OF,
  type ElectionProfileName,
} from "../../src/core/membership/election/config.ts";
import type { ProfileName } from "../../src/core/membership/swim/config.ts";
import type { DiskFaults } from "../kernel/disk.ts";
import type { LinkFaults } from "../kernel/network.ts";
import { CALM_LINKS } from "../kernel/network.ts";
import type { NamesMode } from "./names.ts";

export type Fault =
  | {
      readonly kind: "crash";
      readonly node: number;
      readonly forMs: number;
      readonly wipe: boolean;
    }
  | { readonly kind: "pause"; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "partition";
      /** Group of each node; ways between different groups are cut. */
      readonly groups: readonly number[];
      readonly oneWay: boolean;
      readonly forMs: number;
    }
  | { readonly kind: "clog"; readonly nodes: readonly number[]; readonly forMs: number }
  | {
      readonly kind: "slow";
      readonly node: number;
      readonly delayMs: number;
      readonly forMs: number;
    }
  | { readonly kind: "leave"; readonly node: number; readonly forMs: number }
  | { readonly kind: "restartAll"; readonly spreadMs: number }
  | { readonly kind: "rot"; readonly node: number }
  | { readonly kind: "wallJump"; readonly node: number; readonly ms: number }
  | {
      readonly kind: "strayPing";
      readonly from: number;
      readonly to: number;
      readonly named: number;
    }
  | {
      readonly kind: "nameFlood";
      readonly from: number;
      readonly to: number;
      readonly count: number;
    }
  | { readonly kind: "broadcast"; readonly node: number }
  | {
      readonly kind: "staleEvidence";
      readonly from: number;
      readonly to: number;
      readonly about: number;
    }
  | { readonly kind: "forceLeave"; readonly node: number; readonly about: number }
  /** The leader loses some voters, and one that still receives from it restarts shortly after. */
  | { readonly kind: "leaderTrouble"; readonly restartAfterMs: number; readonly forMs: number }
  | { readonly kind: "resign" }
  /** A copy of a voter's record rots; then an election comes, and power goes while the voter saves. */
  | { readonly kind: "powerCut"; readonly node: number; readonly forMs: number }
  /** A new key is added, used, and the old one removed; each step waits until the one before is everywhere. */
  | { readonly kind: "rotateKeys"; readonly spreadMs: number }
  /** For a while the name server answers so. */
  | { readonly kind: "names"; readonly mode: NamesMode; readonly forMs: number };

interface TimedFault {
  readonly at: number;
  readonly fault: Fault;
}

export interface SwarmPlan {
  readonly members: number;
  readonly electing: number;
  readonly profile: ProfileName;
  readonly election: ElectionProfileName;
  /** How members find each other: configured addresses, a name, or both. */
  readonly discovery: "seeds" | "names" | "both";
  readonly clockDrift: number;
  readonly links: LinkFaults;
  readonly disk: DiskFaults;
  readonly faults: readonly TimedFault[];
  /** When the chaos ends and healing begins. */
  readonly healAt: number;
}

export interface SwarmSize {
  readonly members: number;
  readonly electing: number;
}

const WARM_UP_MS = 15_000;
/** Healing, agreement, drill: the end of every run. */
export const CALM_MS = 130_000;

export function drawPlan(random: Random, minutes: number, size: SwarmSize | null): SwarmPlan {
  const electing = size?.electing ?? random.pick([3, 3, 5, 5, 5, 1]);
  const members = size?.members ?? 3 + random.below(12);
  const endMs = minutes * 60_000;
  const healAt = Math.max(WARM_UP_MS + 20_000, endMs - CALM_MS);
  const profile: ProfileName = random.pick(["lan", "lan", "lan", "wan", "local", "dc"]);
  // Mostly what an agent of the profile runs; quick elections beside slow membership see more of them.
  const configured = ELECTION_OF[profile];
  const election = random.pick<ElectionProfileName>([configured, configured, "dc", "wide"]);
  return {
    members,
    electing,
    profile,
    election,
    discovery: random.fork("discovery").pick(["seeds", "seeds", "names", "both"]),
    clockDrift: random.pick([0, 0.01, 0.045]),
    links: drawLinks(random.fork("links")),
    disk: drawDisk(random.fork("disk")),
    faults: drawFaults(random.fork("faults"), members + electing, electing, healAt),
    healAt,
  };
}

function drawLinks(random: Random): LinkFaults {
  const some = (chance: number, max: number): number =>
    random.chance(chance) ? random.float() * max : 0;
  return {
    ...CALM_LINKS,
    latencyMeanMs: random.pick([0.3, 0.3, 2, 15]),
    loss: random.pick([0, 0, 0.02, 0.1, 0.3]),
    duplication: some(0.5, 0.1),
    reorder: some(0.5, 0.2),
    reorderMsMax: random.pick([20, 200, 1_500]),
    replay: some(0.5, 0.1),
    corruption: some(0.4, 0.05),
    capacity: random.chance(0.15) ? 20 + random.float() * 200 : 0,
  };
}

function drawDisk(random: Random): DiskFaults {
  const some = (chance: number, max: number): number =>
    random.chance(chance) ? random.float() * max : 0;
  return {
    syncMsMax: random.pick([0.5, 2, 10]),
    slowSyncChance: some(0.3, 0.2),
    slowSyncMsMax: 800,
    syncErrorChance: some(0.3, 0.05),
    fullChance: some(0.2, 0.05),
    tornWrites: true,
  };
}

/** Kinds a seed may use, with a weight; each is switched on or off as a whole. */
const KINDS: readonly (readonly [Fault["kind"], number])[] = [
  ["crash", 4],
  ["pause", 4],
  ["partition", 4],
  ["clog", 2],
  ["slow", 2],
  ["leave", 2],
  ["restartAll", 0.4],
  ["rot", 1],
  ["wallJump", 1],
  ["strayPing", 2],
  ["nameFlood", 0.5],
  ["broadcast", 3],
  ["staleEvidence", 3],
  ["forceLeave", 1],
  ["leaderTrouble", 2],
  ["resign", 1],
  ["powerCut", 1],
  ["rotateKeys", 1],
  ["names", 1],
];

function drawFaults(random: Random, count: number, electing: number, healAt: number): TimedFault[] {
  const kinds = KINDS.filter(() => random.chance(0.55));
  if (kinds.length === 0) return [];
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0);
  const gapMs = random.pick([1_500, 4_000, 10_000]);
  const faults: TimedFault[] = [];
  let at = WARM_UP_MS;
  for (;;) {
    at += -Math.log(1 - random.float()) * gapMs;
    if (at >= healAt) return faults;
    let ticket = random.float() * total;
    const chosen = kinds.find(([, weight]) => {
      ticket -= weight;
      return ticket < 0;
    });
    const [kind] = chosen ?? ["broadcast" as const];
    faults.push({ at, fault: drawFault(kind, random, count, electing) });
  }
}

function drawFault(kind: Fault["kind"], random: Random, count: number, electing: number): Fault {
  const node = random.below(count);
  const other = random.below(count);
  /** Mostly seconds, sometimes a minute. */
  const forMs = random.pick([300, 1_000, 3_000, 8_000, 20_000, 60_000]) * (0.5 + random.float());
  switch (kind) {
    case "crash":
      // A voter's disk is never wiped: forgetting a vote is outside the protocol's promise.
      return { kind, node, forMs, wipe: node >= electing && random.chance(0.2) };
    case "pause":
    case "leave":
      return { kind, node, forMs };
    case "partition":
      return { kind, groups: drawGroups(random, count), oneWay: random.chance(0.3), forMs };
    case "clog": {
      const nodes = Array.from({ length: 1 + random.below(4) }, () => random.below(count));
      return { kind, nodes, forMs: Math.min(forMs, 10_000) };
    }
    case "slow":
      return { kind, node, delayMs: random.pick([300, 1_500, 5_000]), forMs };
    case "restartAll":
      return { kind, spreadMs: random.pick([100, 2_000, 10_000]) };
    case "rot":
      return { kind, node };
    case "wallJump":
      return { kind, node, ms: (random.float() - 0.5) * 7_200_000 };
    case "strayPing":
      return { kind, from: node, to: other, named: random.below(count) };
    case "nameFlood":
      return { kind, from: node, to: other, count: 40 + random.below(120) };
    case "broadcast":
      return { kind, node };
    case "staleEvidence":
      return { kind, from: node, to: other, about: random.below(count) };
    case "forceLeave":
      return { kind, node, about: other };
    case "leaderTrouble":
      return { kind, restartAfterMs: 500 + random.float() * 900, forMs: 3_000 };
    case "resign":
      return { kind };
    case "powerCut":
      return { kind, node: random.below(electing), forMs: 500 + random.float() * 3_000 };
    case "rotateKeys":
      return { kind, spreadMs: random.pick([100, 2_000, 10_000]) };
    case "names":
      return { kind, mode: random.pick(["part", "stale", "failing"]), forMs };
  }
}

/** Uniform sizes, one alone, or a minority of three. */
function drawGroups(random: Random, count: number): number[] {
  const mode = random.below(3);
  const groups = new Array<number>(count).fill(0);
  if (mode === 0) return groups.map(() => random.below(2));
  const apart = mode === 1 ? 1 : Math.min(count - 1, 3);
  for (let i = 0; i < apart; i++) groups[random.below(count)] = 1;
  return groups;
}
