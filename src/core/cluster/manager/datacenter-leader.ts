/**
 * The manager that leads the datacenter. It assigns cores to the tenant with the fewest, and there to the job that has
 * waited longest: all cores the job needs or none. Then it founds the group of the admitted job.
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
} from "./datacenter-state.ts";
import type { JobQueue } from "./job-queue.ts";
import type { Proposed } from "./proposals.ts";
import { encodeRunEntry } from "./run-entries.ts";
import type { WaitingSince } from "./waiting-since.ts";

/** Interval between checks for jobs that have waited too long. */
const CHECK_MS = 1_000;

export class DatacenterLeader {
  readonly #context: ManagerContext;
  readonly #state: DatacenterState;
  readonly #queue: JobQueue;
  /** Jobs with a pending proposal. */
  readonly #underWay = new Set<string>();
  readonly #since: WaitingSince;
  #checkAt = Number.POSITIVE_INFINITY;

  constructor(queue: JobQueue, context: ManagerContext, since: WaitingSince) {
    this.#since = since;
    this.#state = queue.state;
    this.#queue = queue;
    this.#context = context;
  }

  nextDeadline(): number | null {
    return this.#checkAt === Number.POSITIVE_INFINITY ? null : this.#checkAt;
  }

  /** Reacts to an entry, a change of workers, or time. */
  check(): void {
    for (const job of this.#state.open.values())
      if (job.phase === "admitted" && job.submission !== null) this.#found(job, job.submission);
    const queued = this.#queue.queued();
    for (const job of queued) this.#giveUpLate(job);
    this.#checkAt = queued.length === 0 ? Number.POSITIVE_INFINITY : this.#context.now + CHECK_MS;
    // Admit one job at a time: its cores are not free for the next one.
    if (queued.some(({ job }) => this.#underWay.has(job))) return;
    const first = this.#queue.first();
    if (first === null) return;
    const { grants } = this.#queue.offer(first.needs);
    if (grants.length > 0) this.#admit(first, grants);
  }

  #admit({ job, takenBy }: DatacenterJob, grants: readonly Grant[]): void {
    const { managers } = this.#context.options;
    // The first member leads the first view, and workers fetch the files from the leader.
    const others = managers.filter((one) => one !== takenBy);
    const members = others.length < managers.length ? [takenBy, ...others] : managers;
    const entry = { kind: "admit", job, grants, members } as const;
    this.#propose(job, this.#context.newEventId(), entry);
  }

  /** Ends a job that has waited longer than its timeout, by the clock of the datacenter's leader. */
  #giveUpLate({ job, needs: { timeoutMs } }: DatacenterJob): void {
    const waitedMs = this.#context.now - this.#since.of(job);
    if (timeoutMs === null || waitedMs < timeoutMs) return;
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
      // Rejected: checked again later.
      if (kind === "committed") this.check();
    };
    this.#context.propose(this.#context.datacenterGroup, eventId, data, done);
  }

  /** Founds the job's group with its submission; until then the datacenter keeps the submission. */
  #found({ createdAt, grants, job, members }: DatacenterJob, submission: Uint8Array): void {
    if (this.#underWay.has(job)) return;
    this.#underWay.add(job);
    const waitedMs = Math.max(0, Math.floor(this.#context.now - this.#since.of(job)));
    const data = encodeRunEntry({ kind: "begin", createdAt, waitedMs, submission, grants });
    const begun = (proposed: Proposed): void => {
      this.#underWay.delete(job);
      if (proposed.kind === "committed") this.#propose(job, `begun/${job}`, { kind: "begun", job });
    };
    this.#context.propose(runGroup(job), `begin/${job}`, data, begun, members as readonly NodeId[]);
  }
}
