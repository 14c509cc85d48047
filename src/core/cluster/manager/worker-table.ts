/**
 * Workers known to this manager, since when each is silent, and whether their work advances. When more than half of
 * them fail at once, this manager itself is more likely to be cut off: it gives up none that only stands still, and
 * waits longer for silent ones. (AD-19.31, P5)
 */

import type { NodeView, WorkerHeartbeat } from "../messages.ts";
import {
  decisionOf,
  type HealthDecision,
  type HealthSignals,
  isSystemic,
  LIVE_MS,
  labelOf,
} from "../overload/health.ts";
import { WorkerProgress } from "../overload/worker-progress.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";
import type { ManagerConfig } from "./types.ts";

/** Workers that are remembered, including lost ones. */
const WORKERS_MAX = 10_000;
/**
 * Timeout extension per unit of own lateness: a manager that is late to its timers is also late to read messages of
 * workers. With one round over all connections between two timers, a message waits for at most two such rounds.
 */
const LATE_FACTOR = 4;
/** How long lateness is remembered. */
const LATE_FOR_MS = 10_000;
/** Maximum extension of the worker timeout. */
const LATE_MS_MAX = 27_000;
/** Queue fill from which other workers are preferred. (BP-4) */
const NEAR_LIMIT = 0.9;
/** Decisions under which a worker may be given more. */
const OPEN: readonly HealthDecision[] = ["route", "investigate"];
const HELD_CHECK_MS = 1_000;
/** A terminating process closes its connection mid-stream; a cut network does it later than this. */
const SILENT_MS_MAX = 1_500;
/** When most workers have recovered, the others may have too, and not reported yet. */
const HELD_AFTER_MS = 2_000;

interface Known {
  heartbeat: WorkerHeartbeat;
  /** When this incarnation was first seen. */
  readonly bornAt: number;
  /** The incarnation seen before this one; null: none. */
  readonly replaces: number | null;
  lastSeenAt: number;
  lost: boolean;
  /** When it closed its connection without any message since. */
  closedAt: number | null;
  readonly progress: WorkerProgress;
  /** Given up and without progress since: it gets no work. */
  isEvicted: boolean;
  /** Why it would have been given up if it were not one of many; null: it would not. */
  held: FailedWorker["cause"] | null;
}

/** A worker that is given up, or would be. */
interface FailedWorker {
  readonly worker: string;
  readonly incarnation: number;
  readonly cause: "silent" | "stuck";
}

export class WorkerTable {
  readonly #timeoutMs: number;
  readonly #lostMs: number;
  readonly #queuedPerCoreMax: number;
  readonly #rules: ManagerRules;
  readonly #workers = new Map<string, Known>();
  #firstSeenAt: number | null = null;
  #lateMs = 0;
  #lateUntil = 0;
  /** When retained workers are checked again. */
  #checkAt = Number.POSITIVE_INFINITY;
  /** When more than half were last seen to fail. */
  #systemicAt = Number.NEGATIVE_INFINITY;

  constructor(
    config: Pick<ManagerConfig, "workerTimeoutMs" | "lostWorkerMs" | "queuedPerCoreMax">,
    rules: ManagerRules = MANAGER_RULES,
  ) {
    this.#rules = rules;
    this.#timeoutMs = config.workerTimeoutMs;
    this.#lostMs = config.lostWorkerMs;
    this.#queuedPerCoreMax = config.queuedPerCoreMax;
  }

  /** When the first worker was seen at all; null before. */
  get firstSeenAt(): number | null {
    return this.#firstSeenAt;
  }

  /** Records the lateness of this manager. */
  onLate(lagMs: number, now: number): void {
    const lateMs = Math.min(LATE_MS_MAX, LATE_FACTOR * lagMs);
    if (lateMs < this.#lateMs && now < this.#lateUntil) return;
    this.#lateMs = lateMs;
    this.#lateUntil = now + LATE_FOR_MS;
  }

  get #silenceMs(): number {
    return this.#timeoutMs + (this.#rules.latenessAllowed ? this.#lateMs : 0);
  }

  /**
   * "new": it is new, has restarted, or was lost. A different incarnation is a different process, whichever number is
   * higher: a worker whose data directory was emptied counts from the beginning.
   */
  onHeartbeat(heartbeat: WorkerHeartbeat, now: number): "new" | "known" | "full" {
    const { incarnation, worker } = heartbeat;
    const known = this.#workers.get(worker);
    this.#firstSeenAt ??= now;
    if (known === undefined && this.#workers.size >= WORKERS_MAX) return "full";
    const isSame = known !== undefined && known.heartbeat.incarnation === incarnation;
    const isNew = !isSame || known.lost;
    const progress = isSame ? known.progress : new WorkerProgress(now);
    const isEvicted = isSame && known.isEvicted;
    const held = isSame && known.held === "stuck" ? known.held : null;
    const bornAt = isSame ? known.bornAt : now;
    const replaces = isSame ? known.replaces : (known?.heartbeat.incarnation ?? null);
    const kept = { bornAt, replaces, progress, isEvicted, held };
    this.#workers.set(worker, { heartbeat, lastSeenAt: now, lost: false, closedAt: null, ...kept });
    return isNew ? "new" : "known";
  }

  /** The incarnation before the present one; null: none was seen. */
  replacedBy(worker: string): number | null {
    return this.#workers.get(worker)?.replaces ?? null;
  }

  /** Records the worker's progress; true when its rating changed. */
  onWork({ advance = 0, running = 0, worker }: WorkerHeartbeat, now: number): boolean {
    const known = this.#workers.get(worker);
    if (known === undefined) return false;
    const isChanged = known.progress.record({ running, advance }, now);
    if (!known.progress.isStuck) {
      known.isEvicted = false;
      known.held = null;
    }
    return isChanged;
  }

  /** Null: it is not known, or that incarnation terminated. */
  progressOf(worker: string, incarnation: number): WorkerProgress | null {
    const known = this.#workers.get(worker);
    return known?.heartbeat.incarnation === incarnation ? known.progress : null;
  }

  /** Any message from the worker counts as a heartbeat. */
  onHeard(worker: string, incarnation: number, now: number): void {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation !== incarnation) return;
    known.lastSeenAt = now;
    known.closedAt = null;
  }

  /** Records that the connection was closed: most likely the process has terminated. */
  onClosed(worker: string, now: number): void {
    const known = this.#workers.get(worker);
    if (known !== undefined) known.closedAt = now;
  }

  /**
   * When this incarnation terminated; null: it may be alive, silent or not. `newsAt`: when it last reported anything
   * new. A worker that only repeats itself gets no answers: its connection breaks where a network is cut one way.
   */
  overAt(
    { incarnation, worker }: { worker: string; incarnation: number },
    newsAt: number | null = null,
  ): number | null {
    const known = this.#workers.get(worker);
    if (known === undefined) return null;
    if (known.replaces === incarnation || known.heartbeat.incarnation > incarnation)
      return known.bornAt;
    if (known.heartbeat.incarnation < incarnation) return null;
    const lastAt = Math.min(known.lastSeenAt, newsAt ?? known.lastSeenAt);
    const isSudden = known.closedAt !== null && known.closedAt - lastAt < SILENT_MS_MAX;
    return isSudden ? known.closedAt : null;
  }

  /**
   * Returns workers that were silent for too long, or stood still beyond their deadline, since the last call, and those
   * retained instead. Forgets workers lost long ago.
   */
  takeFailed(now: number): {
    readonly lost: readonly FailedWorker[];
    readonly held: readonly FailedWorker[];
  } {
    const lost: FailedWorker[] = [];
    const held: FailedWorker[] = [];
    for (const [worker, known] of this.#workers)
      if (known.lost && now - known.lastSeenAt > this.#lostMs) this.#workers.delete(worker);
    if (this.#isSystemic(now)) this.#systemicAt = now;
    const isSystemic = this.#rules.massFailureHeld && now - this.#systemicAt <= HELD_AFTER_MS;
    this.#checkAt = Number.POSITIVE_INFINITY;
    for (const known of this.#workers.values()) {
      const cause = this.#failureOf(known, now);
      if (cause === null) continue;
      const { incarnation, worker } = known.heartbeat;
      if (isSystemic && this.#mayHold(known, cause, now)) {
        if (known.held !== cause) held.push({ worker, incarnation, cause });
        known.held = cause;
        this.#checkAt = now + HELD_CHECK_MS;
        continue;
      }
      known.held = null;
      if (cause === "silent") known.lost = true;
      else known.isEvicted = true;
      lost.push({ worker, incarnation, cause });
    }
    return { lost, held };
  }

  #failureOf(known: Known, now: number): FailedWorker["cause"] | null {
    if (known.lost) return null;
    if (this.#isSilent(known, now)) return this.#rules.silenceNoticed ? "silent" : null;
    return !known.isEvicted && known.progress.isOverdue(now) ? "stuck" : null;
  }

  #isSilent({ lastSeenAt }: Known, now: number): boolean {
    return now - lastSeenAt >= this.#silenceMs;
  }

  /** Workers already given up do not count. (AD-19.32) */
  #isSystemic(now: number): boolean {
    const tracked = [...this.#workers.values()].filter(
      ({ isEvicted, lost }) => !lost && !isEvicted,
    );
    const failing = tracked.filter((one) => this.#isSilent(one, now) || one.progress.isStuck);
    return isSystemic(failing.length, tracked.length);
  }

  /** A worker that closed its connection has terminated itself; for the others the wait is bounded. */
  #mayHold({ closedAt, lastSeenAt }: Known, cause: FailedWorker["cause"], now: number): boolean {
    return cause === "stuck" || (closedAt === null && now - lastSeenAt < LIVE_MS);
  }

  nextDeadline(): number | null {
    let at = this.#checkAt;
    for (const { lastSeenAt, held, isEvicted, lost, progress } of this.#workers.values()) {
      if (lost || held !== null) continue;
      if (this.#rules.silenceNoticed) at = Math.min(at, lastSeenAt + this.#silenceMs);
      if (!isEvicted && progress.isStuck) at = Math.min(at, progress.extensions.evictAt() ?? at);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  /** True when it is silent or stands still like most others: nothing is taken from it for that. */
  isHeld(worker: string): boolean {
    return (this.#workers.get(worker)?.held ?? null) !== null;
  }

  /** True when it was granted more time and has not recovered. */
  isExtended(worker: string): boolean {
    const known = this.#workers.get(worker);
    return known !== undefined && !known.lost && known.progress.extensions.count > 0;
  }

  /** True when this incarnation was given up for standing still and has not moved since. */
  isEvicted(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    return known?.isEvicted === true && known.heartbeat.incarnation === incarnation;
  }

  /** True when this incarnation stands still within its deadline, or does so like most others. */
  isAwaited(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation !== incarnation) return false;
    return !known.lost && !known.isEvicted && known.progress.isStuck;
  }

  /** Signals that decide about new work for it. `ready`: it has capacity and accepts work. */
  #signals({ held, isEvicted, lost, progress }: Known, ready: boolean): HealthSignals {
    const live = !lost && held !== "silent";
    return { live, ready, progress: progress.band, isOverdue: isEvicted };
  }

  /** Null: it is not known. */
  decisionOf(worker: string): HealthDecision | null {
    const known = this.#workers.get(worker);
    return known === undefined ? null : this.#decide(known);
  }

  #decide(known: Known): HealthDecision {
    return decisionOf(this.#signals(known, this.#isReady(known.heartbeat)));
  }

  /** True when it accepts work and is not overloaded. (AD-19.11, BP-4, BP-6) */
  #isReady(heartbeat: WorkerHeartbeat): boolean {
    const { accepting = true, draining } = heartbeat;
    return !draining && accepting && this.#fill(heartbeat) < 1;
  }

  /** Share of its queue limit in use. */
  #fill({ cores, queued = 0 }: WorkerHeartbeat): number {
    return queued / (this.#queuedPerCoreMax * Math.max(1, cores));
  }

  /** True when there are workers and each is overloaded: new jobs would only wait. (BP-5) */
  get isFull(): boolean {
    const open = [...this.#workers.values()].filter(
      ({ heartbeat, isEvicted, lost }) => !lost && !isEvicted && !heartbeat.draining,
    );
    return open.length > 0 && open.every(({ heartbeat }) => !this.#isReady(heartbeat));
  }

  /** Whether it may be given more. */
  isOpen(worker: string): boolean {
    const decision = this.decisionOf(worker);
    return decision !== null && OPEN.includes(decision);
  }

  /** Whether this incarnation is alive. */
  isAlive(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    return known !== undefined && !known.lost && known.heartbeat.incarnation === incarnation;
  }

  /** Null: it was never seen, or is forgotten. */
  statusOf(worker: string): "alive" | "lost" | null {
    const known = this.#workers.get(worker);
    return known === undefined ? null : known.lost ? "lost" : "alive";
  }

  forget(worker: string): void {
    this.#workers.delete(worker);
  }

  /** Workers that may be given more; slow ones only when no other has capacity. (AD-19.8) */
  available(): readonly (WorkerHeartbeat & { readonly isSlow: boolean })[] {
    return [...this.#workers.values()].flatMap((known) => {
      const { heartbeat } = known;
      const decision = this.#decide(known);
      if (!OPEN.includes(decision)) return [];
      const isSlow = decision === "investigate" || this.#fill(heartbeat) >= NEAR_LIMIT;
      return [{ ...heartbeat, isSlow }];
    });
  }

  views(
    usedCores: (worker: string, incarnation: number) => number,
  ): readonly Omit<NodeView, "datacenter" | "leads">[] {
    return [...this.#workers.values()].map((known) => {
      const { heartbeat, lost } = known;
      const { cores, draining, incarnation, version, worker } = heartbeat;
      const status = lost ? "lost" : draining ? "draining" : "alive";
      const coresUsed = lost ? 0 : usedCores(worker, incarnation);
      const health = labelOf(this.#signals(known, this.#isReady(heartbeat) && coresUsed < cores));
      const { diskProblem = "", executorUser = "", jobCodeRights = "" } = heartbeat;
      return {
        ...{ name: worker, role: "worker", incarnation, version, status, cores, coresUsed, health },
        ...{ diskProblem, executorUser, jobCodeRights },
      };
    });
  }
}
