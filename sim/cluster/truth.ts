/**
 * Ground truth: what cores have really done, counted by themselves apart from every frame: calls, rows and iterations
 * taken, numbers assigned, setups and teardowns. Results are checked against this.
 */

import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";

/** One core of a job, in one process. */
export interface CoreTruth {
  readonly datacenter: string;
  /** Name of the job in its datacenter. */
  readonly job: string;
  readonly worker: string;
  readonly core: number;
  /** Calls made, by workflow. */
  readonly calls: Map<string, number>;
}

export interface JobTruth {
  readonly cores: CoreTruth[];
  /** Indices taken, by workflow and lease. */
  readonly taken: Map<string, Set<number>>;
  /** Numbers assigned, by name. */
  readonly numbers: Map<string, Set<number>>;
  readonly setups: Map<string, number>;
  readonly teardowns: Map<string, number>;
  /** Time of the last call. */
  lastCallAt: number;
}

export class Truth {
  readonly #world: World;
  readonly #violations: Violations;
  readonly #jobs = new Map<string, JobTruth>();
  readonly marks = new Set<string>();

  constructor(world: World, violations: Violations) {
    this.#world = world;
    this.#violations = violations;
  }

  /** Workers that stopped their load because they were isolated from all managers. */
  readonly isolated = new Set<string>();

  job(name: string): JobTruth {
    let job = this.#jobs.get(name);
    if (job === undefined) {
      job = {
        ...{ cores: [], taken: new Map(), numbers: new Map() },
        ...{ setups: new Map(), teardowns: new Map(), lastCallAt: 0 },
      };
      this.#jobs.set(name, job);
    }
    return job;
  }

  opened(job: string, place: Omit<CoreTruth, "calls">): CoreTruth {
    const opened = { ...place, calls: new Map<string, number>() };
    this.job(job).cores.push(opened);
    return opened;
  }

  called(job: string, { calls }: CoreTruth, workflow: string, count: number): void {
    if (count === 0) return;
    calls.set(workflow, (calls.get(workflow) ?? 0) + count);
    this.job(job).lastCallAt = this.#world.now;
  }

  /** T6: every iteration and every row is taken at most once. */
  took(job: string, workflow: string, lease: string, index: number): void {
    this.#once(this.job(job).taken, `${workflow} ${lease}`, index, job);
  }

  /** T6: a number is assigned once. */
  numbered(job: string, name: string, from: number, to: number): void {
    for (let one = from; one < to; one++) this.#once(this.job(job).numbers, name, one, job);
  }

  #once(sets: Map<string, Set<number>>, name: string, index: number, job: string): void {
    const set = sets.get(name) ?? new Set();
    sets.set(name, set);
    this.#violations.check(!set.has(index), "T6", () => `${name} ${index} of ${job} is used twice`);
    set.add(index);
  }

  /** T11: setup and teardown once for each workflow of a job. */
  aside(job: string, what: "setups" | "teardowns", workflow: string): void {
    const counts = this.job(job)[what];
    const count = (counts.get(workflow) ?? 0) + 1;
    counts.set(workflow, count);
    this.#violations.check(count === 1, "T11", () => `${what} of ${workflow} of ${job}: ${count}`);
  }

  violated(id: string, text: string): void {
    this.#violations.report(id, text);
  }
}

export function callsOf({ calls }: CoreTruth, workflow: string): number {
  return calls.get(workflow) ?? 0;
}
