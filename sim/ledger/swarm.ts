/**
 * Plan of a seed: sizes, timings, which faults exist (about half of them) and how strong they are, then a list of
 * concrete faults with times. The list is data, so that a failing run can be shrunk by leaving faults out.
 */

import { nodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import { QUEUE_LIMITS, type QueueLimits } from "../../src/core/cluster/link/limits.ts";
import { VSR_DEFAULTS, type VsrConfig } from "../../src/core/ledger/group/config.ts";
import { TRAIL_EVENTS_MAX } from "../../src/core/ledger/job/limits.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import { IDEMPOTENCY_PROFILES } from "../../src/core/ledger/keys/config.ts";
import { SHARD_COUNT } from "../../src/core/ledger/keys/key.ts";
import { type WalConfig, walConfig } from "../../src/core/ledger/log/limits.ts";
import { LEDGER_NODE_DEFAULTS } from "../../src/core/ledger/node/config.ts";
import type { LedgerNodeConfig } from "../../src/core/ledger/node/types.ts";
import { CALM_LINKS, type LinkFaults } from "../kernel/network.ts";
import type { StreamFaults } from "../kernel/streams.ts";
import type { DiskSpace, LedgerDiskFaults } from "./disk.ts";
import { DCS } from "./events.ts";

export type LedgerFault =
  | {
      readonly kind: "crash";
      readonly node: number;
      readonly power: boolean;
      readonly forMs: number;
    }
  /** In good order: its groups find other primaries first. */
  | { readonly kind: "stop"; readonly node: number; readonly forMs: number }
  | { readonly kind: "pause"; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "partition";
      /** Side of each node; ways between the sides are cut. */
      readonly sides: readonly number[];
      readonly oneWay: boolean;
      readonly forMs: number;
    }
  | { readonly kind: "clog"; readonly from: number; readonly to: number; readonly forMs: number }
  | {
      readonly kind: "slow";
      readonly node: number;
      readonly delayMs: number;
      readonly forMs: number;
    }
  | {
      readonly kind: "diskFull";
      readonly node: number;
      readonly space: DiskSpace;
      readonly forMs: number;
    }
  | { readonly kind: "rot"; readonly node: number }
  /** The newest checkpoint has a rotten bit, and the process starts again. */
  | {
      readonly kind: "rotCheckpoint";
      readonly node: number;
      readonly power: boolean;
      readonly forMs: number;
    }
  | { readonly kind: "diskLost"; readonly node: number; readonly forMs: number }
  | { readonly kind: "wallJump"; readonly node: number; readonly ms: number }
  /** The current leader of a group dies, pauses, or is cut off, maybe while another restarts. */
  | {
      readonly kind: "leaderTrouble";
      readonly draw: number;
      readonly what: "crash" | "pause" | "isolate" | "isolateAndRestart";
      readonly forMs: number;
    }
  /** New secrets on all nodes, in three steps. */
  | { readonly kind: "rotateKeys"; readonly stepMs: number }
  /** Started with a list of nodes that differs from all others. */
  | { readonly kind: "misconfigured"; readonly node: number; readonly forMs: number }
  | { readonly kind: "restartAll"; readonly power: boolean; readonly spreadMs: number };

interface TimedLedgerFault {
  readonly at: number;
  readonly fault: LedgerFault;
}

export interface LedgerPlan {
  readonly sites: readonly Site[];
  /** So many of them found the ledger; the others join at `growAt`, when all configurations change. */
  readonly foundingSites: number;
  readonly growAt: number;
  readonly shards: readonly number[];
  readonly config: LedgerNodeConfig;
  readonly wal: WalConfig;
  readonly checkpointEveryMs: number;
  readonly sliceGroupsMax: number;
  readonly disk: LedgerDiskFaults;
  readonly links: LinkFaults;
  readonly streams: StreamFaults;
  /** Limits of the queue per peer; small ones overflow. */
  readonly queue: QueueLimits;
  readonly clockDrift: number;
  /** Wall clocks are set right every few seconds; else they run free and jump by hours. */
  readonly wallDisciplined: boolean;
  /** Replicas with damaged disks at the same time, at most: a minority of any group. */
  readonly damagedMax: number;
  readonly clients: number;
  readonly thinkMs: number;
  readonly jobsMax: number;
  /** Only the last so many jobs are worked on. */
  readonly jobsHot: number;
  readonly keyWindowMs: number;
  readonly replaceShare: number;
  /** Burst of events of one job; more than a job remembers, or none. */
  readonly burstEvents: number;
  readonly faults: readonly TimedLedgerFault[];
  readonly healAt: number;
}

const WARM_UP_MS = 5_000;
const BURST_JOB_BYTES = 524_288;
/** Healing, liveness, agreement: the end of every run. */
export const LEDGER_CALM_MS = 60_000;

export function drawLedgerPlan(random: Random, minutes: number): LedgerPlan {
  const nodes = random.pick([3, 5]);
  const replicas = nodes === 5 ? random.pick([3, 3, 5]) : 3;
  const regions = random.pick([1, 2, 3]);
  const sites = Array.from({ length: nodes }, (_, index) => ({
    node: nodeId(`n${index}`),
    region: `reg${index % regions}`,
  }));
  const healAt = Math.max(WARM_UP_MS + 20_000, minutes * 60_000 - LEDGER_CALM_MS);
  const vsr = drawVsr(random.fork("vsr"));
  const clockDrift = vsr.leaseReads ? 0.004 : random.pick([0, 0.004, 0.1]);
  const bigJumps = random.chance(0.2);
  // With wrong clocks too: what a shard forgets is its own time's affair.
  const shortTtl = random.chance(0.5);
  const disk = drawDisk(random.fork("disk"));
  const thinkMs = random.pick([400, 1_500, 4_000]);
  const jobsHot = random.pick([1, 3, 8]);
  const faults = drawFaults(random.fork("faults"), { nodes, healAt, bigJumps });
  const burstEvents = random.fork("burst").chance(0.1) ? TRAIL_EVENTS_MAX + 100 : 0;
  return {
    ...{ sites, disk, faults, healAt, clockDrift },
    ...drawGrowth(random.fork("growth"), nodes, replicas, healAt),
    wallDisciplined: !bigJumps,
    shards: [random.below(32), 32 + random.below(32)],
    config: drawConfig(random.fork("config"), vsr, replicas, shortTtl),
    wal: drawWal(
      random.fork("wal"),
      burstEvents > 0 ? BURST_JOB_BYTES : busiestJob(thinkMs, jobsHot),
    ),
    checkpointEveryMs: random.pick([0, 8_000, 20_000, 60_000]),
    sliceGroupsMax: random.fork("slices").pick([1, 2, 5, 128]),
    links: drawLinks(random.fork("links")),
    streams: drawStreams(random.fork("streams")),
    queue: drawQueue(random.fork("queue")),
    damagedMax: Math.floor((replicas - 1) / 2),
    clients: 2 + random.below(3),
    thinkMs,
    jobsMax: random.pick([3, 6, 12]),
    jobsHot,
    keyWindowMs: 60_000,
    replaceShare: nodes > replicas && random.chance(0.6) ? 0.05 : 0,
    burstEvents,
  };
}

function drawGrowth(
  random: Random,
  nodes: number,
  replicas: number,
  healAt: number,
): Pick<LedgerPlan, "foundingSites" | "growAt"> {
  const grows = nodes > replicas && random.chance(0.25);
  if (!grows) return { foundingSites: nodes, growAt: Number.POSITIVE_INFINITY };
  const growAt = WARM_UP_MS + random.float() * 0.6 * (healAt - WARM_UP_MS);
  return { foundingSites: replicas, growAt };
}

function drawVsr(random: Random): VsrConfig {
  const leaseMs = random.pick([0, 3_000, 10_000]);
  const leaseReads = leaseMs > 0 && random.chance(0.3);
  const short = leaseMs === 3_000 || random.chance(0.2);
  return {
    ...VSR_DEFAULTS,
    ...{ leaseMs, leaseReads },
    renewMs: short ? 1_000 : 3_000,
    viewChangeTimeoutMs: random.pick([2_000, 10_000]),
    batchEntries: random.pick([2, 8, 256]),
    windowEntries: 1_024,
    tailEntries: random.pick([2, 8, 32]),
    idleMs: random.pick([3_000, 8_000, VSR_DEFAULTS.idleMs]),
    // Three or four entries: proposals of one turn are refused for their bytes.
    windowBytes: random.chance(0.3) ? 700 : VSR_DEFAULTS.windowBytes,
  };
}

function drawConfig(
  random: Random,
  vsr: VsrConfig,
  replicas: number,
  shortTtl: boolean,
): LedgerNodeConfig {
  const ttlMs = shortTtl ? 100_000 : 36_000_000;
  const idempotency = {
    ...IDEMPOTENCY_PROFILES.production.authority,
    ...{ committedTtlMs: ttlMs, rejectedTtlMs: ttlMs, cleanupIntervalMs: 5_000 },
    pendingTtlMs: 61_000,
    // A few keys per shard: what a full one does is seen too.
    ...(shortTtl && random.chance(0.5) ? { entriesMax: 4 * SHARD_COUNT } : {}),
  };
  const { gateCache: gate } = LEDGER_NODE_DEFAULTS;
  const gateTtlMs = shortTtl ? 50_000 : gate.committedTtlMs;
  return {
    ...LEDGER_NODE_DEFAULTS,
    ...{ vsr, replicas, idempotency },
    gateCache: { ...gate, committedTtlMs: gateTtlMs, rejectedTtlMs: Math.min(gateTtlMs, 60_000) },
    datacenters: random.fork("datacenters").chance(0.5) ? DCS : [],
    compactEntries: vsr.tailEntries + random.pick([4, 20, 400]),
    retentionMs: random.chance(0.3)
      ? random.pick([5_000, 60_000])
      : LEDGER_NODE_DEFAULTS.retentionMs,
  };
}

/** How large the snapshot of a job may grow that all clients work on. */
function busiestJob(thinkMs: number, jobsHot: number): number {
  const busiest = thinkMs >= 4_000 ? 32_768 : thinkMs >= 1_500 ? 65_536 : 131_072;
  return jobsHot === 1 ? busiest : busiest / 2;
}

/** A segment holds the snapshot of the busiest job, and is small enough to be changed often. */
function drawWal(random: Random, segmentBytes: number): WalConfig {
  return walConfig({
    segmentBytes,
    chunkBytes: 4_096,
    chunkCount: 2,
    fullDisk: "wait",
    batchEntriesMax: random.pick([4, 100]),
    pieceBytes: random.pick([1_000, 20_000, 4_194_304]),
  });
}

function some(random: Random, chance: number, max: number): number {
  return random.chance(chance) ? random.float() * max : 0;
}

function drawDisk(random: Random): LedgerDiskFaults {
  return {
    pageBytes: random.pick([512, 4_096]),
    writeMsMax: random.pick([0.1, 1]),
    syncMsMax: random.pick([0.5, 3, 15]),
    slowSyncChance: some(random, 0.3, 0.05),
    slowSyncMsMax: random.pick([500, 4_000]),
    syncErrorChance: some(random, 0.3, 0.004),
    writeErrorChance: some(random, 0.3, 0.002),
    shortWriteChance: some(random, 0.4, 0.1),
  };
}

function drawLinks(random: Random): LinkFaults {
  return {
    ...CALM_LINKS,
    latencyMeanMs: random.pick([0.5, 5, 40]),
    loss: random.pick([0, 0, 0.02, 0.1]),
    corruption: some(random, 0.3, 0.002),
    reorder: some(random, 0.5, 0.2),
    reorderMsMax: random.pick([20, 200, 2_000]),
  };
}

function drawStreams(random: Random): StreamFaults {
  return {
    split: some(random, 0.5, 0.1),
    drainMsMax: random.pick([0, 20, 2_000]),
    patienceMs: random.pick([0, 3_000, 15_000]),
  };
}

function drawQueue(random: Random): QueueLimits {
  if (random.chance(0.6)) return QUEUE_LIMITS;
  return {
    bytesMax: random.pick([2_000, 20_000]),
    entriesMax: random.pick([4, 64]),
    inHandBytesMax: random.pick([1_000, 8_000]),
  };
}

const KINDS: readonly (readonly [LedgerFault["kind"], number])[] = [
  ["crash", 4],
  ["stop", 3],
  ["pause", 3],
  ["partition", 4],
  ["clog", 2],
  ["slow", 1],
  ["diskFull", 2],
  ["rot", 0.5],
  ["rotCheckpoint", 1],
  ["diskLost", 0.5],
  ["wallJump", 1],
  ["leaderTrouble", 4],
  ["restartAll", 0.5],
  ["rotateKeys", 0.5],
  ["misconfigured", 0.5],
];

/** A seed may be wild for its first faults; a whole run of that costs much and shows little more. */
const BURST_FAULTS = 80;
const QUIET_GAP_MS = 10_000;

interface FaultRange {
  readonly nodes: number;
  readonly healAt: number;
  readonly bigJumps: boolean;
}

function drawFaults(random: Random, range: FaultRange): TimedLedgerFault[] {
  const kinds = KINDS.filter(() => random.chance(0.55));
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0);
  const gapMs = random.pick([700, 2_000, 6_000, 15_000]);
  const faults: TimedLedgerFault[] = [];
  if (kinds.length === 0) return faults;
  for (let at = WARM_UP_MS; ; ) {
    const pauseMs = faults.length < BURST_FAULTS ? gapMs : Math.max(gapMs, QUIET_GAP_MS);
    at += -Math.log(1 - random.float()) * pauseMs;
    if (at >= range.healAt) return faults;
    let ticket = random.float() * total;
    const [kind] = kinds.find(([, weight]) => {
      ticket -= weight;
      return ticket < 0;
    }) ?? ["pause" as const];
    faults.push({ at, fault: drawFault(kind, random, range) });
  }
}

function drawFault(kind: LedgerFault["kind"], random: Random, range: FaultRange): LedgerFault {
  const { nodes } = range;
  const node = random.below(nodes);
  /** Mostly seconds, sometimes beyond every lease. */
  const forMs = random.pick([50, 300, 1_000, 4_000, 12_000, 30_000]) * (0.5 + random.float());
  switch (kind) {
    case "crash":
    case "rotCheckpoint":
      return { kind, node, power: random.chance(0.6), forMs };
    case "stop":
    case "pause":
      return { kind, node, forMs };
    case "partition": {
      const sides = Array.from({ length: nodes }, () => random.below(2));
      return { kind, sides, oneWay: random.chance(0.3), forMs };
    }
    case "clog":
      return { kind, from: node, to: random.below(nodes), forMs: Math.min(forMs, 10_000) };
    case "slow":
      return { kind, node, delayMs: random.pick([50, 400, 2_000]), forMs };
    case "diskFull": {
      const space = random.pick(["growthFull", "growthFull", "allFull"] as const);
      return { kind, node, space, forMs };
    }
    case "rot":
      return { kind, node };
    case "diskLost":
      return { kind, node, forMs };
    case "wallJump":
      return { kind, node, ms: (random.float() - 0.5) * (range.bigJumps ? 7_200_000 : 6_000) };
    case "leaderTrouble": {
      const what = random.pick(["crash", "pause", "isolate", "isolateAndRestart"] as const);
      return { kind, draw: random.uint32(), what, forMs };
    }
    case "rotateKeys":
      return { kind, stepMs: random.pick([50, 1_000, 5_000]) };
    case "misconfigured":
      return { kind, node, forMs };
    case "restartAll":
      return { kind, power: random.chance(0.7), spreadMs: random.pick([10, 1_000, 5_000]) };
  }
}
