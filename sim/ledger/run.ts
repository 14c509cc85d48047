/**
 * One seed from start to verdict: warm-up, chaos with clients at work, healing, then liveness: every
 * group has a primary, every reservation its job, every job takes one more event and a strong read, and
 * all replicas agree.
 */

import { Defect } from "../../src/core/base/assert.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { TALLY } from "../../src/core/ledger/node/testing/tally.ts";
import { NodeClock } from "../kernel/clock.ts";
import { secretOf } from "../kernel/keys.ts";
import { Network } from "../kernel/network.ts";
import { Streams } from "../kernel/streams.ts";
import { World } from "../kernel/world.ts";
import type { Violation } from "../membership/checkers/violations.ts";
import { Violations } from "../membership/checkers/violations.ts";
import type { RunResult } from "../membership/run.ts";
import { LedgerCheckers } from "./checkers.ts";
import { LedgerClients } from "./clients.ts";
import { LedgerDisk } from "./disk.ts";
import { LedgerFaults } from "./faults.ts";
import { Finale } from "./finale.ts";
import { LedgerHistory } from "./history.ts";
import { addressOf } from "./machine.ts";
import { FakeManager } from "./manager.ts";
import { ledgerRulesWithout } from "./mutants.ts";
import { LedgerProcess, type LedgerSurroundings } from "./node.ts";
import { drawLedgerPlan, LEDGER_CALM_MS, type LedgerPlan } from "./swarm.ts";
import { Tallies } from "./tallies.ts";
import { LedgerWatchers } from "./watchers.ts";

export interface LedgerRunOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly mutant: string | null;
  /** Indices of the plan's faults to keep; null keeps all. */
  readonly faults: readonly number[] | null;
}

const SAMPLE_MS = 1_000;
const GROW_EVERY_MS = 1_000;

export function runLedgerSeed(options: LedgerRunOptions): RunResult {
  const plan = drawLedgerPlan(new Random(`ledger-swarm/${options.seed}`), options.minutes);
  const run = new LedgerRun(options, plan);
  let violation: Violation | null;
  try {
    violation = run.play();
  } catch (error) {
    if (!(error instanceof Defect)) throw error;
    violation = { id: "DEFECT", text: error.message, at: run.world.now };
  }
  const { world } = run;
  return {
    seed: options.seed,
    hash: world.traceHash(),
    violation,
    events: world.eventCount,
    simulatedMs: world.now,
    faultCount: plan.faults.length,
    marks: [...run.checkers.marks],
    lastNotes: violation === null ? [] : world.lastNotes(80),
  };
}

class LedgerRun {
  readonly world: World;
  readonly plan: LedgerPlan;
  readonly processes: readonly LedgerProcess[];
  readonly checkers: LedgerCheckers;
  readonly clients: LedgerClients;
  readonly history: LedgerHistory;
  readonly #violations: Violations;
  readonly #faults: LedgerFaults;
  readonly #watchers: LedgerWatchers;
  readonly #options: LedgerRunOptions;

  constructor(options: LedgerRunOptions, plan: LedgerPlan) {
    this.#options = options;
    this.plan = plan;
    this.world = new World(options.seed);
    const { world } = this;
    this.#violations = new Violations(world);
    const network = new Network(plan.sites.length, world.random.fork("net"));
    const hosts = new Map<string, LedgerProcess>();
    const streams = new Streams(world, network, world.random.fork("streams"), hosts);
    this.checkers = new LedgerCheckers(this.#violations, streams);
    const { checkers } = this;
    const around = { world, streams, watcher: checkers };
    this.processes = plan.sites.map((_, index) => this.#process(index, around));
    for (const process of this.processes) hosts.set(addressOf(process.index), process);
    this.history = new LedgerHistory(world, checkers, this.#violations, plan);
    checkers.onCreated = (jobId, spec) => this.history.onFounded(jobId, keyOf(spec));
    const manager = new FakeManager(world, this.#violations, world.random.fork("manager"));
    checkers.onLead = (process, group, view) => manager.onLead(process, group, view);
    const { processes, history } = this;
    const members = plan.sites.slice(0, plan.config.replicas).map(({ node }) => node);
    const tallies = new Tallies(checkers, this.#violations, members);
    const clientWorld = { world, plan, processes, checkers, history, tallies };
    this.clients = new LedgerClients(clientWorld, world.random.fork("clients"));
    const watched = { world, processes, checkers, violations: this.#violations };
    this.#watchers = new LedgerWatchers(watched, world.random.fork("watchers"));
    const { clients } = this;
    this.#faults = new LedgerFaults({
      world,
      network,
      streams,
      processes,
      checkers,
      clients,
      plan,
    });
  }

  #process(index: number, around: LedgerSurroundings): LedgerProcess {
    const { plan } = this;
    const all = ledgerRulesWithout(this.#options.mutant);
    const { vsr, wal: walRules, store: storeRules, idempotency, node, link, process } = all;
    const random = this.world.random.fork(`machine/${index}`);
    const rate = 1 + (random.float() - 0.5) * plan.clockDrift;
    const clock = new NodeClock(random.float() * 1_000_000, rate);
    const disk = new LedgerDisk(plan.disk, random.fork("disk"));
    const { sites, foundingSites, shards, config, wal, checkpointEveryMs, sliceGroupsMax, queue } =
      plan;
    const id = sites[index]?.node as NodeId;
    // Every other node has the next list of datacenters already, or still: any one.
    const datacenters = index % 2 === 0 ? config.datacenters : [];
    const spec = {
      ...{ index, id, sites, foundingSites, shards, wal, walRules, storeRules },
      ...({ role: "gate", kinds: [TALLY] } as const),
      config: { ...config, datacenters },
      ...{ checkpointEveryMs, sliceGroupsMax },
      ...{ rules: { vsr, idempotency, node }, checkpointsKept: 2 },
      ...{ linkRules: link, processRules: process, queue },
    };
    return new LedgerProcess(spec, around, clock, disk, [secretOf(0)]);
  }

  play(): Violation | null {
    const { world, plan } = this;
    const keep = this.#options.faults === null ? null : new Set(this.#options.faults);
    this.processes.forEach((process, index) => {
      world.schedule(index * 100, "start", index, () => process.start());
    });
    world.schedule(500, "fault", 0, () => this.#faults.schedule(keep));
    if (plan.growAt < plan.healAt) world.schedule(plan.growAt, "fault", 0, () => this.#grow());
    world.schedule(2_000, "step", 0, () => this.clients.start());
    world.schedule(2_000, "step", 0, () => this.#watchers.start());
    this.#sample();
    if (this.#until(plan.healAt + 100)) return this.#violations.first;
    this.clients.stop();
    const finale = new Finale(this, world.random.fork("finale"));
    finale.begin();
    const limit = plan.healAt + LEDGER_CALM_MS;
    const open = (): boolean =>
      this.#watchers.missing() !== null || this.history.undecided() !== null;
    while (!finale.isOver() || open()) {
      if (this.#until(Math.min(world.now + 500, limit))) return this.#violations.first;
      if (world.now < limit) continue;
      const missing = finale.missing();
      if (missing !== null) this.#violations.report(missing.id, missing.text);
      const untold = this.#watchers.missing();
      if (untold !== null) this.#violations.report("L5", untold);
      const undecided = this.history.undecided();
      if (undecided !== null) this.#violations.report("G1", undecided);
      break;
    }
    this.history.finale();
    return this.#violations.first;
  }

  /** Adds all sites to all configurations: node by node, as an operator does it. */
  #grow(): void {
    const { world, processes } = this;
    this.checkers.marks.add("ledger.grown");
    processes.forEach((process, index) => {
      world.schedule(world.now + index * GROW_EVERY_MS, "fault", index, () => {
        process.configured = processes.length;
        process.crash(false);
        process.start();
      });
    });
  }

  #sample(): void {
    const { world } = this;
    for (const process of this.processes) this.checkers.sample(process);
    world.schedule(world.now + SAMPLE_MS, "check", 0, () => this.#sample());
  }

  /** Runs on; true when something broke. */
  #until(at: number): boolean {
    this.world.runUntil(at, () => this.#violations.first !== null);
    return this.#violations.first !== null;
  }
}

function keyOf(spec: Uint8Array): string {
  return new TextDecoder().decode(spec).split("|")[0] ?? "";
}
