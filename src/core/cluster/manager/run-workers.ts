/**
 * The workers of a job as its leader sees them: which core is where, who has heard of the leader, and what goes
 * to whom. A core that the log calls lost is given back wherever it still runs: a worker that was only silent
 * may not go on loading beside whoever makes up for it. (T1, T4)
 */

import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { Announced, Order, Refusal, RunningCore, Submission, Taken } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { keyOf, type Life, OrderRows } from "./order-rows.ts";
import type { RunCore } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";

/** While it waits for workers it looks so often: a manager that does not was stopped, and heard nobody. */
const GATHER_LOOK_MS = 500;

interface WorkersListener {
  /** Somebody has heard of this leader. */
  onAnnounced(): void;
  onRefused(life: Life, refusal: Refusal): void;
  /** It opens its cores anew: what it had to tell before, so many events, is of processes that are gone. */
  onOpenedAnew(life: Life, events: number): void;
}

type Open = Extract<Order, { kind: "open" }>;

export class RunWorkers {
  /** When it is looked again who is heard; it stays where it is while other things happen. */
  gatherAt = 0;
  readonly #context: ManagerContext;
  readonly #state: RunState;
  readonly #rows: OrderRows;
  /** Cores that workers said to have when they heard of this leader, with what they last were given. */
  readonly #found = new Map<number, number | null>();
  /** How many events each life had when it heard of this leader. */
  readonly #toHear = new Map<string, { readonly life: Life; readonly events: number }>();
  /** By life: what is opened when it has given back what it had; null: that is not known yet. */
  readonly #anew = new Map<string, Open | null>();
  /** Cores whose loss is on its way into the log. */
  readonly #losing = new Set<number>();
  /** Lost cores that their workers have given back since, and when. */
  readonly #givenBack = new Map<number, number>();

  constructor(
    job: string,
    view: number,
    state: RunState,
    context: ManagerContext,
    listener: WorkersListener,
  ) {
    this.#state = state;
    this.#context = context;
    this.#rows = new OrderRows(job, view, context, {
      onAnnounced: (life, { cores, events }) => {
        this.#onAnnounced(life, cores);
        this.#toHear.set(keyOf(life), { life, events });
        listener.onAnnounced();
      },
      onAnnouncedAgain: (life, { events }) => {
        if (this.#openGivenBack(life)) listener.onOpenedAnew(life, events);
      },
      onRefused: (life, refused) => listener.onRefused(life, refused),
    });
  }

  get allAnnounced(): boolean {
    return this.#rows.allAnnounced;
  }

  get isIdle(): boolean {
    return this.#rows.isIdle;
  }

  nextDeadline(): number | null {
    return this.#rows.nextDeadline();
  }

  send(): void {
    this.#rows.send();
  }

  /** A word about the job that answers nothing. */
  heard(life: Life): void {
    this.#rows.heard(life);
  }

  /** The cores at workers that live, and why they are taken from them: they say nothing, or stand still. */
  failedCores(): readonly { readonly core: number; readonly what: string }[] {
    const { workers } = this.#context;
    return this.cores().flatMap(({ core, incarnation, worker }) => {
      const life = { worker, incarnation };
      if (workers.isEvicted(worker, incarnation))
        return [{ core, what: `worker ${worker} stands still with core ${core}` }];
      if (!this.#lives(life) || !this.#rows.isSilent(life) || workers.isHeld(worker)) return [];
      return [{ core, what: `worker ${worker} has core ${core} and says nothing about this job` }];
    });
  }

  /** Its worker stands still as a whole, and has until its deadline: a silent core there has as long. */
  isAwaited(core: number): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#context.workers.isAwaited(life.worker, life.incarnation);
  }

  /** Whether it may be given cores of this job. */
  isAtWork(life: Life): boolean {
    return this.#lives(life) && !this.#rows.isSilent(life);
  }

  onAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    return this.#rows.onAnswer(request, answer);
  }

  /**
   * True when every worker that the job has is heard, or would have been; those that are not hear of us when they
   * come back. Else it is asked again at `gatherAt`.
   */
  gather(): boolean {
    const lives = [...this.#state.grants, ...this.#state.cores];
    for (const life of lives) this.#rows.open(life);
    this.#rows.send();
    const { heardAllAt, now } = this.#context;
    this.gatherAt = now + GATHER_LOOK_MS;
    return now >= heardAllAt || lives.every((life) => this.#lives(life));
  }

  #lives({ incarnation, worker }: Life): boolean {
    return this.#context.workers.isAlive(worker, incarnation);
  }

  #onAnnounced(life: Life, cores: readonly RunningCore[]): void {
    for (const { core, token } of cores) {
      if (this.isAt(core, life) && !this.#state.lostCores.has(core)) this.#found.set(core, token);
      else if (this.#context.rules.lostReleased)
        this.#rows.push(life, { kind: "release", cores: [core] });
    }
  }

  lifeOf(core: number): Life | null {
    return this.#state.coreOf(core);
  }

  /** All that workers had to tell when they heard of this leader is here, but for those that are gone. */
  isHeardOut(heard: (life: Life) => number): boolean {
    return [...this.#toHear.values()].every(
      ({ events, life }) => heard(life) >= events || !this.#lives(life),
    );
  }

  isAt(core: number, { incarnation, worker }: Life): boolean {
    const life = this.lifeOf(core);
    return life?.worker === worker && life.incarnation === incarnation;
  }

  /** Whether the worker that has it is heard. */
  isAlive(core: number): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#lives(life);
  }

  /** The cores that the job still has. */
  cores(): readonly RunCore[] {
    return this.#state.cores.filter(({ core }) => !this.#state.lostCores.has(core));
  }

  /** Those that were not lost before its executions began. */
  coresAtStart(): readonly RunCore[] {
    const { cores, history } = this.#state;
    const before = history.slice(
      0,
      history.findIndex(({ kind }) => kind === "start"),
    );
    const lost = new Set(before.flatMap((one) => (one.kind === "coreLost" ? [one.core] : [])));
    return cores.filter(({ core, joins }) => joins === undefined && !lost.has(core));
  }

  /**
   * Those that their workers do not have any more, or have under an attempt that is none of the log's. A worker may
   * have said what it has, and be gone since.
   */
  gone(): readonly RunCore[] {
    const tokens = new Set(this.#state.attempts.map(({ core, token }) => `${core} ${token}`));
    return this.cores().filter(({ core }) => {
      const token = this.#found.get(core);
      if (token === undefined || !this.isAlive(core)) return true;
      return token !== null && !tokens.has(`${core} ${token}`);
    });
  }

  /** True once for each core, and not when it is lost already. */
  mayLose(core: number): boolean {
    if (this.#losing.has(core) || this.#state.lostCores.has(core)) return false;
    this.#losing.add(core);
    return true;
  }

  /** A worker that was only silent goes on with the load of a lost core until it hears of it. */
  noteOver(machine: RunMachine | null, newsAt: (life: Life) => number | null): void {
    for (const core of this.#state.lostCores) machine?.coreOver(core, this.#overAt(core, newsAt));
  }

  /** Since when a lost core can make no more load; null: its worker may live, and has not given it back. */
  #overAt(core: number, newsAt: (life: Life) => number | null): number | null {
    const life = this.lifeOf(core);
    if (life === null) return null;
    if (!this.#givenBack.has(core) && this.#rows.hasTakenAll(life))
      this.#givenBack.set(core, this.#context.now);
    return this.#givenBack.get(core) ?? this.#context.workers.overAt(life, newsAt(life));
  }

  /** False when its worker does not take orders any more. */
  order(core: number, order: Order): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#rows.push(life, order);
  }

  openCores(cores: readonly RunCore[], { entry, files, overrides }: Submission): void {
    for (const [life, own] of byLife(cores)) {
      const waiting = this.#anew.get(keyOf(life))?.cores ?? [];
      const order: Open = { kind: "open", cores: [...waiting, ...own], entry, files, overrides };
      this.#rows.open(life);
      if (this.opensAnew(life)) this.#anew.set(keyOf(life), order);
      else this.#rows.push(life, order);
    }
  }

  /**
   * Every core goes back before it is opened once more. A process that is gone since may have said that it has
   * loaded the job, or was lost: what is told until then is not of the one that follows it under the same number.
   */
  giveBackFirst(): void {
    this.releaseAll();
    for (const [life] of byLife(this.#state.cores)) {
      this.#anew.set(keyOf(life), null);
      this.#rows.announceAgain(life);
    }
  }

  /** It has not given back yet what it had. */
  opensAnew(life: Life): boolean {
    return this.#anew.has(keyOf(life));
  }

  /** Cores that were lost meanwhile stay closed. False when nothing is opened anew any more. */
  #openGivenBack(life: Life): boolean {
    const order = this.#anew.get(keyOf(life));
    this.#anew.delete(keyOf(life));
    const cores = order?.cores.filter((core) => !this.#state.lostCores.has(core)) ?? [];
    if (order != null && cores.length > 0) this.#rows.push(life, { ...order, cores });
    return order !== undefined;
  }

  release(core: number): void {
    if (!this.#context.rules.lostReleased) return;
    this.order(core, { kind: "release", cores: [core] });
  }

  /** Every core that the job ever had, wherever it was. */
  releaseAll(): void {
    this.#anew.clear();
    for (const [life, cores] of byLife(this.#state.cores))
      this.#rows.push(life, { kind: "release", cores });
  }
}

function byLife(cores: readonly RunCore[]): readonly (readonly [Life, readonly number[]])[] {
  const lives = new Map<string, readonly [Life, number[]]>();
  for (const { core, incarnation, worker } of cores) {
    const key = keyOf({ worker, incarnation });
    const known = lives.get(key);
    if (known === undefined) lives.set(key, [{ worker, incarnation }, [core]]);
    else known[1].push(core);
  }
  return [...lives.values()];
}
