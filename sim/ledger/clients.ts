/**
 * Clients of a simulated ledger. Each does one operation after the other, through any node, and retries with the same
 * key or event id until it knows the outcome or gives up: submissions with and without a key (also the same key through
 * several nodes at once, and a key reused for another job), job events, reads of all levels, replacements of replicas.
 */

import { encodeUtf8 } from "../../src/core/base/bytes.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import type { Durability } from "../../src/core/ledger/job/durability.ts";
import type { EventId, JobEvent } from "../../src/core/ledger/job/events.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";
import { SessionToken } from "../../src/core/ledger/job/session-token.ts";
import { type IdempotencyKey, shardOf } from "../../src/core/ledger/keys/key.ts";
import {
  type LedgerAnswer,
  type LedgerRequest,
  READ_LEVELS,
} from "../../src/core/ledger/node/messages.ts";
import { shardGroup } from "../../src/core/ledger/node/topology.ts";
import type { World } from "../kernel/world.ts";
import type { LedgerCheckers } from "./checkers.ts";
import { DCS, drawEvent, NO_HLC } from "./events.ts";
import type { LedgerHistory, ReadFloor } from "./history.ts";
import type { LedgerProcess } from "./node.ts";
import type { LedgerPlan } from "./swarm.ts";
import { TALLIES, type Tallies } from "./tallies.ts";

type SubmitRequest = Extract<LedgerRequest, { kind: "submit" }>;
type Verdict = "done" | "again";

interface KnownKey {
  readonly request: SubmitRequest;
  /** No client sends it after this: the authority may have forgotten it by then. (IDEM-27) */
  readonly until: number;
}

interface Session {
  readonly random: Random;
  readonly index: number;
  /** Token that this client carries from node to node. */
  readonly token: SessionToken;
  /** Highest index the client has seen per job, kept beside the token to verify it. */
  readonly seen: Map<string, number>;
  /** Newest fence the client has seen per job. */
  readonly fences: Map<string, number>;
  operations: number;
}

const ATTEMPTS_MAX = 4;
const ATTEMPT_MS = 7_000;
/** In some seeds only every other node takes jobs for it. */
const NEW_DC = "dc3";
const ASK_AGAIN_MS_MAX = 8_000;
const BURST_PAUSE_MS = 1_000;
const BURST_IN_FLIGHT = 40;

interface ClientWorld {
  readonly world: World;
  readonly plan: LedgerPlan;
  readonly processes: readonly LedgerProcess[];
  readonly checkers: LedgerCheckers;
  readonly history: LedgerHistory;
  readonly tallies: Tallies;
}

export class LedgerClients {
  readonly #around: ClientWorld;
  readonly #sessions: Session[];
  readonly #keys: KnownKey[] = [];
  #keyCount = 0;
  readonly jobs: JobId[] = [];
  /** When a replacement was last requested. */
  replacedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(around: ClientWorld, random: Random) {
    this.#around = around;
    this.#sessions = Array.from({ length: around.plan.clients }, (_, index) => ({
      random: random.fork(`client/${index}`),
      index,
      token: new SessionToken(),
      seen: new Map(),
      fences: new Map(),
      operations: 0,
    }));
  }

  start(): void {
    for (const session of this.#sessions) this.#pauseThenNext(session);
    const [first] = this.#sessions;
    const { burstEvents } = this.#around.plan;
    if (first !== undefined && burstEvents > 0) this.#burst(first, burstEvents);
  }

  /** Many events for one job, some in flight at a time; then the first of them once more. (EVT-2) */
  #burst(session: Session, count: number): void {
    const { world } = this.#around;
    const later = (run: () => void): void => {
      world.schedule(world.now + BURST_PAUSE_MS, "step", session.index, () => {
        if (!this.#stopped) run();
      });
    };
    const jobId = this.jobs[0];
    if (jobId === undefined) {
      later(() => this.#burst(session, count));
      return;
    }
    const event = (at: number): LedgerRequest => {
      const head = { jobId, eventId: `burst/${at}` as EventId, fenceToken: 0, hlc: NO_HLC };
      const body = { kind: "JobAccepted", dcId: DCS[at % 2] ?? "", workerCount: at } as const;
      return { kind: "append", event: { ...head, ...body }, durability: "NONE" };
    };
    let next = 0;
    const step = (): void => {
      for (let at = 0; at < BURST_IN_FLIGHT && next < count; at++) {
        this.#carry(session, event(next++), () => undefined);
      }
      if (next < count) later(step);
      else for (const at of [0, 1, 2]) this.#carry(session, event(at), () => undefined);
    };
    step();
  }

  stop(): void {
    this.#stopped = true;
  }

  #pauseThenNext(session: Session): void {
    const { world, plan } = this.#around;
    const pauseMs = -Math.log(1 - session.random.float()) * plan.thinkMs;
    world.schedule(world.now + pauseMs, "step", session.index, () => {
      if (!this.#stopped) this.#next(session);
    });
  }

  #next(session: Session): void {
    session.operations++;
    const { random } = session;
    const { plan } = this.#around;
    const done = (): void => this.#pauseThenNext(session);
    const draw = random.float();
    if (this.jobs.length === 0 || draw < 0.15) this.#submit(session, done);
    else if (draw < 0.15 + plan.replaceShare) this.#replace(session, done);
    else if (draw < 0.25 + plan.replaceShare) this.#tally(session, done);
    else if (draw < 0.6) this.#append(session, done);
    else this.#read(session, done);
  }

  // Submissions.

  #submit(session: Session, done: () => void): void {
    const { random } = session;
    const { plan } = this.#around;
    const { world } = this.#around;
    const recent = this.#keys.filter(({ until }) => until > world.now);
    const full = this.jobs.length >= plan.jobsMax;
    if ((full || random.chance(0.4)) && recent.length > 0) {
      const { request } = random.pick(recent.slice(-4));
      const other = random.chance(0.15);
      const spec = other ? specOf(request.key, random.below(1_000)) : request.spec;
      this.#sendKeyed(session, { ...request, spec }, done);
    } else if (full) done();
    else if (random.chance(0.25)) {
      const spec = specOf("", random.below(1_000));
      this.#carry(session, { kind: "submit", key: "", spec, assignedDcs: DCS }, done, 1);
    } else this.#sendKeyed(session, this.newSubmission(random), done);
  }

  newSubmission(random: Random, shard: number | null = null): SubmitRequest {
    const { plan, world } = this.#around;
    const nonce = random.uint32().toString(16).padStart(16, "0");
    let key = "";
    do {
      key = `sim:${this.#keyCount++}:${nonce}`;
    } while (!inShards(key, shard === null ? plan.shards : [shard]));
    const spec = specOf(key, random.below(1_000));
    const assignedDcs = shard === null && random.chance(0.2) ? [...DCS, NEW_DC] : DCS;
    const request: SubmitRequest = { kind: "submit", key, spec, assignedDcs };
    this.#keys.push({ request, until: world.now + plan.keyWindowMs });
    return request;
  }

  /** Sometimes through several nodes at the same time. */
  #sendKeyed(session: Session, request: SubmitRequest, done: () => void): void {
    const copies = session.random.chance(0.3) ? 2 + session.random.below(2) : 1;
    let open = copies;
    const one = (): void => {
      if (--open === 0) done();
    };
    for (let i = 0; i < copies; i++) this.#carry(session, request, one);
  }

  // Events.

  #append(session: Session, done: () => void): void {
    const { random } = session;
    const jobId = random.pick(this.jobs.slice(-this.#around.plan.jobsHot));
    const eventId = `c${session.index}/${session.operations}`;
    const condition = this.#condition(session, jobId);
    const event = { ...drawEvent(random, jobId, eventId), ...condition };
    const durability = random.pick<Durability>(["LOCAL", "REGIONAL", "GLOBAL"]);
    // Reading its own write through another node arrives before most replicas have the write.
    const then = random.chance(0.4) ? () => this.#readBack(session, jobId, done) : done;
    this.#carry(session, { kind: "append", event, durability }, then);
  }

  /** Requests confirm nothing any more: the client asks its node to stop the load. */
  #stop({ index, operations }: Session, jobId: JobId, process: LedgerProcess): void {
    const eventId = `stop${index}/${operations}` as EventId;
    const head = { jobId, eventId, fenceToken: 0, hlc: NO_HLC };
    const event = { ...head, kind: "JobAborted", reason: "sim", requestor: "sim" } as const;
    this.attempt({ kind: "append", event, durability: "NONE" }, process, () => undefined);
  }

  #readBack(session: Session, jobId: JobId, done: () => void): void {
    const need = session.token.need(jobId);
    this.#carry(session, { kind: "read", jobId, ...need, staleMs: 0 }, done, 2);
  }

  /** Now and then an event depends on what this client knows, or thinks to know. */
  #condition({ random, token, fences }: Session, jobId: JobId): Pick<JobEvent, "condition"> {
    if (!random.chance(0.3)) return {};
    const known = token.placeOf(jobId);
    const ifSeq = known >= 0 && random.chance(0.6) ? known : null;
    const ifFence = random.chance(0.6) ? (fences.get(jobId) ?? null) : null;
    return ifSeq === null && ifFence === null ? {} : { condition: { ifSeq, ifFence } };
  }

  #replace(session: Session, done: () => void): void {
    const { random } = session;
    const { plan, processes, checkers } = this.#around;
    const shards = plan.shards.map((index) => shardGroup(index));
    const groups = [...this.jobs.slice(-plan.jobsHot), ...shards, ...TALLIES] as readonly GroupId[];
    const group = random.pick(groups);
    const members = [...checkers.truth(group).members].sort(([a], [b]) => a - b).at(-1)?.[1] ?? [];
    const damaged = processes.filter(
      (one) => one.lostDisk || checkers.observer(one).rotten.size > 0,
    );
    const outside = processes.filter(
      (one) => !members.includes(one.id) && one.state === "up" && !damaged.includes(one),
    );
    if (members.length === 0 || outside.length === 0) {
      done();
      return;
    }
    const eventId = `r${session.index}/${session.operations}`;
    // A joining replica has no vote until it has the log, so no other may leave while a disk is damaged.
    const broken = members.find((id) => damaged.some((one) => one.id === id));
    const leaving = broken ?? random.pick(members);
    this.replacedAt = this.#around.world.now;
    const joining = random.pick(outside).id;
    this.#carry(session, { kind: "replace", group, eventId, leaving, joining }, done, 2);
    // The end of an epoch meets work under way.
    const jobId = this.jobs.find((id) => (id as string) === group);
    for (let i = 0; jobId !== undefined && i < 3; i++) {
      const event = drawEvent(random, jobId, `${eventId}/${i}`);
      const attempt = { kind: "append", event, durability: "LOCAL" } as const;
      this.attempt(attempt, random.pick(processes), () => undefined);
    }
  }

  #tally(session: Session, done: () => void): void {
    const { random, index, operations } = session;
    const { tallies } = this.#around;
    const request = random.chance(0.6)
      ? tallies.add(random, `t${index}/${operations}`)
      : tallies.look(random);
    this.#carry(session, request, done);
  }

  #read(session: Session, done: () => void): void {
    const { random } = session;
    const jobId = random.pick(this.jobs.slice(-this.#around.plan.jobsHot));
    const level = random.chance(0.4) ? "STRONG" : random.pick(READ_LEVELS);
    const need = level === "SESSION" ? session.token.need(jobId) : { level, minSeq: -1 };
    const staleMs = random.pick([500, 3_000, 8_000]);
    this.#carry(session, { kind: "read", jobId, ...need, staleMs }, done, 2);
  }

  // Attempts.

  #carry(
    session: Session,
    request: LedgerRequest,
    done: () => void,
    attempts = ATTEMPTS_MAX,
  ): void {
    const { random } = session;
    const { world, processes, history } = this.#around;
    const process = random.pick(processes);
    const again = (): void => {
      if (attempts <= 1 || this.#stopped) {
        done();
        return;
      }
      history.counts.retries++;
      const pauseMs = random.float() * 2_000;
      world.schedule(world.now + pauseMs, "step", session.index, () =>
        this.#carry(session, this.#renewed(session, request), done, attempts - 1),
      );
    };
    const seen = request.kind === "read" ? (session.seen.get(request.jobId) ?? -1) : -1;
    const onAnswer = (answer: LedgerAnswer | null): void => {
      if (answer?.kind === "unknown" && request.kind === "append" && random.chance(0.5)) {
        this.#stop(session, request.event.jobId, process);
      }
      if (this.#judge(session, answer) === "done") done();
      else again();
    };
    this.attempt(request, process, onAnswer, seen);
  }

  /** A session's read names everything the client has seen by now, through its other requests too. */
  #renewed({ token }: Session, request: LedgerRequest): LedgerRequest {
    if (request.kind !== "read" || request.level !== "SESSION") return request;
    return { ...request, ...token.need(request.jobId) };
  }

  /**
   * One request to one node by a client that has seen an index; null if no answer arrives in time. Late answers count
   * as well.
   */
  attempt(
    request: LedgerRequest,
    process: LedgerProcess,
    done: (answer: LedgerAnswer | null) => void,
    seen = -1,
  ): void {
    const { world, history, tallies } = this.#around;
    const floor = request.kind === "read" ? history.floor(request, seen) : null;
    const tallied = tallies.floor(request);
    let open = true;
    const finish = (answer: LedgerAnswer | null): void => {
      if (!open) return;
      open = false;
      done(answer);
    };
    world.schedule(world.now + ATTEMPT_MS, "step", process.spec.index, () => finish(null));
    process.request(request, (answer) => {
      if (answer !== null) {
        this.#learn(request, floor, answer, process);
        tallies.learn(request, tallied, answer);
      }
      finish(answer);
    });
  }

  #learn(
    request: LedgerRequest,
    floor: ReadFloor | null,
    answer: LedgerAnswer,
    process: LedgerProcess,
  ): void {
    const { history, world } = this.#around;
    if (answer.kind === "committed") {
      if (request.kind === "submit") this.#accepted(request, answer.jobId);
      history.onCommitted(answer);
    } else if (answer.kind === "conflict") history.onConflict(answer);
    else if (answer.kind === "passedOn") history.onPassedOn(answer, process);
    else if (answer.kind === "submitted" && request.kind === "submit") {
      const { answer: inner } = answer;
      if (inner.kind === "accepted") this.#accepted(request, inner.jobId);
      else this.#around.checkers.marks.add(`submit.${inner.kind}`);
      if (inner.kind === "rejected") {
        history.onRejected(request);
        this.#askAgain(request);
      }
    } else if (answer.kind === "refused" && answer.code === "EVENT_REPEATED") {
      this.#around.checkers.marks.add("job.eventLong");
    } else if (request.kind === "append" && answer.kind === "notFound") {
      history.onAppendNotFound(request.event.jobId);
    } else if (request.kind === "read" && floor !== null) {
      if (answer.kind === "job") {
        history.onJob(request, floor, answer);
        if (answer.archived) this.#around.checkers.marks.add("ledger.archiveRead");
        else if (request.level === "BOUNDED_STALENESS") {
          // Staleness is measured by the clock of the node that answers.
          const slackMs = 2 * request.staleMs * this.#around.plan.clockDrift + 5;
          history.onBounded(request, floor, answer.state, slackMs);
        }
      } else if (answer.kind === "notFound") history.onNotFound(request, floor);
    }
    world.note(`${process.id} answers ${describe(request)}: ${textOf(answer)}`);
  }

  /** Retries while the key is remembered: a later decision may know more datacenters. */
  #askAgain(request: SubmitRequest): void {
    const { world, processes } = this.#around;
    const { random, index } = this.#sessions[0] ?? {};
    const known = this.#keys.find((one) => one.request.key === request.key);
    if (random === undefined || index === undefined || known === undefined) return;
    const at = world.now + random.float() * ASK_AGAIN_MS_MAX;
    if (at > known.until) return;
    world.schedule(at, "step", index, () => {
      if (!this.#stopped) this.attempt(request, random.pick(processes), () => undefined);
    });
  }

  #accepted(request: SubmitRequest, jobId: string): void {
    this.#around.history.onAccepted(request, jobId);
    if (!this.jobs.includes(jobId as JobId)) this.jobs.push(jobId as JobId);
  }

  #judge(session: Session, answer: LedgerAnswer | null): Verdict {
    if (answer === null || answer.kind === "unknown" || answer.kind === "retry") return "again";
    if (answer.kind === "submitted") return answer.answer.kind === "retry" ? "again" : "done";
    const { token, seen, fences } = session;
    const saw = (jobId: string, seq: number, fence: number): void => {
      token.saw(jobId, seq);
      seen.set(jobId, Math.max(seq, seen.get(jobId) ?? -1));
      fences.set(jobId, Math.max(fence, fences.get(jobId) ?? 0));
    };
    if (answer.kind === "committed") saw(answer.jobId, answer.seq, answer.view);
    else if (answer.kind === "conflict") saw(answer.jobId, answer.seq, answer.fence);
    else if (answer.kind === "job") {
      saw(answer.state.jobId, answer.state.appliedSeq, answer.view);
    }
    return "done";
  }
}

function inShards(key: string, shards: readonly number[]): boolean {
  return shards.includes(shardOf(key as IdempotencyKey));
}

/** The key is part of the spec, so that a job's key is known from its log. */
function specOf(key: string, payload: number): Uint8Array {
  return encodeUtf8(`${key}|${payload}`);
}

function describe(request: LedgerRequest): string {
  switch (request.kind) {
    case "submit":
      return `submit ${request.key}`;
    case "append":
      return `${request.event.kind} ${request.event.eventId} of ${request.event.jobId}`;
    case "read":
      return `${request.level} read of ${request.jobId}`;
    case "propose":
    case "inspect":
      return `${request.kind} of ${request.group}`;
    case "replace":
      return `replace ${request.leaving} by ${request.joining} in ${request.group}`;
  }
}

function textOf(answer: LedgerAnswer): string {
  switch (answer.kind) {
    case "committed":
      return `committed at ${answer.seq} as ${answer.outcome}, ${answer.level}`;
    case "submitted":
      return answer.answer.kind === "accepted" ? answer.answer.jobId : answer.answer.kind;
    case "job":
      return `${answer.state.status} at ${answer.state.appliedSeq}, by ${answer.servedBy}`;
    case "unknown":
    case "retry":
      return `${answer.kind}: ${answer.why}`;
    case "refused":
      return `refused: ${answer.message}`;
    default:
      return answer.kind;
  }
}
