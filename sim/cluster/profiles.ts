/**
 * Worlds in which planted defects are searched. Most are found in any seed; some rules guard a situation that seeds
 * seldom meet, and these have profiles in which it occurs repeatedly.
 */

import type { Random } from "../../src/core/base/random.ts";
import { CALM_LINKS } from "../kernel/network.ts";
import { CALM_STREAMS } from "../kernel/streams.ts";
import type { JobStyle } from "./jobs.ts";
import type { TiersFault, TiersPlan } from "./swarm.ts";

interface Profile {
  /** Simulated minutes, whatever a sweep would take. */
  readonly minutes: number;
  readonly plan: Partial<
    Pick<
      TiersPlan,
      | ("scope" | "managers" | "workers" | "clients" | "gates" | "coresPerWorker" | "thinkMs")
      | ("isolationMs" | "compactEntries" | "checkpointEveryMs" | "links" | "streams")
    >
  >;
  readonly jobs?: Partial<
    Pick<JobStyle, "loadMsMax" | "limited" | "stubborn" | "controlled" | "coresMax">
  >;
  /** Between two faults. */
  readonly gapMs: number;
  readonly fault: (random: Random, plan: TiersPlan) => TiersFault;
}

const anyWorker = (random: Random, { managers, workers }: TiersPlan): number =>
  managers + random.below(workers);

const between = (random: Random, fromMs: number, toMs: number): number =>
  fromMs + random.float() * (toMs - fromMs);

/** Cuts workers off in both directions for this long. */
const workersAway =
  (fromMs: number, toMs: number): Profile["fault"] =>
  (random, plan) => ({
    ...({ kind: "isolate", hears: false, isHeard: false } as const),
    ...{ at: anyWorker(random, plan), forMs: between(random, fromMs, toMs) },
  });

const IMPATIENT = { ...CALM_STREAMS, patienceMs: 3_000 };

/** Workers are cut off for longer than their connections last, and return while their jobs still run. */
const BACK_UNDER_LOAD: Profile = {
  minutes: 2,
  plan: { scope: "workers", managers: 1, isolationMs: 60_000, streams: IMPATIENT },
  jobs: { loadMsMax: 90_000, controlled: 0 },
  gapMs: 45_000,
  fault: workersAway(8_000, 15_000),
};

/** Workers are cut off for good, as far as their jobs are concerned. */
const AWAY_FOR_LONG: Profile = {
  minutes: 2,
  plan: { scope: "workers", isolationMs: 6_000 },
  jobs: { loadMsMax: 60_000, controlled: 0 },
  gapMs: 20_000,
  fault: workersAway(60_000, 100_000),
};

/** Leaders fail repeatedly while some shares have finished and others have not. */
const LEADERS_GO: Profile = {
  minutes: 2,
  plan: { scope: "managers", managers: 3, coresPerWorker: 2, thinkMs: 200 },
  jobs: { loadMsMax: 25_000, controlled: 0 },
  gapMs: 8_000,
  fault: (random) => ({
    ...{ kind: "leaderTrouble", draw: random.uint32(), forMs: between(random, 500, 4_000) },
    what: random.pick(["crash", "stop"]),
  }),
};

/**
 * The only manager is slow, gets far more requests than it can answer, and its workers send far more than it can read.
 */
const FLOODED: Profile = {
  minutes: 1,
  plan: { scope: "pressure", managers: 1, workers: 2, clients: 2, thinkMs: 200 },
  jobs: { loadMsMax: 10_000, limited: 0, controlled: 0.3 },
  gapMs: 3_000,
  fault: (random, { clients, managers, workers }) => {
    const forMs = between(random, 5_000, 15_000);
    const worker = managers + random.below(workers);
    const client = managers + workers + random.below(clients);
    return random.pick<TiersFault>([
      { kind: "slowCpu", at: 0, costMs: random.pick([6, 15]), forMs },
      { kind: "flood", at: client, perSecond: 200, submissions: 0.5, forMs },
      { kind: "frames", at: worker, everyMs: 5, forMs },
    ]);
  },
};

/** High latency: whenever the connections of a worker break, messages are in flight in both directions. */
const BROKEN_WAYS: Profile = {
  minutes: 1,
  plan: { scope: "workers", managers: 1, links: { ...CALM_LINKS, latencyMinMs: 100 } },
  jobs: { loadMsMax: 10_000, controlled: 0 },
  gapMs: 4_000,
  fault: (random, plan) => ({ kind: "reset", at: anyWorker(random, plan) }),
};

const PROFILES: Readonly<Record<string, Profile>> = {
  "manager.lostReleased": BACK_UNDER_LOAD,
  "manager.ordersRepeated": BROKEN_WAYS,
  "worker.eventsRepeated": BROKEN_WAYS,
  /** Cores send metrics more often than answers come. */
  "worker.sentFramesStay": {
    ...BROKEN_WAYS,
    plan: { ...BROKEN_WAYS.plan, links: { ...CALM_LINKS, latencyMinMs: 400 } },
    gapMs: 20_000,
  },
  /** Workers come back with an empty directory while managers still know them. */
  "worker.startsDrawn": {
    minutes: 2,
    plan: { scope: "workers", thinkMs: 200 },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 8_000,
    fault: (random, plan) => ({
      ...{ kind: "wipeWorker", at: anyWorker(random, plan), forMs: between(random, 300, 4_000) },
    }),
  },
  "worker.isolationEndsLoad": AWAY_FOR_LONG,
  "worker.eventsRenumbered": LEADERS_GO,
  "worker.heardByAll": LEADERS_GO,
  "manager.announcedFirst": LEADERS_GO,
  /** A job ends while a worker is cut off, and is forgotten when the worker returns. */
  "worker.unknownJobEnds": {
    minutes: 2,
    plan: { scope: "all", managers: 1, isolationMs: 60_000, thinkMs: 200, streams: IMPATIENT },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 8_000,
    fault: (random, plan) =>
      random.chance(0.5)
        ? workersAway(15_000, 40_000)(random, plan)
        : { kind: "crash", at: 0, power: false, forMs: 300 },
  },
  /** The only manager restarts, and knows none of the workers that run its jobs. */
  "manager.workersGathered": {
    minutes: 1,
    plan: {
      ...{ scope: "managers", managers: 1, isolationMs: 60_000, thinkMs: 200 },
      links: { ...CALM_LINKS, latencyMinMs: 700 },
    },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 15_000,
    fault: (random) => ({ kind: "crash", at: 0, power: random.chance(0.5), forMs: 300 }),
  },
  /** The worker that has the metrics of a finished share fails, and then the leader that received them. */
  "manager.missingNoted": {
    minutes: 2,
    plan: { scope: "all", managers: 1, workers: 3, coresPerWorker: 2, thinkMs: 200 },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 3_000,
    fault: (random, plan) => ({
      ...{ kind: "crash", at: random.chance(0.5) ? 0 : anyWorker(random, plan) },
      ...{ power: false, forMs: 300 },
    }),
  },
  /** The jobs they lead are cancelled. */
  "manager.cancelKept": { ...LEADERS_GO, jobs: { loadMsMax: 25_000, controlled: 1 } },
  "manager.silenceNoticed": AWAY_FOR_LONG,
  /** Their load does not stop on request. */
  "worker.isolatedKilled": {
    ...AWAY_FOR_LONG,
    jobs: { ...AWAY_FOR_LONG.jobs, loadMsMax: 90_000, stubborn: 1 },
  },
  "worker.figuresKept": LEADERS_GO,
  "manager.adoptedBeforeHeard": LEADERS_GO,
  /** Power fails when everything of a job is done except its end. */
  "manager.heardOut": {
    ...{ minutes: 1, gapMs: 8_000, jobs: { loadMsMax: 3_000, controlled: 0 } },
    plan: { scope: "managers", managers: 1, thinkMs: 200 },
    fault: (random) => ({
      ...{ kind: "ambush", on: "report", what: "crash", forMs: between(random, 300, 1_000) },
    }),
  },
  /** The only manager recovers from a snapshot, and continues with blocks of rows and iterations. */
  "manager.leasesKept": {
    minutes: 2,
    plan: {
      ...{ scope: "managers", managers: 1, thinkMs: 200 },
      ...{ compactEntries: 16, checkpointEveryMs: 3_000 },
    },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 10_000,
    fault: (random) => ({ kind: "crash", at: 0, power: random.chance(0.5), forMs: 300 }),
  },
  /** Power fails between the end of a job in its own log and in that of its datacenter. */
  "manager.endToldAgain": {
    minutes: 1,
    plan: { scope: "managers", managers: 1, thinkMs: 200 },
    jobs: { loadMsMax: 3_000, controlled: 0 },
    gapMs: 8_000,
    fault: (random) => ({
      ...{ kind: "ambush", on: "end", what: "crash", forMs: between(random, 300, 1_000) },
    }),
  },
  /** A leader loses its peers just as it begins to lead. */
  "manager.staleViewRejected": {
    minutes: 2,
    plan: { scope: "managers", managers: 3, thinkMs: 200 },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 8_000,
    fault: (random) => ({
      ...{ kind: "ambush", on: "leads", what: "cutFromManagers" },
      forMs: between(random, 3_000, 8_000),
    }),
  },
  /** Messages of a leader are in flight for longer than it leads. */
  "worker.viewFenced": {
    minutes: 2,
    plan: { scope: "managers", managers: 3, thinkMs: 200 },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 4_000,
    fault: (random, plan) =>
      random.chance(0.5)
        ? { kind: "slow", at: anyWorker(random, plan), delayMs: 6_000, forMs: 15_000 }
        : {
            ...{ kind: "leaderTrouble", draw: random.uint32(), what: "cutFromManagers" },
            forMs: between(random, 4_000, 8_000),
          },
  },
  /** All workers stand still at once, for longer than a single one would be waited for. */
  "manager.massFailureHeld": {
    minutes: 3,
    plan: {
      ...{ scope: "frozen", managers: 1, workers: 3, clients: 3 },
      ...{ coresPerWorker: 1, thinkMs: 200 },
    },
    jobs: { loadMsMax: 150_000, limited: 0, controlled: 0 },
    gapMs: 30_000,
    fault: (random, { managers, workers }) => ({
      kind: "freeze",
      workers: Array.from({ length: workers }, (_, at) => managers + at),
      forMs: between(random, 80_000, 110_000),
    }),
  },
  "pressure.criticalServed": FLOODED,
  "pressure.refusalTimed": FLOODED,
  "pressure.refusedUnbegun": FLOODED,
  "worker.waitingFiguresStay": FLOODED,
  /** Messages of its workers arrive long after they were sent. */
  "manager.latenessAllowed": {
    ...FLOODED,
    jobs: { loadMsMax: 25_000, limited: 0, controlled: 0 },
    gapMs: 2_000,
    fault: (random, { clients, managers, workers }) => {
      const at = managers + workers + random.below(clients);
      return random.chance(0.5)
        ? { kind: "slowCpu", at: 0, costMs: 40, forMs: 15_000 }
        : { kind: "flood", at, perSecond: 200, submissions: 0, forMs: 15_000 };
    },
  },
  /** Cores stand still for less than their worker is waited for, beyond the limit of their job. */
  "manager.extensionsCounted": {
    minutes: 2,
    plan: { scope: "frozen", managers: 1, workers: 3, clients: 3, thinkMs: 200 },
    jobs: { loadMsMax: 40_000, limited: 1, controlled: 0 },
    gapMs: 10_000,
    fault: (random, plan) => ({
      ...{ kind: "freeze", workers: [anyWorker(random, plan)] },
      forMs: between(random, 20_000, 45_000),
    }),
  },
  /** A datacenter is cut off for a minute, and comes back. */
  "gate.returnNoticed": {
    minutes: 3,
    plan: { scope: "away", gates: 1, managers: 2, workers: 2, clients: 1, thinkMs: 200 },
    jobs: { loadMsMax: 10_000, limited: 0, controlled: 0 },
    gapMs: 60_000,
    fault: (random) => ({
      ...{ kind: "cutDatacenter", place: 1 },
      forMs: between(random, 50_000, 70_000),
    }),
  },
  /** Jobs of both datacenters wait for each other's cores until they try again elsewhere. */
  "gate.leftCancelled": {
    minutes: 2,
    plan: { scope: "gates", clients: 3, coresPerWorker: 1, thinkMs: 200 },
    jobs: { loadMsMax: 25_000, controlled: 0 },
    gapMs: 60_000,
    fault: (random, { clients, gates, managers, workers }) => ({
      ...{ kind: "pause", at: managers + workers + clients + random.below(gates), forMs: 300 },
    }),
  },
};

export function profileOf(mutant: string | null): Profile | null {
  return mutant === null ? null : (PROFILES[mutant] ?? null);
}

const FIRST_FAULT_MS = 4_000;

export function profiledPlan(drawn: TiersPlan, profile: Profile, random: Random): TiersPlan {
  const plan: TiersPlan = { ...drawn, links: CALM_LINKS, streams: CALM_STREAMS, ...profile.plan };
  const coresMax = (plan.workers / plan.datacenters) * plan.coresPerWorker;
  const faults: { at: number; fault: TiersFault }[] = [];
  for (let at = FIRST_FAULT_MS; ; ) {
    at += -Math.log(1 - random.float()) * profile.gapMs;
    if (at >= plan.healAt) break;
    faults.push({ at, fault: profile.fault(random, plan) });
  }
  return { ...plan, jobs: { ...plan.jobs, coresMax, ...profile.jobs }, faults };
}
