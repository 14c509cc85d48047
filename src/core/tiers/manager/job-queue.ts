/** The jobs of a datacenter that wait: in which order, what each may have now, and what it is told meanwhile. */

import type { ManagerContext } from "./context.ts";
import type { DatacenterJob, DatacenterState, Grant, JobNeeds } from "./datacenter-state.ts";
import { freeCores, spread } from "./free-cores.ts";
import { allowed, coresHeld, inTurn, tenantOf } from "./tenants.ts";

interface Offer {
  /** Empty: it has to wait. */
  readonly grants: readonly Grant[];
  readonly reason: string | null;
}

export class JobQueue {
  readonly #context: ManagerContext;
  readonly #state: DatacenterState;

  constructor(context: ManagerContext, state: DatacenterState) {
    this.#context = context;
    this.#state = state;
  }

  /** Why a job waits, with its place in the queue; null when it does not. Every manager can tell. */
  reasonOf(job: string): string | null {
    const queued = this.queued();
    const place = queued.findIndex((other) => other.job === job);
    const one = queued[place];
    if (one === undefined) return null;
    const before = this.waitsAlone(one) ? 0 : this.#waitingBefore(queued.slice(0, place));
    const others = before === 1 ? "1 job is before it" : `${before} jobs are before it`;
    const why = before > 0 ? others : (this.offer(one.needs).reason ?? "it is about to begin");
    return `${why}; place ${place + 1} of ${queued.length} in the queue`;
  }

  /** In their turn. */
  queued(): readonly DatacenterJob[] {
    const queued = [...this.#state.jobs.values()].filter(({ phase }) => phase === "queued");
    return inTurn(queued, (tenant) => coresHeld(this.#state, tenant));
  }

  /** What the datacenter could not bear if it were empty, or its tenant may not have now, keeps nobody waiting. */
  waitsAlone({ needs }: DatacenterJob): boolean {
    const all = this.#context.workers.available().reduce((sum, { cores }) => sum + cores, 0);
    return Math.min(needs.cores ?? 1, needs.usefulCores) > all || this.#allowed(needs).cores === 0;
  }

  offer(needs: JobNeeds): Offer {
    const { cores, usefulCores } = needs;
    const may = this.#allowed(needs);
    if (may.cores === 0) return { grants: [], reason: may.reason };
    const workers = freeCores(this.#context, this.#state);
    const free = workers.reduce((sum, one) => sum + one.free, 0);
    const all = workers.reduce((sum, one) => sum + one.capacity, 0);
    const wanted = Math.max(1, Math.min(cores ?? Math.max(1, free), usefulCores, may.cores));
    if (wanted > free) return { grants: [], reason: waitsFor(wanted, free, all) };
    return { grants: spread(workers, wanted), reason: null };
  }

  #waitingBefore(queued: readonly DatacenterJob[]): number {
    return queued.filter((one) => !this.waitsAlone(one)).length;
  }

  #allowed(needs: JobNeeds): ReturnType<typeof allowed> {
    const held = coresHeld(this.#state, tenantOf(needs));
    return allowed(this.#context.options.config.quotas, needs, held);
  }
}

function waitsFor(wanted: number, free: number, all: number): string {
  const are = free === 0 ? "none is" : free === 1 ? "1 is" : `${free} are`;
  const short = `it needs ${wanted} core${wanted === 1 ? "" : "s"}, ${are} free`;
  return wanted > all ? `${short}; the datacenter has ${all}` : short;
}
