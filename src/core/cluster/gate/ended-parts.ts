/**
 * Parts of jobs that are over, in datacenters that nobody has heard to have ended theirs: when such a datacenter
 * answers again it is told to. A job that is over stays so, and so any gate that remembers it may say so: each one
 * does by itself, whoever led the job, and again after it was started anew. Nothing of it goes into the job's log.
 *
 *     given up ─▶ its datacenter answers ─▶ a round: submit, observe, cancel, observe ─▶ heard to have ended
 *                        ▲                              │ not within ROUND_MS
 *                        └──────────── REST_MS ─────────┘ at most ROUNDS_MAX times
 *
 * It ends with the job's place in memory: the ledger archives a job a day after its end.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import { Branch, UNWANTED, type Wanted } from "./branch.ts";
import type { GateContext } from "./context.ts";
import { type JobPart, keyOfPart, partsOf } from "./job-parts.ts";
import { JointWords } from "./joint-words.ts";
import { decodeSpec } from "./spec.ts";
import { hasJobEnded, LOST, statusOf } from "./status.ts";
import { FILES_ABSENT } from "./upload.ts";

/** How often it is looked whether a datacenter answers again. */
const LOOK_MS = 1_000;
/** For so long a datacenter that answers is told. */
const ROUND_MS = 10_000;
/** Then it is left alone for so long. */
const REST_MS = 20_000;
/** Rounds in a datacenter that answers, and does not end its part: more than eight hours of them. */
const ROUNDS_MAX = 1_000;
/** Parts that are told about at once, in all datacenters. */
const AT_ONCE_MAX = 16;
/** Nothing of its figures is wanted, only what it waits for. */
const NO_FIGURES = { view: 0, frames: [] };

interface OpenPart {
  readonly key: string;
  readonly job: string;
  readonly datacenter: string;
  rounds: number;
  /** No round begins before. */
  restsUntil: number;
}

interface Round {
  readonly part: OpenPart;
  readonly branch: Branch;
  readonly until: number;
}

export class EndedParts {
  readonly #context: GateContext;
  /** By their keys; each leaves when it is heard to have ended. */
  readonly #open = new Map<string, OpenPart>();
  /** Those that need no more, of jobs that are still remembered. */
  readonly #told = new Set<string>();
  readonly #rounds = new Map<string, Round>();
  #lookAt = 0;

  constructor(context: GateContext) {
    this.#context = context;
  }

  /** All jobs that this gate remembers, now and then. */
  remember(states: Iterable<JobState>): void {
    const known = new Set<string>();
    for (const state of states) for (const key of this.note(state)) known.add(key);
    for (const key of this.#told) if (!known.has(key)) this.#told.delete(key);
    for (const key of this.#open.keys()) if (!known.has(key)) this.#close(key);
  }

  /** The keys of its parts that were given up: none while it lives. */
  note(state: JobState): readonly string[] {
    if (!hasJobEnded(state) || !this.#context.rules.leftCancelled) return [];
    return givenUp(state).map((part) => {
      const { dcId: datacenter } = part;
      const key = keyOfPart(state.jobId, part);
      if (!this.#open.has(key) && !this.#told.has(key))
        this.#open.set(key, { key, job: state.jobId, datacenter, rounds: 0, restsUntil: 0 });
      return key;
    });
  }

  nextDeadline(): number {
    if (this.#open.size === 0) return Number.POSITIVE_INFINITY;
    const rounds = [...this.#rounds.values()];
    return Math.min(this.#lookAt, ...rounds.map(({ branch }) => branch.nextDeadline()));
  }

  onTick(): void {
    const { now } = this.#context;
    if (now >= this.#lookAt) {
      this.#lookAt = now + LOOK_MS;
      for (const round of [...this.#rounds.values()]) if (now >= round.until) this.#rest(round);
      for (const part of [...this.#open.values()]) this.#begin(part);
    }
    for (const { branch } of [...this.#rounds.values()]) branch.step();
  }

  #begin(part: OpenPart): void {
    const { datacenters, lookup, now } = this.#context;
    if (this.#rounds.size >= AT_ONCE_MAX || this.#rounds.has(part.key)) return;
    if (now < part.restsUntil || !datacenters.isHealthy(part.datacenter)) return;
    const state = lookup.job(part.job)?.state;
    const branch = state === undefined ? null : this.#branchOf(part, state);
    if (branch === null) this.#close(part.key);
    else this.#rounds.set(part.key, { part, branch, until: now + ROUND_MS });
  }

  /** Null: what it was given to run there cannot be told any more. */
  #branchOf({ datacenter, key }: OpenPart, state: JobState): Branch | null {
    const spec = decodeSpec(state.spec);
    if (spec === null) return null;
    const parts = partsOf(spec.submission, spec.routing, state.run.dispatched);
    const own = parts.find((one) => one.datacenter === datacenter);
    if (own === undefined) return null;
    const wanted = { ...UNWANTED, cancel: `the job is over: ${statusOf(state)}` };
    const branch: Branch = new Branch(this.#context, { datacenter, key }, own.submission, wanted, {
      held: () => (branch.status === "CANCELLING" ? NO_FIGURES : null),
      onTold: () => branch.want(withWords(wanted, parts, branch)),
      onNews: () => this.#onNews(key, branch),
      isLed: () => this.#rounds.get(key)?.branch === branch,
      onLine: () => undefined,
    });
    return branch;
  }

  #onNews(key: string, branch: Branch): void {
    const round = this.#rounds.get(key);
    if (round?.branch !== branch) return;
    const { datacenter, problem, status } = branch;
    // It may run there although its files are nowhere to be found now.
    if (problem === FILES_ABSENT) this.#rest(round);
    else if (branch.hasEnded || problem !== null) {
      this.#tellOver(round.part);
      const fields = { job: round.part.job, datacenter, status: problem ?? status };
      this.#context.log("info", "job.partOver", fields);
    }
  }

  #rest({ part }: Round): void {
    this.#rounds.delete(part.key);
    part.rounds++;
    part.restsUntil = this.#context.now + REST_MS;
    if (part.rounds < ROUNDS_MAX) return;
    this.#tellOver(part);
    const { datacenter, job } = part;
    this.#context.log("warn", "job.partLeft", { job, datacenter, rounds: part.rounds });
  }

  #tellOver({ key }: OpenPart): void {
    this.#close(key);
    this.#told.add(key);
  }

  #close(key: string): void {
    this.#open.delete(key);
    this.#rounds.delete(key);
  }
}

/** Parts of a job that had begun, and were not heard to have ended when it did. */
function givenUp({ run }: JobState): readonly JobState["run"]["dispatched"][number][] {
  const isOpen = (dcId: string): boolean => {
    const result = run.results.find((one) => one.dcId === dcId);
    return result === undefined || result.finalStatus === LOST;
  };
  const shares = (run.started?.shares ?? []).filter(({ dcId }) => isOpen(dcId));
  return run.dispatched.filter(({ dcId }) => shares.some((one) => one.dcId === dcId));
}

/** What it waits for of the others is over with the job: it ends without them. */
function withWords(
  wanted: Wanted,
  parts: readonly JobPart[],
  { datacenter: own, told }: Branch,
): Wanted {
  const places = parts.map(({ datacenter }) =>
    datacenter === own
      ? { datacenter, told, isOver: false }
      : { datacenter, told: null, isOver: true },
  );
  return { ...wanted, joint: new JointWords(parts, places, []).of(own) };
}
