/**
 * Removes the groups of jobs that the datacenter has forgotten. Every manager removes them from its own ledger node.
 *
 *     run/ID is here, and ID is not in dc/NAME ─▶ an entry that changes nothing goes into dc/NAME
 *     it is folded in here, and ID is still not there ─▶ the group is forgotten
 *
 * A job missing from the datacenter's state was either forgotten, or this manager is behind: a manager that has seen
 * the admission founds the group everywhere. The entry is proposed after the group was seen, so it is ordered behind
 * the admission: a job still missing when the entry is folded in has finished and is forgotten. The same scan answers
 * workers that have cores of an unknown job.
 */

import { type ManagerContext, runGroup } from "./context.ts";
import { encodeDatacenterEntry } from "./datacenter-state.ts";
import { RUN_PREFIX } from "./run-state.ts";

/** Interval between scans; as many groups may gather in between as jobs finish. */
const CHECK_MS = 10_000;
/** Groups removed by one scan; the rest waits for the next. */
const FORGOTTEN_AT_ONCE_MAX = 1_000;
/** Unknown jobs that workers ask about, and jobs known to be forgotten. */
const ASKED_MAX = 1_000;
const KNOWN_MAX = 1_000;
/** Rejected by every datacenter. */
const NO_JOB = "";

interface Look {
  readonly eventId: string;
  readonly jobs: readonly string[];
  /** Committed or rejected: if it is not folded in by the next scan, a snapshot replaced it. */
  isAnswered: boolean;
}

export class ForgottenRuns {
  readonly #context: ManagerContext;
  readonly #onForgotten: (job: string) => void;
  readonly #asked = new Set<string>();
  /** Oldest first. */
  readonly #known = new Set<string>();
  #look: Look | null = null;
  #checkAt = 0;

  constructor(context: ManagerContext, onForgotten: (job: string) => void) {
    this.#context = context;
    this.#onForgotten = onForgotten;
  }

  nextDeadline(): number {
    return this.#checkAt;
  }

  /** Whether the datacenter had this job and has forgotten it; repeated calls return true once that is established. */
  has(job: string): boolean {
    const state = this.#context.datacenter();
    if (state === null || state.jobs.has(job)) return false;
    if (this.#known.has(job)) return true;
    if (this.#asked.size < ASKED_MAX) this.#asked.add(job);
    return false;
  }

  onTick(): void {
    const { now } = this.#context;
    if (now < this.#checkAt) return;
    this.#checkAt = now + CHECK_MS;
    if (this.#look?.isAnswered !== false) this.#begin();
  }

  #begin(): void {
    this.#look = null;
    const missing = [...this.#missing()];
    if (missing.length === 0) return;
    const jobs = missing.slice(0, FORGOTTEN_AT_ONCE_MAX);
    const eventId = this.#context.newEventId();
    const look: Look = { eventId, jobs, isAnswered: false };
    this.#look = look;
    const data = encodeDatacenterEntry({ kind: "begun", job: NO_JOB });
    this.#context.propose(this.#context.datacenterGroup, eventId, data, () => {
      look.isAnswered = true;
    });
  }

  *#missing(): Iterable<string> {
    const state = this.#context.datacenter();
    if (state === null) return;
    for (const job of this.#asked) {
      if (state.jobs.has(job)) this.#asked.delete(job);
      else yield job;
    }
    for (const group of this.#context.groups()) {
      const job = group.startsWith(RUN_PREFIX) ? group.slice(RUN_PREFIX.length) : null;
      if (job !== null && !state.jobs.has(job) && !this.#asked.has(job)) yield job;
    }
  }

  /** Called when an entry of the datacenter is folded in. */
  onApplied(eventId: string): void {
    const look = this.#look;
    const state = this.#context.datacenter();
    if (look === null || state === null || look.eventId !== eventId) return;
    this.#look = null;
    const gone = look.jobs.filter((job) => !state.jobs.has(job));
    for (const job of look.jobs) this.#asked.delete(job);
    for (const job of gone) {
      this.#note(job);
      this.#onForgotten(job);
    }
    if (gone.length === 0) return;
    const by = this.#context.datacenterGroup;
    this.#context.emit({ kind: "forget", groups: gone.map(runGroup), by });
    this.#context.log("info", "jobs.forgotten", { jobs: gone.length });
  }

  #note(job: string): void {
    this.#known.add(job);
    const [oldest] = this.#known;
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}
