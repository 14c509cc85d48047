/**
 * One seed from start to verdict: a cluster at work under faults, healing, and then liveness: every accepted job ends,
 * its clients learn how, one more job runs normally, and all is idle.
 */

import { Random } from "../../src/core/base/random.ts";
import { keyOfPart } from "../../src/core/cluster/gate/job-parts.ts";
import { lookupIn } from "../../src/core/cluster/gate/lookup.ts";
import { hasJobEnded } from "../../src/core/cluster/gate/status.ts";
import { DatacenterState } from "../../src/core/cluster/manager/datacenter-state.ts";
import type { JobState } from "../../src/core/ledger/job/job-state.ts";
import { World } from "../kernel/world.ts";
import { type Violation, Violations } from "../membership/checkers/violations.ts";
import type { RunResult } from "../membership/run.ts";
import { TiersCheckers } from "./checkers.ts";
import type { SimClient } from "./client.ts";
import { type AskedPlaces, Committed } from "./committed.ts";
import { TiersFaults } from "./faults.ts";
import { drawJob, type JobPlan } from "./jobs.ts";
import { needsGates } from "./mutants.ts";
import { Placements } from "./placements.ts";
import { profiledPlan, profileOf } from "./profiles.ts";
import { Results } from "./results.ts";
import { Returns } from "./returns.ts";
import { drawTiersPlan, TIERS_CALM_MS, type TiersPlan } from "./swarm.ts";
import { Truth } from "./truth.ts";
import { Cluster } from "./world.ts";

export interface TiersRunOptions {
  readonly seed: number;
  readonly minutes: number;
  /** Clients use gates over two datacenters. */
  readonly gates: boolean;
  /** Inputs cost nodes time. */
  readonly pressure: boolean;
  readonly mutant: string | null;
  /** The planted defect whose seeds these are, whether it is planted or not; null: seeds of all kinds. */
  readonly profile: string | null;
  /** Indices of the plan's faults to keep; null keeps all. */
  readonly faults: readonly number[] | null;
}

const SAMPLE_MS = 1_000;
/** From the end of the last job until everything is released: broken links, kills, last answers. */
const IDLE_MS = 45_000;

export function runTiersSeed(options: TiersRunOptions): RunResult {
  const run = new TiersRun(options, planOf(options));
  let violation: Violation | null;
  try {
    violation = run.play();
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    violation = { id: "DEFECT", text, at: run.world.now };
  }
  const { plan, world } = run;
  return {
    seed: options.seed,
    hash: world.traceHash(),
    violation,
    events: world.eventCount,
    simulatedMs: world.now,
    faultCount: plan.faults.length,
    marks: [...run.checkers.marks, ...run.committed.marks, ...run.seen],
    lastNotes: violation === null ? [] : world.lastNotes(150),
  };
}

function planOf({ gates, minutes, pressure, profile: name, seed }: TiersRunOptions): TiersPlan {
  const random = new Random(`tiers-swarm/${seed}`);
  const profile = profileOf(name);
  const drawn = drawTiersPlan(random, profile?.minutes ?? minutes, {
    gates: gates || needsGates(name),
    ...{ pressure, sweeps: profile === null },
  });
  return profile === null ? drawn : profiledPlan(drawn, profile, random.fork("profile"));
}

class TiersRun {
  readonly world: World;
  readonly plan: TiersPlan;
  readonly checkers: TiersCheckers;
  readonly #options: TiersRunOptions;
  readonly #violations: Violations;
  readonly committed: Committed;
  readonly #cluster: Cluster;
  readonly #faults: TiersFaults;
  readonly #placements: Placements;
  readonly #returns: Returns;
  readonly #random: Random;
  readonly #jobs: JobPlan[] = [];
  /** Latest state of each job at any gate: one that comes back may still know of datacenters that were left. */
  readonly #latest = new Map<string, JobState>();
  /** No further jobs but the last one. */
  #closing = false;

  constructor(options: TiersRunOptions, plan: TiersPlan) {
    this.#options = options;
    this.plan = plan;
    this.world = new World(options.seed);
    const { world } = this;
    const violations = new Violations(world);
    this.#violations = violations;
    const truth = new Truth(world, violations);
    const results = new Results(world, violations, truth, plan);
    this.checkers = new TiersCheckers(world, violations, results);
    this.committed = new Committed(violations, this.plan.endedMax !== null);
    const { checkers } = this;
    const { committed } = this;
    this.#random = world.random.fork("jobs");
    const onIdle = (client: SimClient): void => this.#onIdle(client);
    const { mutant } = options;
    this.#cluster = new Cluster({
      ...{ world, plan, violations, checkers, committed, truth, onIdle, mutant },
    });
    const { clients, gates, managers, network, streams, workers } = this.#cluster;
    this.#faults = new TiersFaults({
      ...{ world, network, streams, gates, managers, workers, clients, plan },
      cpus: this.#cluster.cpus,
    });
    this.#cluster.onEffect = (process, effect) => {
      this.#faults.onEffect(process, effect);
      this.#placements.onEffect(process, effect);
    };
    this.#returns = new Returns({ world, violations, plan, network, managers, gates });
    this.#placements = new Placements({
      ...{ world, violations, results, network, managers, gates, workers },
    });
  }

  /** Outcomes of workers that stood still, and of links to datacenters that were cut off. */
  get seen(): ReadonlySet<string> {
    return new Set([...this.#cluster.evictions.marks, ...this.#returns.marks]);
  }

  play(): Violation | null {
    const { world, plan } = this;
    const { clients, gates, managers, workers } = this.#cluster;
    const ledgers = [...managers, ...gates].map(({ process }) => process);
    const keep = this.#options.faults === null ? null : new Set(this.#options.faults);
    for (const one of [...ledgers, ...workers, ...clients])
      world.schedule(one.index * 50, "start", one.index, () => one.start());
    world.schedule(1_000, "fault", 0, () => this.#faults.schedule(keep));
    for (const client of clients)
      world.schedule(2_000, "step", client.index, () => this.#onIdle(client));
    this.#sample();
    if (this.#until(plan.healAt + 100)) return this.#violations.first;
    this.#closing = true;
    const limit = plan.healAt + TIERS_CALM_MS;
    if (this.#awaitJobs(limit) || this.#lastJob(limit)) return this.#violations.first;
    if (this.#until(world.now + IDLE_MS)) return this.#violations.first;
    this.#checkIdle();
    this.committed.judge(this.#cluster.managers.map(({ process }) => process));
    this.checkers.judgeRefusals();
    this.checkers.results.judge();
    return this.#violations.first;
  }

  /** Final job: nothing is left of earlier faults. */
  #lastJob(limit: number): boolean {
    const [client] = this.#cluster.clients;
    client?.wants(this.#draw());
    return this.#awaitJobs(limit);
  }

  #awaitJobs(limit: number): boolean {
    const { world } = this;
    for (;;) {
      const open = this.#openJobs();
      if (open.length === 0) return this.#violations.first !== null;
      if (this.#until(Math.min(world.now + 500, limit))) return true;
      if (world.now < limit) continue;
      this.#violations.report("T3", `not ended ${TIERS_CALM_MS} ms after healing: ${open}`);
      return true;
    }
  }

  /** Jobs that clients wait for, or that managers have not ended. */
  #openJobs(): string[] {
    const { clients, gates, managers } = this.#cluster;
    const wanted = clients.flatMap(({ name, wish }) =>
      wish === null ? [] : [`${name} waits for ${wish.job ?? wish.plan.key}`],
    );
    const led = gates.flatMap(({ process }) => {
      if (process.node === null) return [`${process.id} does not serve`];
      const jobs = [...lookupIn(process.node).jobs()].filter(({ state }) => !hasJobEnded(state));
      return jobs.map(({ state }) => `${process.id} has ${state.jobId} as ${state.status}`);
    });
    const open = managers.flatMap(({ datacenter, process }) => {
      const app = process.node?.groups.get(`dc/${datacenter}` as never)?.app;
      const state = app?.kind === "registered" ? app.application : null;
      // Gates may not have assigned it a job yet.
      if (!(state instanceof DatacenterState))
        return gates.length > 0 && process.node !== null ? [] : [`${process.id} has no datacenter`];
      const jobs = [...state.jobs.values()].filter(({ phase }) => phase !== "ended");
      return jobs.map(({ job, phase }) => `${process.id} has ${job} as ${phase}`);
    });
    return [...wanted, ...led, ...open];
  }

  /** T4, T12: no core is in use, and nothing is pending. */
  #checkIdle(): void {
    for (const { cores, machine, name } of this.#cluster.workers) {
      const jobs = [...cores.values()].map(({ job }) => job);
      this.#violations.check(cores.size === 0, "T4", () => `${name} still runs cores of ${jobs}`);
      const used = machine?.worker.usedCores ?? 0;
      this.#violations.check(used === 0, "T4", () => `${name} holds ${used} cores`);
      const open = machine?.worker.jobs ?? [];
      this.#violations.check(open.length === 0, "T12", () => `${name} still knows ${open}`);
    }
    for (const { open, process } of [...this.#cluster.managers, ...this.#cluster.gates]) {
      const jobs = open();
      this.#violations.check(jobs.length === 0, "T12", () => `${process.id} still leads ${jobs}`);
    }
  }

  #onIdle(client: SimClient): void {
    if (this.#closing) return;
    const { world } = this;
    const thinkMs = this.#random.float() * this.plan.thinkMs;
    world.schedule(world.now + thinkMs, "step", client.index, () => {
      if (this.#closing || client.wish !== null) return;
      const [known] = this.#jobs.length > 0 ? [this.#random.pick(this.#jobs)] : [];
      if (known === undefined || !this.#random.chance(this.plan.repeated)) {
        client.wants(this.#draw());
        return;
      }
      const job = this.checkers.results.accepted.get(known.key);
      if (job !== undefined && this.#random.chance(0.5)) client.attaches(known, job);
      else client.wants({ ...known, controls: [] });
    });
  }

  #draw(): JobPlan {
    const job = drawJob(this.#random, `key-${this.#jobs.length}`, this.plan.jobs);
    this.#jobs.push(job);
    return job;
  }

  #sample(): void {
    const { world } = this;
    for (const worker of this.#cluster.workers) this.checkers.sample(worker);
    this.#placements.sample();
    this.#returns.sample();
    for (const { process } of this.#cluster.gates)
      for (const { state } of process.node === null ? [] : lookupIn(process.node).jobs())
        if (state.appliedSeq >= (this.#latest.get(state.jobId)?.appliedSeq ?? 0))
          this.#latest.set(state.jobId, state);
    // A job about to end may be sent where another gate may have sent it before: to be cancelled there.
    for (const state of this.#latest.values())
      if (state.status !== "CANCELLING" && !hasJobEnded(state))
        this.committed.onAsked(placesOf(state));
    world.schedule(world.now + SAMPLE_MS, "check", 0, () => this.#sample());
  }

  /** Runs on; true when an invariant broke. */
  #until(at: number): boolean {
    this.world.runUntil(at, () => this.#violations.first !== null);
    return this.#violations.first !== null;
  }
}

/** The keys of its parts, in the order in which datacenters are asked. */
function placesOf(state: JobState): AskedPlaces {
  const { dispatched } = state.run;
  const places = dispatched.toSorted((a, b) => (a.dcId < b.dcId ? -1 : 1));
  return { job: state.jobId, keys: places.map((one) => keyOfPart(state.jobId, one)) };
}
