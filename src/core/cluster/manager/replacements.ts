/**
 * Cores that take the place of lost ones, from the loss on:
 *
 *     coreLost (awaited) ─▶ a place at the job's cores, or others of the datacenter ─▶ open ─▶ loaded ─▶ coreJoined
 *                           none is free ─▶ looked for again … ─▶ for too long, or of no use any more ─▶ coreForgone
 *
 * When it is lost a core's place is taken by whatever is free; later, jobs that wait for cores come first.
 *
 * All of it follows from what is committed: a new leader goes on from there, and opens anew what had not loaded.
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

/** How often one share is dealt again: what ends every core that has it is the share itself. */
const DEALS_MAX = 3;
/** Cores that are opened for one place before it is given up. */
const OPENED_MAX = 3;
/** Between two looks for a core that has become free. */
const LOOK_MS = 250;
/** So long after its loss a share is not new any more: jobs that wait for cores come first. */
const NEW_MS = 1_000;

interface Asked {
  /** The answer is to come. */
  isOpen: boolean;
  /** They were taken by others: not before then once more. */
  againAt: number;
  /** Cores of the worker that the job has when it is seen that others were granted; null: none were. */
  left: number | null;
}

interface ReplacementPorts {
  readonly log: Pick<RunLog, "at" | "propose">;
  /** A core that was opened for a lost one will not load. */
  lose(core: number, what: string): void;
  /** Whoever took the place of a lost core had something to do. */
  isOfUse(core: number): boolean;
}

export class Replacements {
  readonly #job: string;
  readonly #state: RunState;
  readonly #context: ManagerContext;
  readonly #workers: RunWorkers;
  readonly #ports: ReplacementPorts;
  /** Lost cores whose next entry is on its way. */
  readonly #underWay = new Set<number>();
  /** Until when the cores that were opened have to load. */
  readonly #loadBy = new Map<number, number>();
  /** Lives of workers in whose place others were asked for. */
  readonly #asked = new Map<string, Asked>();
  /** Lost cores for which there was none; they are looked at again then. */
  readonly #vacant = new Set<number>();
  #lookAt = Number.POSITIVE_INFINITY;

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

  /** Whether another core may take the place of one that is lost now, or of whoever it was to replace. */
  mayReplace(core: number): boolean {
    if (!this.#context.rules.sharesDealtAgain || this.#depth(core) >= DEALS_MAX) return false;
    return !this.opened().some((one) => one.core === core);
  }

  /** How often its share was dealt again before. */
  #depth(core: number): number {
    let depth = 0;
    for (let at = this.#state.coreOf(core); at?.joins !== undefined; depth++)
      at = this.#state.coreOf(at.joins);
    return depth;
  }

  /** Cores that were opened and have neither joined nor gone. */
  opened(): readonly RunCore[] {
    return this.#state.cores.filter(({ core, joins }) => {
      const { joinedCores, lostCores } = this.#state;
      return joins !== undefined && !joinedCores.has(core) && !lostCores.has(core);
    });
  }

  nextDeadline(): number {
    return Math.min(this.#lookAt, ...this.#loadBy.values());
  }

  onTick(): void {
    if (this.#lookAt <= this.#context.now) {
      this.#vacant.clear();
      this.#lookAt = Number.POSITIVE_INFINITY;
    }
    for (const [core, at] of [...this.#loadBy]) {
      if (at > this.#context.now) continue;
      this.#loadBy.delete(core);
      this.#ports.lose(core, `core ${core} did not load the job in time`);
    }
  }

  /** It is committed that these take the places of lost ones. */
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

  /** True when the event is of a core that has not joined yet. */
  onEvent(core: number, event: CoreEvent): boolean {
    const { joins } = this.opened().find((one) => one.core === core) ?? {};
    if (joins === undefined) return false;
    if (event.kind === "loaded" && this.#loadBy.delete(core))
      this.#ports.log.propose({ kind: "coreJoined", core, instead: joins });
    if (event.kind === "loadFailed")
      this.#ports.lose(core, `core ${core} could not load the job: ${problemText(event.problem)}`);
    return true;
  }

  /** Something is committed, here or in the datacenter. */
  look(): void {
    // Asked after every event, and nearly always there is nothing to replace.
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
    if (this.#vacant.size > 0) this.#lookAt = Math.min(this.#lookAt, this.#context.now + LOOK_MS);
  }

  #replace(core: number): void {
    const tries = this.#state.cores.filter(({ joins }) => joins === core).length;
    if (tries >= OPENED_MAX || !this.#ports.isOfUse(core)) {
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

  /** Since its loss, by the log: whoever leads counts the same. */
  #vacantMs(core: number): number {
    const lost = this.#state.history.findLast(
      (one) => one.kind === "coreLost" && one.core === core,
    );
    return this.#ports.log.at - (lost?.at ?? 0);
  }

  /** One entry at a time: the number of a core that is opened must not be taken twice. */
  #propose(core: number, decided: Decided): void {
    if (decided.kind === "open" && this.#underWay.size > 0) return;
    this.#underWay.add(core);
    this.#ports.log.propose(decided);
  }

  /** A worker that has fewer processes of the job than it has cores for. */
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

  /** One for each life: a worker that the job has may be given more. */
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

  /** True when others are on their way in the place of those of its worker; false when there are none. */
  #askOthers(core: number): boolean {
    const life = this.#claim(core);
    const datacenter = this.#context.datacenter();
    if (life === null || datacenter === null) return false;
    const held = sumOf(this.#grants().filter((one) => isSameLife(one, life)));
    const asked = this.#asked.get(keyOf(life)) ?? { isOpen: false, againAt: 0, left: null };
    // What was granted is seen when this manager has folded it in, too.
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

  /** A life of a worker that takes no cores, where the job has some that it makes no use of: first that of the core. */
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

  /** What is not free yet stays the job's, at the life that is over. */
  #ask(life: Life, others: readonly Grant[], left: number, asked: Asked): void {
    const { incarnation, worker: lost } = life;
    const { datacenterGroup } = this.#context;
    // The fold counts what is given up with what is left: nobody else is given cores there any more.
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
      if (!isGranted) asked.againAt = this.#context.now + LOOK_MS;
      this.look();
    });
  }
}

function isSameLife(one: Life, other: Life): boolean {
  return one.worker === other.worker && one.incarnation === other.incarnation;
}

function sumOf(grants: readonly Grant[]): number {
  return grants.reduce((sum, { cores }) => sum + cores, 0);
}
