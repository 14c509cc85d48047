/**
 * Workers of a job as its leader sees them: where each core is, which workers have acknowledged the leader, and which
 * orders go to whom. A core that the log calls lost is released wherever it still runs: a worker that was only silent
 * must not keep generating load beside its replacement. (T1, T4)
 */

import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { Announced, Order, Refusal, RunningCore, Submission, Taken } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { keyOf, type Life, OrderRows } from "./order-rows.ts";
import type { RunCore } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";

/** Interval of checks while waiting for workers: a manager that misses it was paused and received nothing. */
const GATHER_CHECK_MS = 500;

interface WorkersListener {
  /** Called when a worker has acknowledged this leader. */
  onAnnounced(): void;
  onRefused(life: Life, refusal: Refusal): void;
  /** Called when a worker reopens its cores: its first `events` events belong to processes that are gone. */
  onReopened(life: Life, events: number): void;
}

type Open = Extract<Order, { kind: "open" }>;

export class RunWorkers {
  /** When liveness is checked next; unaffected by other events. */
  gatherAt = 0;
  readonly #context: ManagerContext;
  readonly #state: RunState;
  readonly #rows: OrderRows;
  /** Cores reported by workers in answer to the announcement, with their last token. */
  readonly #found = new Map<number, number | null>();
  /** Number of events of each incarnation when it acknowledged this leader. */
  readonly #eventsDue = new Map<string, { readonly life: Life; readonly events: number }>();
  /** By incarnation: the order to open once the old cores are released; null: not known yet. */
  readonly #reopening = new Map<string, Open | null>();
  /** Cores whose loss is being committed. */
  readonly #losing = new Set<number>();
  /** Lost cores that their workers have released since, and when. */
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
        this.#eventsDue.set(keyOf(life), { life, events });
        listener.onAnnounced();
      },
      onAnnouncedAgain: (life, { events }) => {
        if (this.#reopenReleased(life)) listener.onReopened(life, events);
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

  /** Records a message about the job that answers no request. */
  onMessage(life: Life): void {
    this.#rows.onMessage(life);
  }

  /** Cores on live workers that fail, with the reason: they are silent or stand still. */
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

  /** True when the whole worker stands still and is within its deadline: a silent core there has as long. */
  isAwaited(core: number): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#context.workers.isAwaited(life.worker, life.incarnation);
  }

  /** Whether the incarnation may be given cores of this job. */
  isAtWork(life: Life): boolean {
    return this.#lives(life) && !this.#rows.isSilent(life);
  }

  onAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    return this.#rows.onAnswer(request, answer);
  }

  /**
   * True when every worker of the job is alive, or would have been seen by now; others are notified when they come
   * back. Otherwise checked again at `gatherAt`.
   */
  gather(): boolean {
    const lives = [...this.#state.grants, ...this.#state.cores];
    for (const life of lives) this.#rows.open(life);
    this.#rows.send();
    const { allSeenAt, now } = this.#context;
    this.gatherAt = now + GATHER_CHECK_MS;
    return now >= allSeenAt || lives.every((life) => this.#lives(life));
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

  /** True when all events that live workers had at the announcement have been received. */
  hasAllEvents(accepted: (life: Life) => number): boolean {
    return [...this.#eventsDue.values()].every(
      ({ events, life }) => accepted(life) >= events || !this.#lives(life),
    );
  }

  isAt(core: number, { incarnation, worker }: Life): boolean {
    const life = this.lifeOf(core);
    return life?.worker === worker && life.incarnation === incarnation;
  }

  /** Whether the core's worker is alive. */
  isAlive(core: number): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#lives(life);
  }

  /** Cores that the job still has. */
  cores(): readonly RunCore[] {
    return this.#state.cores.filter(({ core }) => !this.#state.lostCores.has(core));
  }

  /** Cores that were not lost before the executions began. */
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
   * Cores that their workers no longer have, or have under an attempt unknown to the log. A worker may have reported
   * its cores and been lost since.
   */
  gone(): readonly RunCore[] {
    const tokens = new Set(this.#state.attempts.map(({ core, token }) => `${core} ${token}`));
    return this.cores().filter(({ core }) => {
      const token = this.#found.get(core);
      if (token === undefined || !this.isAlive(core)) return true;
      return token !== null && !tokens.has(`${core} ${token}`);
    });
  }

  /** True once for each core, and false when it is lost already. */
  mayLose(core: number): boolean {
    if (this.#losing.has(core) || this.#state.lostCores.has(core)) return false;
    this.#losing.add(core);
    return true;
  }

  /** A silent worker continues the load of a lost core until it is notified of the loss. */
  noteOver(machine: RunMachine | null, newsAt: (life: Life) => number | null): void {
    for (const core of this.#state.lostCores) machine?.coreOver(core, this.#overAt(core, newsAt));
  }

  /** When a lost core stopped generating load; null: its worker may be alive and has not released it. */
  #overAt(core: number, newsAt: (life: Life) => number | null): number | null {
    const life = this.lifeOf(core);
    if (life === null) return null;
    if (!this.#givenBack.has(core) && this.#rows.hasTakenAll(life))
      this.#givenBack.set(core, this.#context.now);
    return this.#givenBack.get(core) ?? this.#context.workers.overAt(life, newsAt(life));
  }

  /** False when its worker no longer accepts orders. */
  order(core: number, order: Order): boolean {
    const life = this.lifeOf(core);
    return life !== null && this.#rows.push(life, order);
  }

  openCores(cores: readonly RunCore[], { entry, files, overrides }: Submission): void {
    for (const [life, own] of byLife(cores)) {
      const waiting = this.#reopening.get(keyOf(life))?.cores ?? [];
      const order: Open = { kind: "open", cores: [...waiting, ...own], entry, files, overrides };
      this.#rows.open(life);
      if (this.isReopening(life)) this.#reopening.set(keyOf(life), order);
      else this.#rows.push(life, order);
    }
  }

  /**
   * Releases every core before it is opened again. A terminated process may have reported that it loaded the job or was
   * lost; events until the release do not belong to its successor of the same number.
   */
  releaseFirst(): void {
    this.releaseAll();
    for (const [life] of byLife(this.#state.cores)) {
      this.#reopening.set(keyOf(life), null);
      this.#rows.announceAgain(life);
    }
  }

  /** True until the incarnation has released its old cores. */
  isReopening(life: Life): boolean {
    return this.#reopening.has(keyOf(life));
  }

  /** Opens released cores again, except those lost meanwhile. False when nothing is left to open. */
  #reopenReleased(life: Life): boolean {
    const order = this.#reopening.get(keyOf(life));
    this.#reopening.delete(keyOf(life));
    const cores = order?.cores.filter((core) => !this.#state.lostCores.has(core)) ?? [];
    if (order != null && cores.length > 0) this.#rows.push(life, { ...order, cores });
    return order !== undefined;
  }

  release(core: number): void {
    if (!this.#context.rules.lostReleased) return;
    this.order(core, { kind: "release", cores: [core] });
  }

  /** Releases every core that the job ever had, on any worker. */
  releaseAll(): void {
    this.#reopening.clear();
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
