/**
 * One datacenter in one seeded world: managers over their ledger, workers with cores, and programs that use them.
 */

import { address, type NodeId, nodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import { VSR_DEFAULTS } from "../../src/core/ledger/group/config.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { WAL_RULES } from "../../src/core/ledger/log/rules.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../../src/core/ledger/node/config.ts";
import { STORE_RULES } from "../../src/core/ledger/store/rules.ts";
import { QUEUE_LIMITS } from "../../src/core/tiers/link/limits.ts";
import { LINK_RULES } from "../../src/core/tiers/link/rules.ts";
import { datacenterKind } from "../../src/core/tiers/manager/datacenter-state.ts";
import { runKind } from "../../src/core/tiers/manager/run-state.ts";
import { PROCESS_RULES } from "../../src/core/tiers/process/rules.ts";
import type { Violations } from "../cluster/checkers/violations.ts";
import { NodeClock } from "../kernel/clock.ts";
import { secretOf } from "../kernel/keys.ts";
import { Network } from "../kernel/network.ts";
import { type StreamHost, Streams } from "../kernel/streams.ts";
import type { World } from "../kernel/world.ts";
import { LedgerDisk } from "../ledger/disk.ts";
import { addressOf } from "../ledger/machine.ts";
import { LedgerProcess, type LedgerWatcher } from "../ledger/node.ts";
import { BlobDisk } from "./blob-disk.ts";
import type { TiersCheckers } from "./checkers.ts";
import { SimClient } from "./client.ts";
import type { SimManager } from "./faults.ts";
import { Lifetime } from "./lifetime.ts";
import { DATACENTER, ManagerAbove } from "./manager.ts";
import { tiersRulesWithout } from "./mutants.ts";
import type { TiersPlan } from "./swarm.ts";
import type { Truth } from "./truth.ts";
import { SimWorker } from "./worker.ts";

/** What simulated processes stand in. */
export interface TiersAround {
  readonly world: World;
  readonly streams: Streams;
  readonly checkers: TiersCheckers;
  readonly truth: Truth;
  /** A client has nothing to do. */
  readonly onIdle: (client: SimClient) => void;
}

interface DatacenterOptions {
  readonly world: World;
  readonly plan: TiersPlan;
  readonly violations: Violations;
  readonly checkers: TiersCheckers;
  readonly truth: Truth;
  readonly onIdle: (client: SimClient) => void;
  readonly mutant: string | null;
}

const LEASE_MS = 3_000;

export class Datacenter {
  readonly network: Network;
  readonly streams: Streams;
  readonly managers: readonly SimManager[];
  readonly workers: readonly SimWorker[];
  readonly clients: readonly SimClient[];
  readonly #options: DatacenterOptions;

  constructor(options: DatacenterOptions) {
    this.#options = options;
    const { checkers, onIdle, plan, truth, world } = options;
    const { clients, managers, workers } = plan;
    const count = managers + workers + clients;
    this.network = new Network(count, world.random.fork("net"));
    const hosts = new Map<string, StreamHost>();
    const { network } = this;
    this.streams = new Streams(world, network, world.random.fork("streams"), hosts);
    const around = { world, streams: this.streams, checkers, truth, onIdle };
    this.managers = range(managers).map((index) => this.#manager(index));
    this.workers = range(workers).map((at) => this.#worker(around, managers + at, `w${at}`));
    this.clients = range(clients).map((at) => {
      const index = managers + workers + at;
      const random = world.random.fork(`client/${at}`);
      const addresses = range(managers).map((one) => address(addressOf(one)));
      return new SimClient(around, this.#lifetime(index, `c${at}`), addresses, random);
    });
    for (const { process } of this.managers) hosts.set(addressOf(process.index), process);
  }

  #clock(index: number): NodeClock {
    const { plan, world } = this.#options;
    const random = world.random.fork(`clock/${index}`);
    const rate = 1 + (random.float() - 0.5) * plan.clockDrift;
    return new NodeClock(random.float() * 1_000_000, rate);
  }

  #lifetime(index: number, name: string): Lifetime {
    return new Lifetime(name, index, this.#clock(index), this.#options.world);
  }

  #blobDisk(index: number): BlobDisk {
    const { plan, world } = this.#options;
    return new BlobDisk(world, index, plan.disk.syncMsMax, world.random.fork(`blobs/${index}`));
  }

  #manager(index: number): SimManager {
    const { plan, world } = this.#options;
    const random = world.random.fork(`machine/${index}`);
    const sites = range(plan.managers).map((at) => ({ node: nameOf(at), region: DATACENTER }));
    const blobs = this.#blobDisk(index);
    const addresses = range(plan.managers).map(
      (at) => [nameOf(at), address(addressOf(at))] as const,
    );
    const { manager: rules } = tiersRulesWithout(this.#options.mutant);
    const own = { addresses: new Map(addresses), rules };
    const above = new ManagerAbove(nameOf(index), own, blobs);
    const disk = new LedgerDisk(plan.disk, random.fork("disk"));
    const around = { world, streams: this.streams, watcher: this.#watcher() };
    const spec = {
      ...({ index, id: nameOf(index), role: "manager", sites, above } as const),
      ...{
        foundingSites: plan.managers,
        shards: [0],
        kinds: [datacenterKind(rules), runKind(rules)],
      },
      config: nodeConfig(plan),
      ...{ rules: LEDGER_RULES, linkRules: LINK_RULES, processRules: PROCESS_RULES },
      ...{ queue: QUEUE_LIMITS, sliceGroupsMax: 128 },
      wal: walConfig({ segmentBytes: 8_388_608, fullDisk: "wait" }),
      ...{ walRules: WAL_RULES, storeRules: STORE_RULES },
      ...{ checkpointEveryMs: 60_000, checkpointsKept: 2 },
    };
    const process = new LedgerProcess(spec, around, this.#clock(index), disk, [secretOf(0)]);
    above.standsIn(process);
    return { process, above, blobs };
  }

  /** The ledger below is looked at by its own simulator. */
  #watcher(): LedgerWatcher {
    const { violations, checkers } = this.#options;
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
        if (effect.kind === "leads" && effect.leads)
          this.#options.world.note(`${process.id} leads ${effect.group} in view ${effect.view}`);
      },
      peersWatcher: () => ({ onSend: nothing, onSent: nothing, onTaken: nothing }),
      onTurn: nothing,
    };
  }

  #worker(around: TiersAround, index: number, name: string): SimWorker {
    const { plan, world } = this.#options;
    const managers = range(plan.managers).map((at) => ({
      name: nameOf(at),
      address: address(addressOf(at)),
    }));
    const { worker: rules } = tiersRulesWithout(this.#options.mutant);
    const { coresPerWorker: cores, isolationMs } = plan;
    const spec = { cores, isolationMs, rules, managers };
    const random: Random = world.random.fork(`worker/${index}`);
    return new SimWorker(spec, around, this.#lifetime(index, name), this.#blobDisk(index), random);
  }
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function nameOf(index: number): NodeId {
  return nodeId(`m${index}`);
}

/** As `src/tiers/manager/config.ts` and `src/ledger/config.ts` make it from a lease of three seconds. */
function nodeConfig({ compactEntries, managers }: TiersPlan): typeof LEDGER_NODE_DEFAULTS {
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
  return { ...LEDGER_NODE_DEFAULTS, vsr, replicas: managers === 1 ? 1 : 3, compactEntries };
}
