/**
 * Cores that take the place of lost ones, from the loss on:
 *
 *     coreLost (awaited) ─▶ a place at the job's cores, or others of the datacenter ─▶ open ─▶ loaded ─▶ coreJoined
 *                                                        none is free ─▶ coreForgone
 *
 * All of it follows from what is committed: a new leader goes on from there, and opens anew what had not loaded.
 */

import { type CoreEvent, problemText } from "../../run/job/core-messages.ts";
import type { ManagerContext } from "./context.ts";
import { type DatacenterJob, encodeDatacenterEntry, type Grant } from "./datacenter-state.ts";
import { freeCores, spread } from "./free-cores.ts";
import { keyOf, type Life } from "./order-rows.ts";
import type { Decided, RunCore } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";
import type { RunWorkers } from "./run-workers.ts";

/** How often one share is dealt again: what ends every core that has it is the share itself. */
const DEALS_MAX = 3;
/** Cores that are opened for one place before it is given up. */
const OPENED_MAX = 3;
/** How often other cores are asked of the datacenter for one worker that is lost. */
const ASKED_MAX = 3;

interface Asked {
  times: number;
  /** The answer is to come. */
  isOpen: boolean;
  isGranted: boolean;
}

interface ReplacementPorts {
  propose(decided: Decided): void;
  /** A core that was opened for a lost one will not load. */
  lose(core: number, what: string): void;
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

  /** Whether another core can take the place of one that is lost now. */
  mayReplace(core: number): boolean {
    if (!this.#context.rules.sharesDealtAgain || this.#depth(core) >= DEALS_MAX) return false;
    return this.#place(core) !== null || this.#offer(this.#state.coreOf(core)).length > 0;
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
    return Math.min(Number.POSITIVE_INFINITY, ...this.#loadBy.values());
  }

  onTick(): void {
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
      this.#ports.propose({ kind: "coreJoined", core, instead: joins });
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
    for (const core of this.#state.awaitedCores)
      if (!this.#underWay.has(core) && !opened.some(({ joins }) => joins === core))
        this.#replace(core);
  }

  #replace(core: number): void {
    const tries = this.#state.cores.filter(({ joins }) => joins === core).length;
    const place = tries < OPENED_MAX ? this.#place(null) : null;
    if (place !== null) {
      const { incarnation, worker } = place;
      const opened = { core: this.#state.nextCore, worker, incarnation, joins: core };
      this.#propose(core, { kind: "open", cores: [opened] });
    } else if (tries >= OPENED_MAX || !this.#askOthers(core))
      this.#propose(core, { kind: "coreForgone", core });
  }

  /** One entry at a time: the number of a core that is opened must not be taken twice. */
  #propose(core: number, decided: Decided): void {
    if (decided.kind === "open" && this.#underWay.size > 0) return;
    this.#underWay.add(core);
    this.#ports.propose(decided);
  }

  /** A worker that has fewer processes of the job than it has cores for; `without`: a core that goes. */
  #place(without: number | null): Life | null {
    const { cores, grants, lostCores } = this.#state;
    const start = cores.filter(({ joins }) => joins === undefined).length;
    const perCore = Math.max(1, Math.ceil(start / sumOf(grants)));
    const held = cores.filter(({ core }) => core !== without && !lostCores.has(core));
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

  #grants(): readonly Grant[] {
    return this.#datacenterJob()?.grants ?? [];
  }

  #datacenterJob(): DatacenterJob | null {
    const job = this.#context.datacenter()?.jobs.get(this.#job);
    return job?.phase === "admitted" ? job : null;
  }

  /** Free cores in the place of those of a worker that is lost, or that drains and takes no others. */
  #offer(life: Life | null): readonly Grant[] {
    const state = this.#context.datacenter();
    const held = this.#grants().filter((one) => life !== null && isSameLife(one, life));
    if (state === null || life === null || this.#takesCores(life)) return [];
    return spread(freeCores(this.#context, state), sumOf(held));
  }

  #takesCores(life: Life): boolean {
    return this.#context.workers.available().some((one) => isSameLife(one, life));
  }

  /** False when there are none, or none any more. */
  #askOthers(core: number): boolean {
    const life = this.#state.coreOf(core);
    if (life === null) return false;
    const { incarnation, worker } = life;
    const key = keyOf(life);
    const asked = this.#asked.get(key) ?? { times: 0, isOpen: false, isGranted: false };
    // What was granted is seen when this manager has folded it in, too.
    if (asked.isGranted) return this.#grants().some((one) => isSameLife(one, life));
    if (asked.isOpen) return true;
    const grants = this.#offer(life);
    if (grants.length === 0 || asked.times >= ASKED_MAX) return false;
    this.#asked.set(key, asked);
    asked.times++;
    asked.isOpen = true;
    const entry = { kind: "regrant", job: this.#job, lost: worker, incarnation, grants } as const;
    const { datacenterGroup } = this.#context;
    const data = encodeDatacenterEntry(entry);
    this.#context.propose(datacenterGroup, this.#context.newEventId(), data, (proposed) => {
      asked.isOpen = false;
      asked.isGranted = proposed.kind === "committed" && proposed.outcome !== "rejected";
      this.look();
    });
    return true;
  }
}

function isSameLife(one: Life, other: Life): boolean {
  return one.worker === other.worker && one.incarnation === other.incarnation;
}

function sumOf(grants: readonly Grant[]): number {
  return grants.reduce((sum, { cores }) => sum + cores, 0);
}
