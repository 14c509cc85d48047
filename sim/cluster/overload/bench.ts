/**
 * A simulated cluster without faults, in which inputs cost gates and managers time, and clients with the load that a
 * measurement needs.
 */

import type { ClientAnswer, ClientRequest } from "../../../src/core/cluster/messages.ts";
import { CALM_LINKS } from "../../kernel/network.ts";
import { CALM_STREAMS } from "../../kernel/streams.ts";
import { World } from "../../kernel/world.ts";
import { Violations } from "../../membership/checkers/violations.ts";
import { TiersCheckers } from "../checkers.ts";
import type { SimClient } from "../client.ts";
import { Committed } from "../committed.ts";
import type { JobPlan } from "../jobs.ts";
import { Results } from "../results.ts";
import type { TiersPlan } from "../swarm.ts";
import { Truth } from "../truth.ts";
import { Cluster } from "../world.ts";

interface BenchSize {
  readonly gates: number;
  readonly managers: number;
  readonly workers: number;
  readonly coresPerWorker: number;
  readonly clients: number;
  /** Cost of an input of a gate, of a manager, of all others. */
  readonly gateCostMs: number;
  readonly managerCostMs: number;
}

const OTHER_COST_MS = 0.001;
/** By then all nodes are connected. */
const WARM_UP_MS = 6_000;

export class Bench {
  readonly world: World;
  readonly cluster: Cluster;
  readonly truth: Truth;
  readonly violations: Violations;
  readonly size: BenchSize;

  constructor(seed: number, size: BenchSize) {
    this.size = size;
    this.world = new World(seed);
    const { world } = this;
    const plan = planOf(size);
    this.violations = new Violations(world);
    const { violations } = this;
    this.truth = new Truth(world, violations);
    const results = new Results(world, violations, this.truth, plan);
    this.cluster = new Cluster({
      ...{ world, plan, violations, truth: this.truth, mutant: null },
      checkers: new TiersCheckers(world, violations, results),
      committed: new Committed(violations),
      onIdle: () => undefined,
    });
    const { clients, gates, managers, workers } = this.cluster;
    for (const { process } of managers) this.#costs(process.index, size.managerCostMs);
    for (const { process } of gates) this.#costs(process.index, size.gateCostMs);
    for (const { index } of [...workers, ...clients]) this.#costs(index, OTHER_COST_MS);
    for (const { process } of [...managers, ...gates]) process.start();
    for (const one of [...workers, ...clients]) one.start();
    world.runUntil(WARM_UP_MS);
  }

  #costs(index: number, costMs: number): void {
    const cpu = this.cluster.cpus[index];
    if (cpu !== undefined) cpu.costMs = costMs;
  }

  client(at: number): SimClient {
    const { clients } = this.cluster;
    const client = clients[at % clients.length];
    if (client === undefined) throw new Error("a bench has clients");
    return client;
  }

  run(forMs: number): void {
    this.world.runUntil(this.world.now + forMs);
  }

  ask(
    client: SimClient,
    request: ClientRequest,
    then: (answer: ClientAnswer | null) => void,
  ): void {
    client.askOnce(request, null, then);
  }

  /** Submits once; `then` receives the duration. */
  submit(
    client: SimClient,
    plan: JobPlan,
    then: (answer: ClientAnswer | null, tookMs: number) => void,
  ): void {
    const { world } = this;
    const at = world.now;
    client.submitOnce(plan, (answer) => then(answer, world.now - at));
  }
}

export function planOf({
  clients,
  coresPerWorker,
  gates,
  managers,
  workers,
}: Omit<BenchSize, "gateCostMs" | "managerCostMs">): TiersPlan {
  return {
    ...{ gates, datacenters: 1, managers, workers, clients, coresPerWorker },
    ...{ isolationMs: 60_000, scope: "none", thinkMs: 0, repeated: 0, endedMax: null },
    jobs: {
      ...{ loadMsMax: 0, limited: 0, stubborn: 0, controlled: 0, bundleBytes: 0 },
      ...{ coresMax: workers * coresPerWorker, datacenters: 1 },
    },
    disk: {
      ...{ pageBytes: 4_096, writeMsMax: 0.1, syncMsMax: 0.5, slowSyncChance: 0 },
      ...{ slowSyncMsMax: 0, syncErrorChance: 0, writeErrorChance: 0, shortWriteChance: 0 },
    },
    ...{ links: CALM_LINKS, streams: CALM_STREAMS, clockDrift: 0, compactEntries: 512 },
    ...{ checkpointEveryMs: 60_000, costMs: OTHER_COST_MS, faults: [], healAt: 0 },
  };
}
