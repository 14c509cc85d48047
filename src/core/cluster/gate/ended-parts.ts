/**
 * Cancels abandoned parts of finished jobs: parts in datacenters that did not report an end. When such a datacenter
 * answers again, its part is cancelled. A finished job stays finished, so any gate that remembers it may do this: each
 * one does by itself, even if it did not lead the job, and again after a restart. The log of the job is not changed.
 *
 *     abandoned ─▶ its datacenter answers ─▶ a round: submit, observe, cancel, observe ─▶ end observed
 *                        ▲                              │ not within ROUND_MS
 *                        └──────────── REST_MS ─────────┘ at most ROUNDS_MAX times
 *
 * Attempts stop when the job leaves memory: the ledger archives a job a day after its end.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import { Branch, UNWANTED, type Wanted } from "./branch.ts";
import type { GateContext } from "./context.ts";
import { type JobPart, keyOfPart, partsOf } from "./job-parts.ts";
import { JointWords } from "./joint-words.ts";
import { decodeSpec } from "./spec.ts";
import { hasJobEnded, LOST, statusOf } from "./status.ts";
import { FILES_ABSENT } from "./upload.ts";

/** Interval of checking whether a datacenter answers again. */
const CHECK_MS = 1_000;
/** Duration of a round in a datacenter that answers. */
const ROUND_MS = 10_000;
/** Pause between two rounds. */
const REST_MS = 20_000;
/** Maximum number of rounds in a datacenter that answers but does not end its part: more than eight hours. */
const ROUNDS_MAX = 1_000;
/** Maximum number of concurrent rounds, over all datacenters. */
const AT_ONCE_MAX = 16;
/** Requests no metrics, only what the part waits for. */
const NO_FIGURES = { view: 0, frames: [] };

interface OpenPart {
  readonly key: string;
  readonly job: string;
  readonly datacenter: string;
  rounds: number;
  /** Earliest start of the next round. */
  restsUntil: number;
}

interface Round {
  readonly part: OpenPart;
  readonly branch: Branch;
  readonly until: number;
}

export class EndedParts {
  readonly #context: GateContext;
  /** Open parts by key; removed when their end is observed. */
  readonly #open = new Map<string, OpenPart>();
  /** Parts that need no more rounds, of jobs that are still in memory. */
  readonly #settled = new Set<string>();
  readonly #rounds = new Map<string, Round>();
  #checkAt = 0;

  constructor(context: GateContext) {
    this.#context = context;
  }

  /** Scans all jobs in memory, periodically. */
  remember(states: Iterable<JobState>): void {
    const known = new Set<string>();
    for (const state of states) for (const key of this.note(state)) known.add(key);
    for (const key of this.#settled) if (!known.has(key)) this.#settled.delete(key);
    for (const key of this.#open.keys()) if (!known.has(key)) this.#close(key);
  }

  /** Records the abandoned parts of a finished job, and returns their keys. */
  note(state: JobState): readonly string[] {
    if (!hasJobEnded(state) || !this.#context.rules.leftCancelled) return [];
    return abandonedParts(state).map((part) => {
      const { dcId: datacenter } = part;
      const key = keyOfPart(state.jobId, part);
      if (!this.#open.has(key) && !this.#settled.has(key))
        this.#open.set(key, { key, job: state.jobId, datacenter, rounds: 0, restsUntil: 0 });
      return key;
    });
  }

  nextDeadline(): number {
    if (this.#open.size === 0) return Number.POSITIVE_INFINITY;
    const rounds = [...this.#rounds.values()];
    return Math.min(this.#checkAt, ...rounds.map(({ branch }) => branch.nextDeadline()));
  }

  onTick(): void {
    const { now } = this.#context;
    if (now >= this.#checkAt) {
      this.#checkAt = now + CHECK_MS;
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

  /** Null if the part of the plan can no longer be derived. */
  #branchOf({ datacenter, key }: OpenPart, state: JobState): Branch | null {
    const spec = decodeSpec(state.spec);
    if (spec === null) return null;
    const parts = partsOf(spec.submission, spec.routing, state.run.dispatched);
    const own = parts.find((one) => one.datacenter === datacenter);
    if (own === undefined) return null;
    const wanted = { ...UNWANTED, cancel: `the job is over: ${statusOf(state)}` };
    const branch: Branch = new Branch(this.#context, { datacenter, key }, own.submission, wanted, {
      held: () => (branch.status === "CANCELLING" ? NO_FIGURES : null),
      onReport: () => branch.want(withJointControls(wanted, parts, branch)),
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
    // The part may be running although its files are not available now.
    if (problem === FILES_ABSENT) this.#rest(round);
    else if (branch.hasEnded || problem !== null) {
      this.#settle(round.part);
      const fields = { job: round.part.job, datacenter, status: problem ?? status };
      this.#context.log("info", "job.partOver", fields);
    }
  }

  #rest({ part }: Round): void {
    this.#rounds.delete(part.key);
    part.rounds++;
    part.restsUntil = this.#context.now + REST_MS;
    if (part.rounds < ROUNDS_MAX) return;
    this.#settle(part);
    const { datacenter, job } = part;
    this.#context.log("warn", "job.partLeft", { job, datacenter, rounds: part.rounds });
  }

  #settle({ key }: OpenPart): void {
    this.#close(key);
    this.#settled.add(key);
  }

  #close(key: string): void {
    this.#open.delete(key);
    this.#rounds.delete(key);
  }
}

/** Parts of a job that had started, and whose end was not reported before the job finished. */
function abandonedParts({ run }: JobState): readonly JobState["run"]["dispatched"][number][] {
  const isOpen = (dcId: string): boolean => {
    const result = run.results.find((one) => one.dcId === dcId);
    return result === undefined || result.finalStatus === LOST;
  };
  const shares = (run.started?.shares ?? []).filter(({ dcId }) => isOpen(dcId));
  return run.dispatched.filter(({ dcId }) => shares.some((one) => one.dcId === dcId));
}

/** Ends all waits for other datacenters: they are over with the job. */
function withJointControls(
  wanted: Wanted,
  parts: readonly JobPart[],
  { datacenter: own, report }: Branch,
): Wanted {
  const places = parts.map(({ datacenter }) =>
    datacenter === own
      ? { datacenter, report, isOver: false }
      : { datacenter, report: null, isOver: true },
  );
  return { ...wanted, joint: new JointWords(parts, places, []).of(own) };
}
