/**
 * The manager that leads the datacenter: it gives cores to the tenant that holds the fewest, there to the job that
 * has waited longest, all that it needs or none, and has the group of an admitted job founded.
 */

import { formatDuration } from "../../base/duration.ts";
import type { NodeId } from "../../base/ids.ts";
import { type ManagerContext, runGroup } from "./context.ts";
import {
  type DatacenterEntry,
  type DatacenterJob,
  type DatacenterState,
  encodeDatacenterEntry,
  type Grant,
  type JobNeeds,
} from "./datacenter-state.ts";
import { freeCores, spread } from "./free-cores.ts";
import type { Proposed } from "./proposals.ts";
import { encodeRunEntry } from "./run-entries.ts";
import { allowed, coresHeld, inTurn, tenantOf } from "./tenants.ts";

/** How often jobs that wait are looked through for those that have waited too long. */
const LOOK_MS = 1_000;

export class DatacenterLeader {
  readonly #context: ManagerContext;
  readonly #state: DatacenterState;
  /** Jobs whose next entry is on its way. */
  readonly #underWay = new Set<string>();
  /** Since when each job is known to wait here: a new leader counts anew, since clocks differ. */
  readonly #since = new Map<string, number>();
  #lookAt = Number.POSITIVE_INFINITY;

  constructor(state: DatacenterState, context: ManagerContext) {
    this.#state = state;
    this.#context = context;
  }

  /** Why a job waits, with its place in the queue; null when it does not. */
  reasonOf(job: string): string | null {
    const queued = this.#queued();
    const one = queued.find((other) => other.job === job);
    if (one === undefined) return null;
    if (!this.#waitsAlone(one)) {
      const before = queued.filter((other) => !this.#waitsAlone(other)).indexOf(one);
      if (before > 0) return before === 1 ? "1 job is before it" : `${before} jobs are before it`;
    }
    return this.#offer(one.needs).reason;
  }

  nextDeadline(): number | null {
    return this.#lookAt === Number.POSITIVE_INFINITY ? null : this.#lookAt;
  }

  /** Something has changed: an entry, a worker, or the time. */
  look(): void {
    for (const job of this.#state.jobs.values())
      if (job.phase === "admitted" && job.submission !== null) this.#found(job, job.submission);
    const queued = this.#queued();
    for (const job of queued) this.#giveUpLate(job);
    for (const job of this.#since.keys())
      if ((this.#state.jobs.get(job)?.submission ?? null) === null) this.#since.delete(job);
    this.#lookAt = queued.length === 0 ? Number.POSITIVE_INFINITY : this.#context.now + LOOK_MS;
    // One at a time: what it gets is not free for the next.
    if (queued.some(({ job }) => this.#underWay.has(job))) return;
    const first = queued.find((job) => !this.#waitsAlone(job));
    if (first === undefined) return;
    const { grants } = this.#offer(first.needs);
    if (grants.length > 0) this.#admit(first, grants);
  }

  #queued(): readonly DatacenterJob[] {
    const queued = [...this.#state.jobs.values()].filter(({ phase }) => phase === "queued");
    return inTurn(queued, (tenant) => coresHeld(this.#state, tenant));
  }

  /** What the datacenter could not bear if it were empty, or its tenant may not have now, keeps nobody waiting. */
  #waitsAlone({ needs }: DatacenterJob): boolean {
    const all = this.#context.workers.available().reduce((sum, { cores }) => sum + cores, 0);
    return Math.min(needs.cores ?? 1, needs.usefulCores) > all || this.#allowed(needs).cores === 0;
  }

  #allowed(needs: JobNeeds): ReturnType<typeof allowed> {
    const held = coresHeld(this.#state, tenantOf(needs));
    return allowed(this.#context.options.config.quotas, needs, held);
  }

  #offer(needs: JobNeeds): {
    readonly grants: readonly Grant[];
    readonly reason: string | null;
  } {
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

  #admit({ job, takenBy }: DatacenterJob, grants: readonly Grant[]): void {
    const { managers } = this.#context.options;
    // The first member leads the first view; the workers fetch the files from whoever leads.
    const others = managers.filter((one) => one !== takenBy);
    const members = others.length < managers.length ? [takenBy, ...others] : managers;
    const entry = { kind: "admit", job, grants, members } as const;
    this.#propose(job, this.#context.newEventId(), entry);
  }

  /** A job that has waited longer than it may run at all, by the clock of whoever leads here. */
  #giveUpLate({ job, needs: { timeoutMs } }: DatacenterJob): void {
    const since = this.#since.get(job) ?? this.#context.now;
    this.#since.set(job, since);
    if (timeoutMs === null || this.#context.now - since < timeoutMs) return;
    const reason = `no cores were free within ${formatDuration(timeoutMs)}, its limit`;
    const over = { status: "FAILED", reason, summary: null, onlyQueued: true } as const;
    const at = Math.floor(this.#context.wall);
    this.#propose(job, `late/${job}`, { kind: "end", job, ...over, at });
  }

  #propose(job: string, eventId: string, entry: DatacenterEntry): void {
    if (this.#underWay.has(job)) return;
    this.#underWay.add(job);
    const data = encodeDatacenterEntry(entry);
    const done = ({ kind }: Proposed): void => {
      this.#underWay.delete(job);
      // Refused: looked at again in a while.
      if (kind === "committed") this.look();
    };
    this.#context.propose(this.#context.datacenterGroup, eventId, data, done);
  }

  /** Its group begins with its submission; until then the datacenter keeps it. */
  #found({ createdAt, grants, job, members }: DatacenterJob, submission: Uint8Array): void {
    if (this.#underWay.has(job)) return;
    this.#underWay.add(job);
    const waitedMs = Math.floor(this.#context.now - (this.#since.get(job) ?? this.#context.now));
    const data = encodeRunEntry({ kind: "begin", createdAt, waitedMs, submission, grants });
    const begun = (proposed: Proposed): void => {
      this.#underWay.delete(job);
      if (proposed.kind === "committed") this.#propose(job, `begun/${job}`, { kind: "begun", job });
    };
    this.#context.propose(runGroup(job), `begin/${job}`, data, begun, members as readonly NodeId[]);
  }
}

function waitsFor(wanted: number, free: number, all: number): string {
  const are = free === 0 ? "none is" : free === 1 ? "1 is" : `${free} are`;
  const short = `it needs ${wanted} core${wanted === 1 ? "" : "s"}, ${are} free`;
  return wanted > all ? `${short}; the datacenter has ${all}` : short;
}
