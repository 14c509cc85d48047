/**
 * A cluster in one seeded world: gates over their ledger, datacenters with managers over ledgers of their own and
 * workers with cores, and client programs. Without gates there is one datacenter, and clients use it directly.
 */

import { address, type NodeId, nodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { CallsView } from "../../src/core/cluster/gate/calls.ts";
import { identityOfSpec } from "../../src/core/cluster/gate/spec.ts";
import { QUEUE_LIMITS } from "../../src/core/cluster/link/limits.ts";
import { LINK_RULES } from "../../src/core/cluster/link/rules.ts";
import { datacenterKind } from "../../src/core/cluster/manager/datacenter-state.ts";
import { runKind } from "../../src/core/cluster/manager/run-state.ts";
import { PROCESS_RULES } from "../../src/core/cluster/node/rules.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import { VSR_DEFAULTS } from "../../src/core/ledger/group/config.ts";
import { SHARD_COUNT } from "../../src/core/ledger/keys/key.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { WAL_RULES } from "../../src/core/ledger/log/rules.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../../src/core/ledger/node/config.ts";
import { STORE_RULES } from "../../src/core/ledger/store/rules.ts";
import { NodeClock } from "../kernel/clock.ts";
import { Cpu } from "../kernel/cpu.ts";
import { secretOf } from "../kernel/keys.ts";
import { Network } from "../kernel/network.ts";
import { type StreamHost, Streams } from "../kernel/streams.ts";
import type { World } from "../kernel/world.ts";
import { LedgerDisk } from "../ledger/disk.ts";
import { addressOf } from "../ledger/machine.ts";
import { LedgerProcess, type LedgerWatcher } from "../ledger/node.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import { BlobDisk } from "./blob-disk.ts";
import { BlobEffects } from "./blob-effects.ts";
import type { TiersCheckers } from "./checkers.ts";
import { SimClient } from "./client.ts";
import type { Committed } from "./committed.ts";
import { Evictions } from "./evictions.ts";
import type { SimLedger } from "./faults.ts";
import { type DatacenterSite, GateAbove } from "./gate.ts";
import { Lifetime } from "./lifetime.ts";
import { ManagerAbove } from "./manager.ts";
import { tiersRulesWithout } from "./mutants.ts";
import type { TiersPlan } from "./swarm.ts";
import type { Truth } from "./truth.ts";
import { SimWorker } from "./worker.ts";

/** Environment of simulated processes. */
export interface TiersAround {
  readonly world: World;
  readonly streams: Streams;
  readonly checkers: TiersCheckers;
  readonly committed: Committed;
  readonly truth: Truth;
  /** Called when a client has nothing to do. */
  readonly onIdle: (client: SimClient) => void;
}

interface ClusterOptions {
  readonly world: World;
  readonly plan: TiersPlan;
  readonly violations: Violations;
  readonly checkers: TiersCheckers;
  readonly committed: Committed;
  readonly truth: Truth;
  readonly onIdle: (client: SimClient) => void;
  readonly mutant: string | null;
}

const LEASE_MS = 3_000;
/** Interval of overload samples, as in `src/host/pressure.ts`. */
const PRESSURE_EVERY_MS = 500;

export class Cluster {
  readonly network: Network;
  readonly streams: Streams;
  readonly managers: readonly SimLedger[];
  readonly workers: readonly SimWorker[];
  readonly clients: readonly SimClient[];
  readonly gates: readonly SimLedger[];
  /** CPU of every node by index; empty where inputs are free. */
  readonly cpus: readonly Cpu[];
  readonly evictions: Evictions;
  readonly #options: ClusterOptions;
  /** Called on every effect; faults use it as a trigger. */
  onEffect: (process: LedgerProcess, effect: ProcessEffect) => void = () => undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { checkers, committed, onIdle, plan, truth, world } = options;
    const { clients, gates, managers, workers } = plan;
    const count = managers + workers + clients + gates;
    const { costMs } = plan;
    this.cpus = costMs === null ? [] : range(count).map((at) => new Cpu(world, at, costMs));
    this.network = new Network(count, world.random.fork("net"));
    const hosts = new Map<string, StreamHost>();
    const { network } = this;
    this.streams = new Streams(world, network, world.random.fork("streams"), hosts);
    const around = { world, streams: this.streams, checkers, committed, truth, onIdle };
    this.evictions = new Evictions(world, options.violations, plan, () => this.workers);
    this.managers = range(managers).map((index) => this.#manager(index));
    this.workers = range(workers).map((at) => this.#worker(around, managers + at, `w${at}`));
    const firstGate = managers + workers + clients;
    this.gates = range(gates).map((at) => this.#gate(firstGate, at));
    this.clients = range(clients).map((at) => {
      const index = managers + workers + at;
      const random = world.random.fork(`client/${at}`);
      const asked = gates > 0 ? range(gates).map((one) => firstGate + one) : range(managers);
      const addresses = asked.map((one) => address(addressOf(one)));
      const lifetime = this.#lifetime(index, `c${at}`);
      return new SimClient(around, lifetime, addresses, random, plan.jobs.datacenters);
    });
    for (const { process } of [...this.managers, ...this.gates])
      hosts.set(addressOf(process.index), process);
    if (this.cpus.length > 0) this.#measure();
  }

  /** Feeds overload samples to the machines, as hosts do. */
  #measure(): void {
    const { checkers, world } = this.#options;
    for (const { pressure, process } of [...this.managers, ...this.gates]) {
      const measured = this.cpus[process.index]?.take();
      if (measured === undefined) continue;
      process.deliver(process.life, { kind: "pressure", ...measured, memory: 0, queue: 0 });
      checkers.onMeasured(pressure());
    }
    world.schedule(world.now + PRESSURE_EVERY_MS, "check", 0, () => this.#measure());
  }

  #clock(index: number): NodeClock {
    const { plan, world } = this.#options;
    const random = world.random.fork(`clock/${index}`);
    const rate = 1 + (random.float() - 0.5) * plan.clockDrift;
    return new NodeClock(random.float() * 1_000_000, rate);
  }

  #lifetime(index: number, name: string): Lifetime {
    const cpu = this.cpus[index] ?? null;
    return new Lifetime(name, index, this.#clock(index), this.#options.world, cpu);
  }

  #blobDisk(index: number): BlobDisk {
    const { plan, world } = this.#options;
    return new BlobDisk(world, index, plan.disk.syncMsMax, world.random.fork(`blobs/${index}`));
  }

  #manager(index: number): SimLedger {
    const { plan } = this.#options;
    const count = plan.managers / plan.datacenters;
    const place = Math.floor(index / count);
    const firstIndex = place * count;
    const datacenter = datacenterName(place);
    const names = range(count).map((at) => nameOf(firstIndex + at));
    const addresses = new Map(
      names.map((name, at) => [name, address(addressOf(firstIndex + at))] as const),
    );
    const { manager: rules, pressure } = tiersRulesWithout(this.#options.mutant);
    const disk = this.#blobDisk(index);
    const blobs = new BlobEffects(disk);
    const above = new ManagerAbove(
      nameOf(index),
      { addresses, datacenter, rules, pressure },
      blobs,
    );
    const process = this.#ledger({
      ...({ index, firstIndex, id: nameOf(index), role: "manager", above } as const),
      sites: names.map((node) => ({ node, region: datacenter })),
      kinds: [datacenterKind(rules, plan.endedMax ?? undefined), runKind(rules)],
    });
    blobs.standsIn(process);
    const pressed = () => (process.serves ? (above.machine?.pressure ?? null) : null);
    const open = (): readonly string[] => above.manager?.openRuns ?? [];
    return { process, blobs: disk, datacenter, open, pressure: pressed, ways: () => [] };
  }

  #gate(firstIndex: number, at: number): SimLedger {
    const { plan, world } = this.#options;
    const index = firstIndex + at;
    const names = range(plan.gates).map((one) => nodeId(`g${one}`));
    const id = nodeId(`g${at}`);
    const addresses = new Map(
      names.map((name, one) => [name, address(addressOf(firstIndex + one))] as const),
    );
    const perDatacenter = plan.managers / plan.datacenters;
    const datacenters = range(plan.datacenters).map(
      (place): DatacenterSite => ({
        name: datacenterName(place),
        managers: range(perDatacenter).map((one) => {
          const manager = place * perDatacenter + one;
          return { name: nameOf(manager), address: address(addressOf(manager)) };
        }),
      }),
    );
    const disk = this.#blobDisk(index);
    const { gate: rules, pressure } = tiersRulesWithout(this.#options.mutant);
    const spec = { name: id, addresses, datacenters, pressure, rules };
    const random = world.random.fork(`gate/${at}`);
    const above = new GateAbove(spec, this.streams, new BlobEffects(disk), random);
    const process = this.#ledger({
      ...({ index, firstIndex, id, role: "gate", above, kinds: [] } as const),
      ...{ sites: names.map((node) => ({ node, region: "gates" })), identityOf: identityOfSpec },
    });
    above.standsIn(process);
    const pressed = () => (process.serves ? (above.machine?.pressure ?? null) : null);
    const open = (): readonly string[] => above.gate?.openJobs ?? [];
    const ways = (): readonly CallsView[] => (process.serves ? (above.gate?.calls ?? []) : []);
    return { process, blobs: disk, datacenter: "", open, pressure: pressed, ways };
  }

  #ledger(
    own: Pick<
      LedgerProcess["spec"],
      "index" | "firstIndex" | "id" | "role" | "above" | "sites" | "kinds" | "identityOf"
    >,
  ): LedgerProcess {
    const { plan, world } = this.#options;
    const { index } = own;
    const random = world.random.fork(`machine/${index}`);
    const disk = new LedgerDisk(plan.disk, random.fork("disk"));
    const around = { world, streams: this.streams, watcher: this.#watcher() };
    const cpu = this.cpus[index];
    const spec = {
      ...own,
      ...(cpu === undefined ? {} : { cpu }),
      foundingSites: own.sites.length,
      // Clients of gates choose their keys; managers have none in their ledger.
      shards: own.role === "gate" ? range(SHARD_COUNT) : [0],
      config: nodeConfig(own.sites.length, plan.compactEntries),
      ...{ rules: LEDGER_RULES, linkRules: LINK_RULES, processRules: PROCESS_RULES },
      ...{ queue: QUEUE_LIMITS, sliceGroupsMax: 128 },
      wal: walConfig({ segmentBytes: 8_388_608, fullDisk: "wait" }),
      ...{ walRules: WAL_RULES, storeRules: STORE_RULES },
      ...{ checkpointEveryMs: plan.checkpointEveryMs, checkpointsKept: 2 },
    };
    return new LedgerProcess(spec, around, this.#clock(index), disk, [secretOf(0)]);
  }

  /** The ledger below is checked by its own simulator. */
  #watcher(): LedgerWatcher {
    const { checkers, committed, violations } = this.#options;
    const { evictions } = this;
    const nothing = (): void => undefined;
    const observer = {
      ...{ appended: nothing, placed: nothing, durable: nothing, failed: nothing },
      checkpointed: nothing,
    };
    return {
      observer: () => observer,
      mark: (name) => checkers.marks.add(name),
      onRecovered: nothing,
      onRefused: (process, why) => violations.report("DISK", `${process.id} refuses: ${why}`),
      onEffect: (process, effect) => {
        this.onEffect(process, effect);
        if (effect.kind === "applied") committed.onApplied(process, effect);
        if (effect.kind === "log") evictions.onSaid(`${process.id}/${process.life}`, effect);
        if (effect.kind === "leads" && effect.leads)
          this.#options.world.note(`${process.id} leads ${effect.group} in view ${effect.view}`);
      },
      peersWatcher: () => ({ onSend: nothing, onSent: nothing, onTaken: nothing }),
      onTurn: nothing,
    };
  }

  #worker(around: TiersAround, index: number, name: string): SimWorker {
    const { plan, world } = this.#options;
    const count = plan.managers / plan.datacenters;
    const at = index - plan.managers;
    const place = plan.workerPlaces?.[at] ?? at % plan.datacenters;
    const managers = range(count).map((one) => ({
      name: nameOf(place * count + one),
      address: address(addressOf(place * count + one)),
    }));
    const datacenter = datacenterName(place);
    const { worker: rules } = tiersRulesWithout(this.#options.mutant);
    const { coresPerWorker: cores, isolationMs } = plan;
    const spec = { cores, isolationMs, rules, managers, datacenter };
    const random: Random = world.random.fork(`worker/${index}`);
    return new SimWorker(spec, around, this.#lifetime(index, name), this.#blobDisk(index), random);
  }
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

export function datacenterName(place: number): string {
  return `dc${place + 1}`;
}

function nameOf(index: number): NodeId {
  return nodeId(`m${index}`);
}

/** Same values as `src/nodes/manager/config.ts` and `src/ledger/config.ts` derive from a lease of three seconds. */
function nodeConfig(nodes: number, compactEntries: number): typeof LEDGER_NODE_DEFAULTS {
  const vsr = {
    ...VSR_DEFAULTS,
    leaseMs: LEASE_MS,
    tailEntries: Math.min(VSR_DEFAULTS.tailEntries, compactEntries / 2),
    renewMs: 900,
    leaseMarginMs: Math.min(VSR_DEFAULTS.leaseMarginMs, 150),
    retransmitMs: Math.min(VSR_DEFAULTS.retransmitMs, 900),
    rankDelayMs: Math.min(VSR_DEFAULTS.rankDelayMs, 750),
    viewChangeTimeoutMs: Math.min(VSR_DEFAULTS.viewChangeTimeoutMs, LEASE_MS),
    viewChangeBackoffMs: Math.min(VSR_DEFAULTS.viewChangeBackoffMs, 600),
  };
  return { ...LEDGER_NODE_DEFAULTS, vsr, replicas: nodes === 1 ? 1 : 3, compactEntries };
}
