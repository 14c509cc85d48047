/**
 * Three real processes under faults, which must leave no visible trace. Each fault lasts a while and is healed; between
 * faults there is a calm in which the ledger must do real work, or the run does not count. The faults follow from the
 * seed; their timing within an operation does not.
 */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { LedgerCluster, type NodePlace, until } from "../../../bench/ledger/processes.ts";
import { Random } from "../../../src/core/base/random.ts";
import { Clients } from "./clients.ts";
import { checkHistory, type Operation } from "./history.ts";
import { Relay } from "./relay.ts";

const LEASE_MS = 2_000;
/** Operations per second that a calm must see. */
export const CALM_RATE_MIN = 200;
const CALM_MS = 6_000;
/** After a fault: the lease expires, another replica takes over, the rest comes back. */
const SETTLE_MS = LEASE_MS + 2_000;
const HEAL_MS_MAX = 60_000;
const WORKERS = 48;
const JOBS = 24;
const FAKETIME = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
].find((file) => existsSync(file));

interface ChaosResult {
  readonly operations: number;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly jobs: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly skipped: readonly string[];
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The longest time one job had no successful operation. */
  readonly unavailableMsMax: number;
  readonly calmRates: readonly number[];
  readonly problems: readonly string[];
}

interface World {
  readonly cluster: LedgerCluster;
  readonly relays: ReadonlyMap<string, Relay>;
  readonly random: Random;
  readonly say: (text: string) => void;
}

type Fault = (world: World) => Promise<void>;

export async function runChaos(options: {
  readonly minutes: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}): Promise<ChaosResult> {
  const { minutes, seed, say } = options;
  const random = new Random(seed);
  const { cluster, relays } = await makeCluster();
  const world: World = { cluster, relays, random: random.fork("faults"), say };
  const clients = new Clients(cluster, random.fork("clients"));
  const counts: Record<string, number> = {};
  const calmRates: number[] = [];
  const possible = Object.keys(FAULTS).filter((fault) => fault !== "clockStep" || FAKETIME);
  /** Each kind comes once before any comes again. */
  const order: string[] = [];
  let keep = true;
  try {
    await cluster.startAll();
    const working = await clients.start(WORKERS, JOBS);
    const endAt = performance.now() + minutes * 60_000;
    await pause(CALM_MS);
    while (performance.now() < endAt) {
      if (order.length === 0) order.push(...world.random.shuffle([...possible]));
      const name = order.pop() as string;
      counts[name] = (counts[name] ?? 0) + 1;
      await (FAULTS[name] as Fault)(world);
      await pause(SETTLE_MS);
      calmRates.push(await calmRate(clients));
      say(`${name}: calm after it at ${Math.round(calmRates.at(-1) ?? 0)} operations/s`);
    }
    clients.stop();
    await Promise.all(working);
    const problems = [...(await verdict(world, clients))];
    keep = problems.length > 0;
    if (keep) say(`data and logs are kept in ${cluster.dir}`);
    return summary(clients, counts, calmRates, problems);
  } finally {
    clients.close();
    await cluster.stop(keep);
    for (const relay of relays.values()) await relay.close();
  }
}

async function makeCluster(): Promise<{ cluster: LedgerCluster; relays: Map<string, Relay> }> {
  let at = 0;
  const wires: { readonly name: string; readonly listen: string; readonly target: string }[] = [];
  const clockFile = (place: NodePlace): string => join(cluster.dir, `${place.name}.clock`);
  const cluster: LedgerCluster = await LedgerCluster.prepare({
    nodes: 3,
    leaseMs: LEASE_MS,
    config: { checkpoint: { entries: 5_000, seconds: 20 } },
    addressOf: (from, to) => {
      const [host = ""] = to.bind.split(":");
      const listen = `${host}:${7_301 + at++}`;
      wires.push({ name: `${from.name}>${to.name}`, listen, target: to.bind });
      return listen;
    },
    env: (place) =>
      FAKETIME === undefined
        ? {}
        : {
            LD_PRELOAD: FAKETIME,
            FAKETIME_TIMESTAMP_FILE: clockFile(place),
            FAKETIME_DONT_FAKE_MONOTONIC: "1",
            FAKETIME_CACHE_DURATION: "1",
          },
  });
  for (const place of cluster.places) writeFileSync(clockFile(place), "+0");
  const relays = new Map<string, Relay>();
  for (const { name, listen, target } of wires)
    relays.set(name, await Relay.listen(listen, target));
  return { cluster, relays };
}

const FAULTS: Readonly<Record<string, Fault>> = {
  kill: async ({ cluster, random, say }) => {
    const { name } = random.pick(cluster.places);
    say(`SIGKILL ${name}`);
    cluster.node(name).kill("SIGKILL");
    await cluster.node(name).ended;
    await pause(random.between(200, 2 * LEASE_MS));
    cluster.start(name);
    await cluster.ready(name, HEAL_MS_MAX);
  },
  pausePastLease: async ({ cluster, random, say }) => {
    const { name } = random.pick(cluster.places);
    const ms = LEASE_MS * random.between(1.2, 3);
    say(`SIGSTOP ${name} for ${Math.round(ms)} ms`);
    cluster.node(name).kill("SIGSTOP");
    await pause(ms);
    cluster.node(name).kill("SIGCONT");
  },
  cutOneWay: async ({ cluster, relays, random, say }) => {
    const [from, to] = twoOf(cluster.places, random);
    say(`cut ${from.name} to ${to.name}, one way`);
    relays.get(`${from.name}>${to.name}`)?.cut();
    await pause(LEASE_MS * random.between(1.2, 3));
    relays.get(`${from.name}>${to.name}`)?.heal();
  },
  isolate: async ({ cluster, relays, random, say }) => {
    const { name } = random.pick(cluster.places);
    say(`cut ${name} off, both ways`);
    const wires = [...relays].filter(([wire]) => wire.split(">").includes(name));
    for (const [, relay] of wires) relay.cut();
    await pause(LEASE_MS * random.between(1.2, 3));
    for (const [, relay] of wires) relay.heal();
  },
  deafen: async ({ cluster, relays, random, say }) => {
    const { name } = random.pick(cluster.places);
    say(`${name} hears nobody, and is heard`);
    const wires = [...relays].filter(([wire]) => wire.endsWith(`>${name}`));
    for (const [, relay] of wires) relay.cut();
    await pause(LEASE_MS * random.between(1.2, 3));
    for (const [, relay] of wires) relay.heal();
  },
  clockStep: async ({ cluster, random, say }) => {
    const place = random.pick(cluster.places);
    const seconds = random.pick([-3_600, -30, -5, 5, 30, 3_600]);
    say(`step the clock of ${place.name} by ${seconds} s`);
    const file = join(cluster.dir, `${place.name}.clock`);
    writeFileSync(file, seconds < 0 ? `${seconds}` : `+${seconds}`);
    await pause(LEASE_MS * random.between(1.2, 3));
    writeFileSync(file, "+0");
  },
};

function twoOf(places: readonly NodePlace[], random: Random): [NodePlace, NodePlace] {
  const from = random.pick(places);
  return [from, random.pick(places.filter((place) => place !== from))];
}

async function calmRate(clients: Clients): Promise<number> {
  const before = clients.samples.length;
  await pause(CALM_MS);
  return (clients.samples.length - before) / (CALM_MS / 1_000);
}

/** All nodes agree, and one log per job explains all that was seen. */
async function verdict({ cluster }: World, clients: Clients): Promise<readonly string[]> {
  const logs = await clients.finalLogs();
  const problems = [...checkHistory(clients.operations, logs)];
  for (const [key, jobs] of clients.keys) {
    if (jobs.size > 1) problems.push(`${key} made ${jobs.size} jobs: ${[...jobs].join(", ")}`);
  }
  let different: readonly string[] = [];
  const agreed = async (): Promise<boolean> => {
    const seen = await Promise.all(cluster.places.map((place) => clients.seenBy(place)));
    different = logs
      .filter(({ job }) => new Set(seen.map((one) => one.get(job))).size > 1)
      .map(({ job }) => `${job}: the replicas differ at the end`);
    return different.length === 0;
  };
  await until("all replicas agree", HEAL_MS_MAX, agreed).catch(() => problems.push(...different));
  for (const { name } of cluster.places) {
    const alarms = cluster.node(name).events.filter(({ event }) => event === "alarm");
    for (const { why } of alarms) problems.push(`${name} raised an alarm: ${String(why)}`);
    if (!cluster.node(name).alive) problems.push(`${name} has ended by itself`);
  }
  return problems;
}

function summary(
  clients: Clients,
  faults: Readonly<Record<string, number>>,
  calmRates: readonly number[],
  problems: readonly string[],
): ChaosResult {
  const times = clients.samples.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number): number => Math.round(times[Math.floor(times.length * share)] ?? 0);
  return {
    operations: clients.operations.length,
    acknowledged: clients.samples.length,
    unknown: clients.unknown,
    jobs: clients.keys.size,
    faults,
    skipped:
      FAKETIME === undefined ? ["clockStep: libfaketime is not installed (apt: faketime)"] : [],
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    unavailableMsMax: Math.round(unavailable(clients.operations)),
    calmRates,
    problems,
  };
}

/** Over all jobs, the longest wait from an operation's start, or the last success before, to the next. */
function unavailable(operations: readonly Operation[]): number {
  const last = new Map<string, number>();
  let longest = 0;
  const returned = operations.filter(({ returnedAt }) => returnedAt !== Infinity);
  for (const { job, invokedAt, returnedAt } of returned.sort(
    (a, b) => a.returnedAt - b.returnedAt,
  )) {
    const since = Math.max(invokedAt, last.get(job) ?? 0);
    longest = Math.max(longest, returnedAt - since);
    last.set(job, returnedAt);
  }
  return longest;
}
