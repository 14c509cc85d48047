/** Waiting jobs of a datacenter: their order, the cores each may get now, and the reason shown meanwhile. */

import { STARTING_SOON } from "../views.ts";
import type { ManagerContext } from "./context.ts";
import type { DatacenterJob, DatacenterState, Grant, JobNeeds } from "./datacenter-state.ts";
import { freeCores, spread } from "./free-cores.ts";
import { tenantOf } from "./served-tenants.ts";
import { allowed, byAge, coresHeld, inTurn } from "./tenants.ts";

interface Offer {
  /** Empty: the job has to wait. */
  readonly grants: readonly Grant[];
  readonly reason: string | null;
}

/** Waiting jobs as of one change of the datacenter. */
interface Row {
  readonly changes: number;
  /** In order of their turn. */
  readonly jobs: readonly DatacenterJob[];
  /** Position of each job in the queue. */
  readonly places: ReadonlyMap<string, number>;
  /** Cores in use, by tenant. */
  readonly held: ReadonlyMap<string, number>;
  /** For a total number of cores: how many blocking jobs are ahead of each job. */
  before: { readonly coresAll: number; readonly counts: readonly number[] } | null;
}

/** Queue whose derived data is computed once per change, since every waiting job is polled often. */
export class JobQueue {
  readonly state: DatacenterState;
  readonly #context: ManagerContext;
  #known: Row | null = null;

  constructor(context: ManagerContext, state: DatacenterState) {
    this.#context = context;
    this.state = state;
  }

  /** Reason why a job waits, with its position in the queue; null when it does not wait. Available on every manager. */
  reasonOf(job: string): string | null {
    const { jobs, places } = this.#row;
    const place = places.get(job) ?? -1;
    const one = jobs[place];
    if (one === undefined) return null;
    const coresAll = this.#coresAll();
    const blocksNoOther = this.#blocksNoOther(one, coresAll);
    const before = blocksNoOther ? 0 : (this.#waitingBefore(coresAll)[place] ?? 0);
    const others = before === 1 ? "1 job is before it" : `${before} jobs are before it`;
    const why = before > 0 ? others : (this.offer(one.needs).reason ?? STARTING_SOON);
    return `${why} (position ${place + 1} of ${jobs.length})`;
  }

  /** Waiting jobs in order of their turn. */
  queued(): readonly DatacenterJob[] {
    return this.#row.jobs;
  }

  get #row(): Row {
    const { changes, open } = this.state;
    if (this.#known?.changes === changes) return this.#known;
    const held = coresHeld(this.state);
    const queued = [...open.values()].filter(({ phase }) => phase === "queued");
    const served = this.state.lastServed;
    const jobs = inTurn(
      byAge(queued),
      (tenant) => held.get(tenant) ?? 0,
      (tenant) => served.get(tenant) ?? 0,
    );
    const places = new Map(jobs.map(({ job }, place) => [job, place]));
    this.#known = { changes, jobs, places, held, before: null };
    return this.#known;
  }

  /** The job whose turn it is; null for none. */
  first(): DatacenterJob | null {
    const coresAll = this.#coresAll();
    return this.#row.jobs.find((job) => !this.#blocksNoOther(job, coresAll)) ?? null;
  }

  /** True for a job that blocks no other: it exceeds the whole datacenter, or its tenant's quota is used up. */
  #blocksNoOther({ needs }: DatacenterJob, coresAll: number): boolean {
    const least = Math.min(needs.cores ?? 1, needs.usefulCores);
    return least > coresAll || this.#allowed(needs).cores === 0;
  }

  offer(needs: JobNeeds): Offer {
    const { cores, usefulCores } = needs;
    const may = this.#allowed(needs);
    if (may.cores === 0) return { grants: [], reason: may.reason };
    const workers = freeCores(this.#context, this.state);
    const free = workers.reduce((sum, one) => sum + one.free, 0);
    const all = workers.reduce((sum, one) => sum + one.capacity, 0);
    const wanted = Math.max(1, Math.min(cores ?? Math.max(1, free), usefulCores, may.cores));
    if (wanted > free) return { grants: [], reason: waitsFor(wanted, free, all) };
    return { grants: spread(workers, wanted), reason: null };
  }

  #waitingBefore(coresAll: number): readonly number[] {
    const row = this.#row;
    if (row.before?.coresAll === coresAll) return row.before.counts;
    let waiting = 0;
    const counts = row.jobs.map((one) =>
      this.#blocksNoOther(one, coresAll) ? waiting : waiting++,
    );
    row.before = { coresAll, counts };
    return counts;
  }

  #coresAll(): number {
    return this.#context.workers.available().reduce((sum, { cores }) => sum + cores, 0);
  }

  #allowed(needs: JobNeeds): ReturnType<typeof allowed> {
    const held = this.#row.held.get(tenantOf(needs)) ?? 0;
    return allowed(this.#context.options.config.quotas, needs, held);
  }
}

function waitsFor(wanted: number, free: number, all: number): string {
  const are = free === 0 ? "none is" : free === 1 ? "1 is" : `${free} are`;
  const short = `it needs ${wanted} core${wanted === 1 ? "" : "s"}, ${are} free`;
  return wanted > all ? `${short}; the datacenter has ${all}` : short;
}
