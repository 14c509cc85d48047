/**
 * Replacement of lost cores, from the loss on:
 *
 *     coreLost (awaited) ─▶ a core of the job, or another one of the datacenter ─▶ open ─▶ loaded ─▶ coreJoined
 *                           none is free ─▶ searched again … ─▶ for too long, or no longer needed ─▶ coreForgone
 *
 * Right after the loss any free core is used; later, jobs that wait for cores come first.
 *
 * Everything derives from committed state: a new leader continues from there and reopens cores that had not loaded.
 */

import { type CoreEvent, problemText } from "../../load/job/core-messages.ts";
import type { ManagerContext } from "./context.ts";
import { encodeDatacenterEntry, type Grant } from "./datacenter-state.ts";
import { freeCores, spread } from "./free-cores.ts";
import { JobQueue } from "./job-queue.ts";
import { keyOf, type Life } from "./order-rows.ts";
import type { Decided, RunCore } from "./run-entries.ts";
import type { RunLog } from "./run-log.ts";
import type { RunState } from "./run-state.ts";
import type { RunWorkers } from "./run-workers.ts";

/** Maximum reassignments of one share: if every core that has it exits, the share itself is the cause. */
const REASSIGNMENTS_MAX = 3;
/** Cores opened for one vacancy before it is abandoned. */
const OPENED_MAX = 3;
/** Interval between searches for a free core. */
const CHECK_MS = 250;
/** Age beyond which a lost share yields to jobs waiting for cores. */
const NEW_MS = 1_000;

interface Asked {
  /** The answer is pending. */
  isOpen: boolean;
  /** The cores were taken by other jobs: earliest time of the next attempt. */
  againAt: number;
  /** Cores of the worker that the job has once the others are granted; null: none were. */
  left: number | null;
}

interface ReplacementPorts {
  readonly log: Pick<RunLog, "at" | "propose">;
  /** Gives up a core that was opened as a replacement and will not load. */
  lose(core: number, what: string): void;
  /** Whether a replacement of the core would have work to do. */
  isNeeded(core: number): boolean;
}

export class Replacements {
  readonly #job: string;
  readonly #state: RunState;
  readonly #context: ManagerContext;
  readonly #workers: RunWorkers;
  readonly #ports: ReplacementPorts;
  /** Lost cores with a pending proposal. */
  readonly #underWay = new Set<number>();
  /** Deadlines for opened cores to load. */
  readonly #loadBy = new Map<number, number>();
  /** Worker incarnations for which replacement cores were requested. */
  readonly #asked = new Map<string, Asked>();
  /** Lost cores without a replacement so far; searched again then. */
  readonly #vacant = new Set<number>();
  #checkAt = Number.POSITIVE_INFINITY;

  constructor(
    job: string,
    state: RunState,
    context: ManagerContext,
    workers: RunWorkers,
    ports: ReplacementPorts,
  ) {
    this.#job = job;
    this.#state = state;
    this.#context = context;
    this.#workers = workers;
    this.#ports = ports;
  }

  /** Whether another core may replace one that is lost now, or the one it was to replace. */
  mayReplace(core: number): boolean {
    if (!this.#context.rules.sharesDealtAgain || this.#depth(core) >= REASSIGNMENTS_MAX)
      return false;
    return !this.opened().some((one) => one.core === core);
  }

  /** Number of earlier reassignments of the core's share. */
  #depth(core: number): number {
    let depth = 0;
    for (let at = this.#state.coreOf(core); at?.joins !== undefined; depth++)
      at = this.#state.coreOf(at.joins);
    return depth;
  }

  /** Cores that were opened and have neither joined nor been lost. */
  opened(): readonly RunCore[] {
    return this.#state.cores.filter(({ core, joins }) => {
      const { joinedCores, lostCores } = this.#state;
      return joins !== undefined && !joinedCores.has(core) && !lostCores.has(core);
    });
  }

  nextDeadline(): number {
    return Math.min(this.#checkAt, ...this.#loadBy.values());
  }

  onTick(): void {
    if (this.#checkAt <= this.#context.now) {
      this.#vacant.clear();
      this.#checkAt = Number.POSITIVE_INFINITY;
    }
    for (const [core, at] of [...this.#loadBy]) {
      if (at > this.#context.now) continue;
      this.#loadBy.delete(core);
      this.#ports.lose(core, `core ${core} did not load the job in time`);
    }
  }

  /** Opens replacement cores whose assignment has been committed. */
  open(cores: readonly RunCore[]): void {
    const { submission } = this.#state;
    if (submission === null) return;
    this.#workers.openCores(cores, submission);
    for (const { core, joins = core } of cores) {
      this.#underWay.delete(joins);
      this.#loadBy.set(core, this.#context.now + this.#context.options.config.loadTimeoutMs);
      if (!this.#workers.isAlive(core)) this.#ports.lose(core, `core ${core} is gone`);
    }
  }

  /** True when the event belongs to a core that has not joined yet. */
  onEvent(core: number, event: CoreEvent): boolean {
    const { joins } = this.opened().find((one) => one.core === core) ?? {};
    if (joins === undefined) return false;
    if (event.kind === "loaded" && this.#loadBy.delete(core))
      this.#ports.log.propose({ kind: "coreJoined", core, instead: joins });
    if (event.kind === "loadFailed")
      this.#ports.lose(core, `core ${core} could not load the job: ${problemText(event.problem)}`);
    return true;
  }

  /** Searches for replacements after a commit, here or in the datacenter. */
  check(): void {
    // Runs after every event, almost always with nothing to replace.
    if (this.#underWay.size + this.#loadBy.size + this.#state.awaitedCores.size === 0) return;
    const opened = this.opened();
    for (const core of this.#underWay)
      if (!this.#state.awaitedCores.has(core)) this.#underWay.delete(core);
    for (const core of this.#loadBy.keys())
      if (!opened.some((one) => one.core === core)) this.#loadBy.delete(core);
    for (const core of this.#state.awaitedCores) {
      const isReplaced = this.#underWay.has(core) || opened.some(({ joins }) => joins === core);
      if (!isReplaced && !this.#vacant.has(core)) this.#replace(core);
    }
    if (this.#vacant.size > 0)
      this.#checkAt = Math.min(this.#checkAt, this.#context.now + CHECK_MS);
  }

  #replace(core: number): void {
    const tries = this.#state.cores.filter(({ joins }) => joins === core).length;
    if (tries >= OPENED_MAX || !this.#ports.isNeeded(core)) {
      this.#propose(core, { kind: "coreForgone", core });
      return;
    }
    const place = this.#place();
    if (place !== null) {
      const { incarnation, worker } = place;
      const opened = { core: this.#state.nextCore, worker, incarnation, joins: core };
      this.#propose(core, { kind: "open", cores: [opened] });
    } else if (this.#askOthers(core)) return;
    else if (this.#vacantMs(core) < this.#context.options.config.shareKeptMs)
      this.#vacant.add(core);
    else this.#propose(core, { kind: "coreForgone", core });
  }

  /** Time since the loss according to the log, so that every leader counts the same. */
  #vacantMs(core: number): number {
    const lost = this.#state.history.findLast(
      (one) => one.kind === "coreLost" && one.core === core,
    );
    return this.#ports.log.at - (lost?.at ?? 0);
  }

  /** Proposes one entry at a time: the number of an opened core must not be used twice. */
  #propose(core: number, decided: Decided): void {
    if (decided.kind === "open" && this.#underWay.size > 0) return;
    this.#underWay.add(core);
    this.#ports.log.propose(decided);
  }

  /** A worker with fewer processes of the job than granted cores. */
  #place(): Life | null {
    const { cores, grants, lostCores } = this.#state;
    const start = cores.filter(({ joins }) => joins === undefined).length;
    const perCore = Math.max(1, Math.ceil(start / sumOf(grants)));
    const held = cores.filter(({ core }) => !lostCores.has(core));
    const rooms = this.#grants().map((grant) => {
      const used = held.filter((one) => isSameLife(one, grant)).length;
      return { grant, room: grant.cores * perCore - used };
    });
    const best = rooms
      .filter(({ grant, room }) => room > 0 && this.#mayOpen(grant))
      .reduce<(typeof rooms)[number] | null>(
        (most, one) => (most === null || one.room > most.room ? one : most),
        null,
      );
    return best?.grant ?? null;
  }

  #mayOpen(life: Life): boolean {
    return this.#takesCores(life) && this.#workers.isAtWork(life);
  }

  /** One grant per incarnation: a worker that the job has may be granted more cores. */
  #grants(): readonly Grant[] {
    const job = this.#context.datacenter()?.jobs.get(this.#job);
    const lives = new Map<string, Grant>();
    for (const grant of job?.phase === "admitted" ? job.grants : []) {
      const cores = grant.cores + (lives.get(keyOf(grant))?.cores ?? 0);
      lives.set(keyOf(grant), { ...grant, cores });
    }
    return [...lives.values()];
  }

  #takesCores(life: Life): boolean {
    return this.#context.workers.available().some((one) => isSameLife(one, life));
  }

  /** True when replacements for the worker's cores are on their way; false when there are none. */
  #askOthers(core: number): boolean {
    const life = this.#claim(core);
    const datacenter = this.#context.datacenter();
    if (life === null || datacenter === null) return false;
    const held = sumOf(this.#grants().filter((one) => isSameLife(one, life)));
    const asked = this.#asked.get(keyOf(life)) ?? { isOpen: false, againAt: 0, left: null };
    // A grant counts once this manager has folded it in, too.
    if (asked.isOpen || held > (asked.left ?? held)) return true;
    if (asked.againAt > this.#context.now) return false;
    const isNew = this.#vacantMs(core) < NEW_MS;
    if (!isNew && new JobQueue(this.#context, datacenter).first() !== null) return false;
    const grants = spread(freeCores(this.#context, datacenter), held);
    if (grants.length === 0) return false;
    this.#asked.set(keyOf(life), asked);
    this.#ask(life, grants, held - sumOf(grants), asked);
    return true;
  }

  /** An incarnation that accepts no cores and has unused cores of the job; prefers the core's own. */
  #claim(core: number): Life | null {
    const own = this.#state.coreOf(core);
    const { cores, lostCores } = this.#state;
    const isIdle = (grant: Grant): boolean =>
      !cores.some((one) => isSameLife(one, grant) && !lostCores.has(one.core));
    const claims = this.#grants().filter((grant) => !this.#takesCores(grant));
    return (
      claims.find((grant) => own !== null && isSameLife(grant, own)) ?? claims.find(isIdle) ?? null
    );
  }

  /** Cores that are not free yet stay with the job on the terminated incarnation. */
  #ask(life: Life, others: readonly Grant[], left: number, asked: Asked): void {
    const { incarnation, worker: lost } = life;
    const { datacenterGroup } = this.#context;
    // The fold counts released cores with what is left, so that no other job is granted cores there.
    const used = this.#context.datacenter()?.usedCores(lost, incarnation) ?? 0;
    const kept = { worker: lost, incarnation, capacity: used + left, cores: left };
    const grants = left === 0 ? others : [...others, kept];
    const entry = { kind: "regrant", job: this.#job, lost, incarnation, grants } as const;
    const data = encodeDatacenterEntry(entry);
    asked.isOpen = true;
    this.#context.propose(datacenterGroup, this.#context.newEventId(), data, (proposed) => {
      asked.isOpen = false;
      const isGranted = proposed.kind === "committed" && proposed.outcome !== "rejected";
      asked.left = isGranted ? left : null;
      if (!isGranted) asked.againAt = this.#context.now + CHECK_MS;
      this.check();
    });
  }
}

function isSameLife(one: Life, other: Life): boolean {
  return one.worker === other.worker && one.incarnation === other.incarnation;
}

function sumOf(grants: readonly Grant[]): number {
  return grants.reduce((sum, { cores }) => sum + cores, 0);
}
