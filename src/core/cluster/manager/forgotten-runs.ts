/**
 * The groups of jobs that the datacenter has forgotten. Every manager removes them from its own ledger node.
 *
 *     run/ID is here, and ID is not in dc/NAME ─▶ an entry that changes nothing goes into dc/NAME
 *     it is folded in here, and ID is still not there ─▶ the group is forgotten
 *
 * A job that the datacenter's state does not have may be forgotten, or this manager is behind: whoever has seen the
 * admission founds the group everywhere. The entry was proposed after the group was seen, so it stands behind the
 * admission: what is missing where it is folded in has ended and is forgotten. The same look answers workers that
 * hold cores of a job nobody knows.
 */

import { type ManagerContext, runGroup } from "./context.ts";
import { encodeDatacenterEntry } from "./datacenter-state.ts";
import { RUN_PREFIX } from "./run-state.ts";

/** How often a manager looks for such groups; between two looks as many may gather as jobs end. */
const LOOK_MS = 10_000;
/** Groups that one look removes: the rest waits for the next. */
const FORGOTTEN_AT_ONCE_MAX = 1_000;
/** Jobs that workers hold and nobody knows here, and jobs that are known to be forgotten. */
const ASKED_MAX = 1_000;
const KNOWN_MAX = 1_000;
/** Every datacenter rejects it. */
const NO_JOB = "";

interface Look {
  readonly eventId: string;
  readonly jobs: readonly string[];
  /** Committed or refused: if it is not folded in by the next look, a snapshot was taken in its place. */
  isAnswered: boolean;
}

export class ForgottenRuns {
  readonly #context: ManagerContext;
  readonly #onForgotten: (job: string) => void;
  readonly #asked = new Set<string>();
  /** Oldest first. */
  readonly #known = new Set<string>();
  #look: Look | null = null;
  #lookAt = 0;

  constructor(context: ManagerContext, onForgotten: (job: string) => void) {
    this.#context = context;
    this.#onForgotten = onForgotten;
  }

  nextDeadline(): number {
    return this.#lookAt;
  }

  /** Whether the datacenter has had this job and has forgotten it; who asks again hears when it is found out. */
  has(job: string): boolean {
    const state = this.#context.datacenter();
    if (state === null || state.jobs.has(job)) return false;
    if (this.#known.has(job)) return true;
    if (this.#asked.size < ASKED_MAX) this.#asked.add(job);
    return false;
  }

  onTick(): void {
    const { now } = this.#context;
    if (now < this.#lookAt) return;
    this.#lookAt = now + LOOK_MS;
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

  /** An entry of the datacenter is folded in. */
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
