/**
 * Cost of the nodes of a large cluster, in simulation: the process objects of production over simulated streams, one
 * simulated minute of one job on all cores of all datacenters.
 *
 * All workers of the first datacenter are simulated. Of each other datacenter, its managers and one worker are
 * simulated; the worker stands for all: a gate receives merged metrics of a datacenter, which are as large and as many
 * for one worker as for all of them, and no node of a datacenter receives anything from another. The row shows both:
 * the gate's traffic with the first datacenter is that with any other, and a node of the first one costs the same
 * however many others there are.
 */

import { TiersCheckers } from "../../sim/cluster/checkers.ts";
import { Committed } from "../../sim/cluster/committed.ts";
import { plainJob } from "../../sim/cluster/jobs.ts";
import { planOf } from "../../sim/cluster/overload/bench.ts";
import { Results } from "../../sim/cluster/results.ts";
import { Truth } from "../../sim/cluster/truth.ts";
import { Cluster, datacenterName } from "../../sim/cluster/world.ts";
import { World } from "../../sim/kernel/world.ts";
import { Violations } from "../../sim/membership/checkers/violations.ts";
import { ANYWHERE } from "../../src/core/cluster/messages.ts";
import { type NodeCost, NodeMeters } from "./node-meters.ts";
import { type Findings, type Measurement, quantile, type Seen } from "./row.ts";

const WORKERS = 200;
const DATACENTERS = [5, 20, 50];
const MANAGERS = 3;
const GATES = 3;
const WARM_UP_MS = 6_000;
/** A gate prepares a job in one datacenter after the other, each in about half a second. */
const START_MS_MAX = 180_000;
const MEASURED_MS = 60_000;
/** Between the fewest and the most datacenters: random draws differ between worlds. */
const GROWTH_MAX = 1.1;
/** Growth of CPU time, which other programs of this machine disturb. */
const CPU_GROWTH_MAX = 1.5;
/** Metrics of more workers fill more cells of a histogram, not more histograms. */
const PLACE_RATIO_MAX = 2;
const LOOK_EVERY_EVENTS = 2_000;

const SCALE = {
  name: "scale",
  figure: "10,000 workers in simulation, a node at 50 / 5 datacenters: messages, bytes, CPU",
  must: "flat",
  aim: "flat",
};

/** Per node and second. */
interface Sample {
  readonly datacenters: number;
  /** Nodes of the first datacenter: the leader of the job there, and a worker in the middle. */
  readonly manager: NodeCost;
  readonly worker: NodeCost;
  /** The gate that leads the job. */
  readonly gate: NodeCost;
  /** Bytes between that gate and the managers of the first datacenter, and of the second one. */
  readonly gateBytes: readonly [number, number];
}

function clusterOf(world: World, datacenters: number): Cluster {
  const workerPlaces = [
    ...Array.from({ length: WORKERS }, () => 0),
    ...Array.from({ length: datacenters - 1 }, (_, at) => at + 1),
  ];
  const workers = workerPlaces.length;
  const size = { gates: GATES, managers: MANAGERS * datacenters, workers, clients: 1 };
  const plan = {
    ...planOf({ ...size, coresPerWorker: 1 }),
    ...{ datacenters, workerPlaces, costMs: null },
  };
  const violations = new Violations(world);
  const truth = new Truth(world, violations);
  const results = new Results(world, violations, truth, plan);
  const cluster = new Cluster({
    ...{ world, plan, violations, truth, mutant: null, onIdle: () => undefined },
    checkers: new TiersCheckers(world, violations, results),
    committed: new Committed(violations),
  });
  for (const { process } of [...cluster.managers, ...cluster.gates]) process.start();
  for (const one of [...cluster.workers, ...cluster.clients]) one.start();
  world.runUntil(WARM_UP_MS);
  return cluster;
}

/** One job with a user on every core. */
function load(world: World, { clients, workers }: Cluster, datacenters: number): boolean {
  const stages = [{ durationMs: 10 * MEASURED_MS, from: workers.length, to: workers.length }];
  const plain = plainJob("scale", {
    ...{ load: { kind: "vus", stages }, cores: workers.length, tenant: null, bundle: "scale" },
  });
  const names = Array.from({ length: datacenters }, (_, at) => datacenterName(at));
  // All free cores: there are more in the first datacenter than in the others.
  const submission = { ...plain.submission, cores: null };
  const job = { ...plain, submission, routing: { ...ANYWHERE, datacenters: names } };
  clients[0]?.submitOnce(job, () => undefined);
  const isRunning = (): boolean =>
    workers.every(({ cores }) => [...cores.values()].some((core) => core.isLoading));
  let events = 0;
  const isLookedAt = (): boolean => ++events % LOOK_EVERY_EVENTS === 0;
  world.runUntil(world.now + START_MS_MAX, () => isLookedAt() && isRunning());
  return isRunning();
}

/** Null: the job does not begin. */
function simulate(datacenters: number): Sample | null {
  const world = new World(1);
  const cluster = clusterOf(world, datacenters);
  if (!load(world, cluster, datacenters)) return null;
  const { gates, managers, workers } = cluster;
  const gate = gates.find(({ open }) => open().length > 0)?.process.index ?? 0;
  const manager = managers.slice(0, MANAGERS).find(({ open }) => open().length > 0);
  const meters = new NodeMeters(world, cluster.network);
  world.runUntil(world.now + MEASURED_MS);
  const ofPlace = (place: number): number =>
    managers
      .slice(place * MANAGERS, (place + 1) * MANAGERS)
      .reduce((sum, { process }) => sum + meters.bytesBetween(gate, process.index), 0);
  const all = workers.slice(0, WORKERS).map(({ index }) => meters.cost(index));
  return {
    ...{ datacenters, gate: meters.cost(gate), worker: middleOf(all) },
    manager: meters.cost(manager?.process.index ?? 0),
    gateBytes: [ofPlace(0), ofPlace(1)],
  };
}

function middleOf(costs: readonly NodeCost[]): NodeCost {
  const middle = (of: (cost: NodeCost) => number): number => quantile(costs.map(of), 0.5);
  return {
    messages: middle(({ messages }) => messages),
    bytes: middle(({ bytes }) => bytes),
    cpuMs: middle(({ cpuMs }) => cpuMs),
  };
}

function textOf({ bytes, cpuMs, messages }: NodeCost): string {
  const kilobytes = (bytes / 1_000).toFixed(1);
  return `${messages.toFixed(1)} messages/s, ${kilobytes} kB/s, ${cpuMs.toFixed(1)} ms/s of CPU`;
}

function sayAll(
  { datacenters, gate, gateBytes, manager, worker }: Sample,
  say: (text: string) => void,
): void {
  const [first, second] = gateBytes.map((bytes) => (bytes / 1_000).toFixed(1));
  say(`scale: ${datacenters} datacenters x ${WORKERS} workers`);
  say(`scale:   worker   ${textOf(worker)}`);
  say(`scale:   manager  ${textOf(manager)}`);
  say(`scale:   gate     ${textOf(perDatacenter(gate, datacenters))}, each for a datacenter`);
  say(`scale:   gate     ${first} kB/s with ${WORKERS} workers, ${second} kB/s with one`);
}

function perDatacenter({ bytes, cpuMs, messages }: NodeCost, datacenters: number): NodeCost {
  return {
    messages: messages / datacenters,
    bytes: bytes / datacenters,
    cpuMs: cpuMs / datacenters,
  };
}

/** From the fewest to the most datacenters. */
function growth(one: NodeCost, other: NodeCost): NodeCost {
  return {
    messages: other.messages / one.messages,
    bytes: other.bytes / one.bytes,
    cpuMs: other.cpuMs / one.cpuMs,
  };
}

function seenOf(few: Sample, many: Sample): Seen {
  const gates = [few, many].map(({ datacenters, gate }) => perDatacenter(gate, datacenters));
  const [gateOfFew = few.gate, gateOfMany = many.gate] = gates;
  const [first, second] = many.gateBytes;
  const grown = [
    { name: "worker", ...growth(few.worker, many.worker) },
    { name: "manager", ...growth(few.manager, many.manager) },
    { name: "gate for each datacenter", ...growth(gateOfFew, gateOfMany) },
  ];
  const holds =
    first / second <= PLACE_RATIO_MAX &&
    grown.every(
      ({ bytes, cpuMs, messages }) =>
        Math.max(messages, bytes) <= GROWTH_MAX && cpuMs <= CPU_GROWTH_MAX,
    );
  const parts = grown.map(
    ({ bytes, cpuMs, messages, name }) =>
      `${name} ${messages.toFixed(2)}, ${bytes.toFixed(2)}, ${cpuMs.toFixed(2)}`,
  );
  return { text: parts.join("; "), holds };
}

/** Always the same worlds, so they are simulated once. */
async function measure(_rounds: number, say: (text: string) => void): Promise<Findings> {
  const samples = DATACENTERS.map((datacenters) => {
    const sample = simulate(datacenters);
    if (sample !== null) sayAll(sample, say);
    return sample;
  });
  const [few = null, many = null] = [samples[0], samples.at(-1)];
  const text = "the job does not begin on all workers within three minutes";
  const seen = few === null || many === null ? { text, holds: false } : seenOf(few, many);
  return new Map([[SCALE.name, seen]]);
}

export const scale: Measurement = { rows: [SCALE], measure };
