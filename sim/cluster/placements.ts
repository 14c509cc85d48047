/**
 * Cores of jobs according to the logs of their managers, compared with what workers really run. A log entry takes
 * effect only where it can be received: among processes that have been up and connected for long enough.
 *
 *   T1   a core that the log calls lost stops when its worker is in contact
 *   T4   no core of a worker in contact is in use after its job has ended
 *   T16  no job relies on the cores of a worker that no manager can reach
 */

import { SILENCE_MS_MAX } from "../../src/core/cluster/link/limits.ts";
import { RunState } from "../../src/core/cluster/manager/run-state.ts";
import { MANAGER_DEFAULTS } from "../../src/core/cluster/manager/types.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import { LIVE_MS } from "../../src/core/cluster/overload/health.ts";
import type { Network } from "../kernel/network.ts";
import type { World } from "../kernel/world.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { SimLedger } from "./faults.ts";
import type { Results } from "./results.ts";
import type { SimWorker } from "./worker.ts";

/**
 * By then broken or garbled connections are restored, a new leader has adopted its jobs, and all workers have received
 * or requested that.
 */
const CONTACT_MS_MAX = SILENCE_MS_MAX + 15_000;
/** A worker is declared lost after 3 s, and a leader that has just started waits 8 s for workers not seen yet. */
const UNHEARD_MS_MAX = 15_000;
/** When half of them fail at once none is given up for a while: it may be the manager's network. (AD-19.32) */
const HELD_MS_MAX = LIVE_MS + 5_000;
/** When most have recovered the others are judged again. */
const HELD_AFTER_MS_MAX = 5_000;
/** How long a manager that has seen no worker since its start waits before its jobs rely on none. */
const NOBODY_MS_MAX = MANAGER_DEFAULTS.loadTimeoutMs;

interface PlacementsOptions {
  readonly world: World;
  readonly violations: Violations;
  readonly results: Results;
  readonly network: Network;
  readonly managers: readonly SimLedger[];
  readonly gates: readonly SimLedger[];
  readonly workers: readonly SimWorker[];
}

export class Placements {
  readonly #options: PlacementsOptions;
  /** Since when a worker is connected to everything it needs for its jobs; absent: it is not. */
  readonly #contactSince = new Map<SimWorker, number>();
  /** Since when no manager can reach a worker while the managers reach each other. */
  readonly #unheardSince = new Map<SimWorker, number>();
  /** Workers that no manager can reach. */
  readonly #mute = new Set<SimWorker>();
  /** When half of the workers of a datacenter, or more, were last unreachable at once. */
  readonly #massAt = new Map<string, number>();
  /** Processes of the managers and gates that a worker depends on. */
  readonly #lives = new Map<SimWorker, string>();
  /** When each manager process saw the first of its workers. */
  readonly #firstHeardAt = new Map<string, number>();
  /** Since when a manager process leads a job. */
  readonly #actsSince = new Map<string, number>();
  /** When a core was first seen to be lost, by job and core. */
  readonly #lostAt = new Map<string, number>();

  constructor(options: PlacementsOptions) {
    this.#options = options;
  }

  onEffect(process: LedgerProcess, effect: ProcessEffect): void {
    if (effect.kind !== "log" || effect.event !== "worker.heard") return;
    const life = lifeOf(process);
    if (!this.#firstHeardAt.has(life)) this.#firstHeardAt.set(life, this.#options.world.now);
  }

  /** Runs once a second. */
  sample(): void {
    const { managers, workers } = this.#options;
    const runs = managers.flatMap((manager) => runsOf(manager));
    for (const { acts, job, leader, state } of runs) {
      since(this.#actsSince, `${leader} ${job}`, acts, this.#options.world.now);
      for (const core of state.lostCores) this.#noteLost(`${job} ${core}`);
    }
    for (const worker of workers) this.#look(worker);
    this.#lookAtAll();
    for (const worker of workers) {
      this.#checkRunning(worker);
      for (const run of runs) this.#checkUnheard(worker, run);
    }
  }

  #noteLost(core: string): void {
    if (!this.#lostAt.has(core)) this.#lostAt.set(core, this.#options.world.now);
  }

  #look(worker: SimWorker): void {
    const { gates, managers } = this.#options;
    const { now } = this.#options.world;
    const own = managers.filter(({ datacenter }) => datacenter === worker.spec.datacenter);
    const servers = [...own, ...gates].map(({ process }) => process);
    const indices = servers.map(({ index }) => index);
    const isServed =
      servers.every(({ state }) => state === "up") && !this.#hasCut(indices, indices);
    // A restarted worker counts from zero, also when it was down, or up only briefly, between two checks.
    const { resumed } = worker.lifetime;
    const lives = [...servers, worker.lifetime].map(({ life }) => life);
    const seen = [...lives, resumed].join(" ");
    if (this.#lives.get(worker) !== seen)
      for (const times of [this.#contactSince, this.#unheardSince]) times.delete(worker);
    this.#lives.set(worker, seen);
    const isUp = worker.lifetime.state === "up";
    const inContact = isUp && !this.#hasCut(indices, [worker.index]);
    since(this.#contactSince, worker, isServed && inContact, now);
    const isMute = !isUp || own.every(({ process }) => this.#isCut(worker.index, process.index));
    since(this.#unheardSince, worker, isServed && isMute, now);
    if (isMute) this.#mute.add(worker);
    else this.#mute.delete(worker);
  }

  #lookAtAll(): void {
    const { workers, world } = this.#options;
    for (const { spec } of workers) {
      const own = workers.filter((one) => one.spec.datacenter === spec.datacenter);
      const mute = own.filter((one) => this.#mute.has(one)).length;
      if (2 * mute >= own.length) this.#massAt.set(spec.datacenter, world.now);
    }
  }

  /** In either direction. */
  #hasCut(some: readonly number[], others: readonly number[]): boolean {
    return some.some((one) =>
      others.some((other) => this.#isCut(one, other) || this.#isCut(other, one)),
    );
  }

  #isCut(from: number, to: number): boolean {
    return this.#options.network.isCut(from, to);
  }

  #checkRunning(worker: SimWorker): void {
    const { results, violations, world } = this.#options;
    const contactSince = this.#contactSince.get(worker);
    if (contactSince === undefined) return;
    const isDue = (from: number | null): boolean =>
      from !== null && world.now - Math.max(from, contactSince) > CONTACT_MS_MAX;
    for (const { core, job, key } of worker.cores.values()) {
      const lostAt = this.#lostAt.get(`${job} ${core}`) ?? null;
      violations.check(!isDue(lostAt), "T1", () => {
        return `${worker.name} runs core ${core} of ${job}, which is lost since ${lostAt} ms`;
      });
      const endedAt = results.endedAt(key);
      violations.check(!isDue(endedAt), "T4", () => {
        return `${worker.name} holds core ${core} of ${job}, which ended at ${endedAt} ms`;
      });
    }
  }

  #checkUnheard(worker: SimWorker, { acts, job, leader, state }: Run): void {
    const { violations, world } = this.#options;
    const unheardSince = this.#unheardSince.get(worker) ?? world.now;
    const anyHeardAt = this.#firstHeardAt.get(leader) ?? unheardSince + NOBODY_MS_MAX;
    const actsSince = this.#actsSince.get(`${leader} ${job}`) ?? world.now;
    const massAt = this.#massAt.get(worker.spec.datacenter) ?? Number.NEGATIVE_INFINITY;
    const isHeld = world.now - massAt <= HELD_AFTER_MS_MAX;
    const unheardMs = world.now - Math.max(unheardSince, anyHeardAt, actsSince);
    const isDue = unheardMs >= (isHeld ? HELD_MS_MAX : UNHEARD_MS_MAX);
    if (!acts || state.end !== null || !isDue) return;
    const kept = state.cores.filter(
      ({ core, worker: name }) => name === worker.name && !state.lostCores.has(core),
    );
    violations.check(kept.length === 0, "T16", () => {
      const cores = kept.map(({ core }) => core);
      return `${job} counts on cores ${cores} of ${worker.name}, unheard since ${unheardSince} ms`;
    });
  }
}

interface Run {
  readonly job: string;
  readonly state: RunState;
  /** The manager process that has this copy. */
  readonly leader: string;
  /** The owner of this copy leads the job. */
  readonly acts: boolean;
}

function runsOf({ process }: SimLedger): readonly Run[] {
  const leader = lifeOf(process);
  return [...(process.node?.groups ?? [])].flatMap(([group, { app, replica }]) => {
    const state = app.kind === "registered" ? app.application : null;
    if (!(state instanceof RunState)) return [];
    const job = group.slice(group.indexOf("/") + 1);
    return [{ job, state, leader, acts: replica.state.acting }];
  });
}

function lifeOf({ id, life }: LedgerProcess): string {
  return `${id}/${life}`;
}

/** Records since when a condition holds. */
function since<Key>(times: Map<Key, number>, key: Key, holds: boolean, now: number): void {
  if (!holds) times.delete(key);
  else if (!times.has(key)) times.set(key, now);
}
