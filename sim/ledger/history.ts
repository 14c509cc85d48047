/**
 * Compares the answers that clients got with the content of the disks:
 *
 *   A1  an acknowledged event is committed, at the index and with the outcome that was reported; and a job
 *       that was acknowledged is never called absent by its own log
 *   A3  an event of an acknowledged job never gets the answer that there is no such job
 *   C1  an event whose condition was reported as false never changes anything
 *   G1  a cancel that was passed on is decided in the end, if the node that said so has not restarted
 *   A2  the reported durability is the one the disks give (DUR-2)
 *   I8  a strong read sees all that was acknowledged before it began, and never goes back
 *   S1  session reads see all that their client did or saw, through any node
 *   S2  bounded reads are no older than their bound
 *   S3  no read shows a state that no prefix of the log gives
 *   K1  one job per key          K2  all acks of a key name it          K3  an acked job exists in the end
 *   K4  a sound submission is never refused for good (IDEM-8, IDEM-13)
 *   K5  a key is accepted or rejected, and stays so under every later primary (IDEM-23)
 */

import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import { atLeast } from "../../src/core/ledger/job/durability.ts";
import { isTerminal, type JobState } from "../../src/core/ledger/job/job-state.ts";
import type { LedgerAnswer, LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import type { LedgerNode } from "../../src/core/ledger/node/node.ts";
import { Topology } from "../../src/core/ledger/node/topology.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import { type LedgerCheckers, sameBytes } from "./checkers.ts";
import type { LedgerProcess } from "./node.ts";
import type { LedgerPlan } from "./swarm.ts";

type JobAnswer = Extract<LedgerAnswer, { kind: "job" }>;
type PassedOn = Extract<LedgerAnswer, { kind: "passedOn" }>;
type Committed = Extract<LedgerAnswer, { kind: "committed" }>;
type ReadRequest = Extract<LedgerRequest, { kind: "read" }>;
type SubmitRequest = Extract<LedgerRequest, { kind: "submit" }>;

interface JobHistory {
  /** Acknowledgements in the order they came: when, and up to which place. */
  readonly acks: { readonly at: number; readonly seq: number }[];
  ackedSeq: number;
  strongSeq: number;
}

/** Lower bound of the state a read must show, fixed when it is invoked. */
export interface ReadFloor {
  readonly at: number;
  readonly seq: number;
}

export class LedgerHistory {
  readonly #world: World;
  readonly #checkers: LedgerCheckers;
  readonly #violations: Violations;
  readonly #topology: Topology;
  readonly #jobs = new Map<string, JobHistory>();
  /** Key to the job it was acked as. */
  readonly #keys = new Map<string, string>();
  /** Keys that were rejected. */
  readonly #rejected = new Set<string>();
  readonly #datacenters: readonly string[];
  /** Acknowledged jobs, with their requests. */
  readonly acked = new Map<string, SubmitRequest>();
  /** Events reported to have changed nothing: job and event. */
  readonly #refused: (readonly [jobId: string, eventId: string])[] = [];
  /** Cancels that were passed on, by which node, in which incarnation of its process. */
  readonly #passedOn: {
    readonly jobId: string;
    readonly eventId: string;
    readonly process: LedgerProcess;
    readonly node: LedgerNode | null;
  }[] = [];
  /** Job to its key; and key to the job that was founded. */
  readonly #founded = new Map<string, string>();
  counts = { acks: 0, reads: 0, submits: 0, retries: 0 };

  constructor(world: World, checkers: LedgerCheckers, violations: Violations, plan: LedgerPlan) {
    this.#world = world;
    this.#checkers = checkers;
    this.#violations = violations;
    const { replicas, fewGates, datacenters } = plan.config;
    this.#datacenters = datacenters;
    this.#topology = new Topology(plan.sites, { replicas, fewGates });
  }

  #job(jobId: string): JobHistory {
    const known = this.#jobs.get(jobId);
    if (known !== undefined) return known;
    const job: JobHistory = { acks: [], ackedSeq: -1, strongSeq: -1 };
    this.#jobs.set(jobId, job);
    return job;
  }

  onCommitted(answer: Committed): void {
    const { jobId, eventId, seq, outcome, level } = answer;
    if (outcome === "kept") return;
    this.counts.acks++;
    const truth = this.#checkers.truth(jobId as GroupId);
    const entry = truth.entries[seq];
    this.#violations.check(answer.reason !== "JOB_ABSENT", "A1", () => {
      return `${jobId} was acked, and its event ${eventId} is told that there is no such job`;
    });
    this.#violations.check(entry?.eventId === eventId, "A1", () => {
      return `${jobId}: ${eventId} was acked at ${seq}, where ${entry?.eventId ?? "nothing"} stands`;
    });
    if (entry === undefined) return;
    const first = truth.outcomes.get(eventId);
    const same = entry.kind !== "op" || (first?.seq === seq && first.outcome === outcome);
    this.#violations.check(same, "A1", () => {
      return `${jobId}: ${eventId} was acked as ${outcome} at ${seq} and is ${first?.outcome}`;
    });
    const holders = [...this.#checkers.observers]
      .filter(([, observer]) => observer.holds(jobId as GroupId, entry))
      .map(([id]) => id);
    const size = [...truth.members.values()].at(-1)?.length ?? 3;
    const real = this.#topology.level(holders.slice(0, size), size);
    this.#violations.check(atLeast(real, level), "A2", () => {
      return `${jobId}: ${eventId} was acked as ${level}, durable at [${holders.join(", ")}]`;
    });
    const job = this.#job(jobId);
    job.ackedSeq = Math.max(job.ackedSeq, seq);
    job.acks.push({ at: this.#world.now, seq });
  }

  /** Checked in the end: an event reported to have changed nothing never does. */
  onConflict({ jobId, eventId }: Extract<LedgerAnswer, { kind: "conflict" }>): void {
    this.#checkers.marks.add("job.conditionFailed");
    this.#refused.push([jobId, eventId]);
  }

  onPassedOn({ jobId, eventId }: PassedOn, process: LedgerProcess): void {
    this.#checkers.marks.add("job.cancelPassedOn");
    this.#passedOn.push({ jobId, eventId, process, node: process.node });
  }

  /** G1: returns a cancel that was passed on and never decided. A finished job needs none. */
  undecided(): string | null {
    for (const { jobId, eventId, process, node } of this.#passedOn) {
      const { outcomes, states } = this.#checkers.truth(jobId as GroupId);
      const status = states.at(-1)?.status ?? "ABSENT";
      if (process.node !== node || outcomes.has(eventId) || isTerminal(status)) continue;
      return `${process.id} has passed on ${eventId} of ${jobId}, which is ${status} without it`;
    }
    return null;
  }

  /** Called when a read is invoked; `seen` is the highest index its client has seen, through any node. */
  floor(request: ReadRequest, seen: number): ReadFloor {
    const at = this.#world.now;
    const job = this.#job(request.jobId);
    switch (request.level) {
      case "STRONG":
        return { at, seq: Math.max(job.ackedSeq, job.strongSeq) };
      case "SESSION":
        return { at, seq: seen };
      default:
        return { at, seq: -1 };
    }
  }

  onJob(request: ReadRequest, floor: ReadFloor, { state, archived }: JobAnswer): void {
    this.counts.reads++;
    const { jobId, level } = request;
    const job = this.#job(jobId);
    const truth = this.#checkers.truth(jobId as string as GroupId);
    this.#checkers.checkState(truth.id, state, () => `S3: a ${level} read shows`);
    const seq = state.appliedSeq;
    if (archived) {
      // Events after its end changed nothing, and may be missing.
      this.#violations.check(isTerminal(state.status), "R1", () => {
        return `${jobId} is read from an archive as ${state.status}`;
      });
      return;
    }
    const id = level === "STRONG" ? "I8" : "S1";
    this.#violations.check(seq >= floor.seq, id, () => {
      return `a ${level} read of ${jobId} shows ${seq}, ${floor.seq} was known before it began`;
    });
    if (level === "STRONG") job.strongSeq = Math.max(job.strongSeq, seq);
  }

  /** S2: what was acknowledged this long before the read began must be in it. */
  onBounded(request: ReadRequest, floor: ReadFloor, state: JobState, slackMs: number): void {
    const before = floor.at - request.staleMs - slackMs;
    const seen = this.#job(request.jobId).acks.findLast(({ at }) => at < before);
    this.#violations.check(seen === undefined || state.appliedSeq >= seen.seq, "S2", () => {
      const age = Math.round(this.#world.now - (seen?.at ?? 0));
      return (
        `a read of ${request.jobId} bounded by ${request.staleMs} ms shows ${state.appliedSeq}, ` +
        `${seen?.seq} was acked ${age} ms ago`
      );
    });
  }

  onNotFound(request: ReadRequest, floor: ReadFloor): void {
    const id = request.level === "STRONG" ? "I8" : "S1";
    this.#violations.check(floor.seq < 0, id, () => {
      return `${request.jobId} is not found, ${floor.seq} was known before`;
    });
  }

  /** A3: a job that was acknowledged is never reported as absent. */
  onAppendNotFound(jobId: string): void {
    this.#violations.check(!this.acked.has(jobId), "A3", () => {
      return `${jobId} was acked, and an event of it is told that it is not found`;
    });
  }

  onAccepted(request: SubmitRequest, jobId: string): void {
    this.counts.submits++;
    this.acked.set(jobId, request);
    // The job's first index is promised, though the group may not be founded yet. (IDEM-22)
    const job = this.#job(jobId);
    job.ackedSeq = Math.max(job.ackedSeq, 0);
    if (request.key === "") return;
    const known = this.#keys.get(request.key);
    this.#violations.check(known === undefined || known === jobId, "K2", () => {
      return `${request.key} was acked as ${known} and as ${jobId}`;
    });
    this.#keys.set(request.key, jobId);
    this.#checkDecided(request.key);
  }

  /** K4: only a datacenter that somebody does not know deserves a refusal that is remembered. */
  onRejected({ key, assignedDcs }: SubmitRequest): void {
    this.#checkers.marks.add("submit.rejected");
    const sound = assignedDcs.every((dc) => this.#datacenters.includes(dc));
    const deserved = !sound && this.#datacenters.length > 0;
    this.#violations.check(deserved, "K4", () => `${key} is sound and was rejected for good`);
    this.#rejected.add(key);
    this.#checkDecided(key);
  }

  #checkDecided(key: string): void {
    const both = this.#keys.has(key) && this.#rejected.has(key);
    this.#violations.check(!both, "K5", () => `${key} was accepted and rejected`);
  }

  /** The job's log has its first entry, which identifies its key: `spec` begins with the key. */
  onFounded(jobId: string, key: string): void {
    if (key === "") return;
    const known = this.#founded.get(key);
    this.#violations.check(known === undefined || known === jobId, "K1", () => {
      return `${key} has become ${known} and ${jobId}`;
    });
    this.#founded.set(key, jobId);
    const acked = this.#keys.get(key);
    this.#violations.check(acked === undefined || acked === jobId, "K1", () => {
      return `${key} was acked as ${acked} and has become ${jobId}`;
    });
  }

  /** In the end every acked job exists and is the requested one. */
  finale(): void {
    for (const [jobId, eventId] of this.#refused) {
      const outcome = this.#checkers.truth(jobId as GroupId).outcomes.get(eventId)?.outcome;
      this.#violations.check(outcome !== "applied", "C1", () => {
        return `${jobId}: ${eventId} was told to have changed nothing, and was applied`;
      });
    }
    for (const [jobId, request] of this.acked) {
      const state = this.#checkers.truth(jobId as GroupId).states.at(-1);
      const status = state?.status ?? "ABSENT";
      this.#violations.check(status !== "ABSENT", "K3", () => {
        return `${jobId} was acked for ${request.key || "no key"} and does not exist`;
      });
      if (state === undefined) continue;
      this.#violations.check(sameBytes(state.spec, request.spec), "K2", () => {
        return `${jobId} was acked for ${request.key} and runs something else`;
      });
    }
  }
}
