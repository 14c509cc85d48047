/**
 * The workers that this manager hears, since when it does not, and whether their work advances. When more than half
 * of them fail at once, this manager itself is more likely to be cut off: it gives up none that only stands still,
 * and waits longer for those that are silent. (AD-19.31, P5)
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

/** Workers that are remembered, the lost ones included. */
const WORKERS_MAX = 10_000;
/**
 * A manager that comes late to its timers comes late to what workers have said, too: they have so many times its
 * lateness more. With one turn of all connections between two timers, a word waits for two such turns at most.
 */
const LATE_FACTOR = 4;
/** How long lateness is remembered. */
const LATE_FOR_MS = 10_000;
/** Nobody is taken for alive for more than this beyond the silence that is allowed. */
const LATE_MS_MAX = 27_000;
/** Of the queue that a worker may have: from here on the others come first. (BP-4) */
const NEAR_LIMIT = 0.9;
/** Whoever is one of these may be given more. */
const OPEN: readonly HealthDecision[] = ["route", "investigate"];
const HELD_LOOK_MS = 1_000;
/** A process that ends closes its connection in the middle of its words; a network that is cut does it later. */
const SILENT_MS_MAX = 1_500;
/** When most are well again the others may be, too, and have not said so yet. */
const HELD_AFTER_MS = 2_000;

interface Known {
  heartbeat: WorkerHeartbeat;
  /** When this life of it was first heard. */
  readonly bornAt: number;
  /** The incarnation that was heard before this one; null: none. */
  readonly replaces: number | null;
  heardAt: number;
  lost: boolean;
  /** When it ended its connection without having said anything since. */
  closedAt: number | null;
  readonly progress: WorkerProgress;
  /** It was given up, and has not moved since: it gets no work. */
  isEvicted: boolean;
  /** Why it would have been given up if it were not one of many; null: it would not. */
  held: FailedWorker["cause"] | null;
}

/** One that is given up, or would be. */
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
  #firstHeardAt: number | null = null;
  #lateMs = 0;
  #lateUntil = 0;
  /** When those that are held are looked at again. */
  #lookAt = Number.POSITIVE_INFINITY;
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

  /** When the first worker was heard of all; null before. */
  get firstHeardAt(): number | null {
    return this.#firstHeardAt;
  }

  /** How late this manager itself is, measured now and then. */
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
   * "new": it is new, has started again, or was lost. Another incarnation is another process, whichever number is
   * higher: a worker whose data directory was emptied counts from the beginning.
   */
  onHeartbeat(heartbeat: WorkerHeartbeat, now: number): "new" | "known" | "full" {
    const { incarnation, worker } = heartbeat;
    const known = this.#workers.get(worker);
    this.#firstHeardAt ??= now;
    if (known === undefined && this.#workers.size >= WORKERS_MAX) return "full";
    const isSame = known !== undefined && known.heartbeat.incarnation === incarnation;
    const isNew = !isSame || known.lost;
    const progress = isSame ? known.progress : new WorkerProgress(now);
    const isEvicted = isSame && known.isEvicted;
    const held = isSame && known.held === "stuck" ? known.held : null;
    const bornAt = isSame ? known.bornAt : now;
    const replaces = isSame ? known.replaces : (known?.heartbeat.incarnation ?? null);
    const kept = { bornAt, replaces, progress, isEvicted, held };
    this.#workers.set(worker, { heartbeat, heardAt: now, lost: false, closedAt: null, ...kept });
    return isNew ? "new" : "known";
  }

  /** The incarnation before the present one; null: none was heard. */
  replacedBy(worker: string): number | null {
    return this.#workers.get(worker)?.replaces ?? null;
  }

  /** What it says of its work; true when it does so better or worse than before. */
  onWork({ advance = 0, running = 0, worker }: WorkerHeartbeat, now: number): boolean {
    const known = this.#workers.get(worker);
    if (known === undefined) return false;
    const isChanged = known.progress.heard({ running, advance }, now);
    if (!known.progress.isStuck) {
      known.isEvicted = false;
      known.held = null;
    }
    return isChanged;
  }

  /** Null: it is not known, or that life of it is over. */
  progressOf(worker: string, incarnation: number): WorkerProgress | null {
    const known = this.#workers.get(worker);
    return known?.heartbeat.incarnation === incarnation ? known.progress : null;
  }

  /** Any other word of it is a sign of life, too. */
  onHeard(worker: string, incarnation: number, now: number): void {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation !== incarnation) return;
    known.heardAt = now;
    known.closedAt = null;
  }

  /** Its machine has closed the connection: most likely its process has ended. */
  onClosed(worker: string, now: number): void {
    const known = this.#workers.get(worker);
    if (known !== undefined) known.closedAt = now;
  }

  /**
   * Since when this life of it is over; null: it may live, heard or not. `newsAt`: when it last said anything new. Who
   * only repeats itself is not answered: its connection breaks where a network is cut one way.
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
    const lastAt = Math.min(known.heardAt, newsAt ?? known.heardAt);
    const isSudden = known.closedAt !== null && known.closedAt - lastAt < SILENT_MS_MAX;
    return isSudden ? known.closedAt : null;
  }

  /**
   * Those that have been silent for too long, or stood still for longer than they are waited for, since the last
   * call; and those that are held instead. Those that were lost long ago are forgotten.
   */
  takeFailed(now: number): {
    readonly lost: readonly FailedWorker[];
    readonly held: readonly FailedWorker[];
  } {
    const lost: FailedWorker[] = [];
    const held: FailedWorker[] = [];
    for (const [worker, known] of this.#workers)
      if (known.lost && now - known.heardAt > this.#lostMs) this.#workers.delete(worker);
    if (this.#isSystemic(now)) this.#systemicAt = now;
    const isSystemic = this.#rules.massFailureHeld && now - this.#systemicAt <= HELD_AFTER_MS;
    this.#lookAt = Number.POSITIVE_INFINITY;
    for (const known of this.#workers.values()) {
      const cause = this.#failureOf(known, now);
      if (cause === null) continue;
      const { incarnation, worker } = known.heartbeat;
      if (isSystemic && this.#mayHold(known, cause, now)) {
        if (known.held !== cause) held.push({ worker, incarnation, cause });
        known.held = cause;
        this.#lookAt = now + HELD_LOOK_MS;
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

  #isSilent({ heardAt }: Known, now: number): boolean {
    return now - heardAt >= this.#silenceMs;
  }

  /** Those that were given up count no more. (AD-19.32) */
  #isSystemic(now: number): boolean {
    const tracked = [...this.#workers.values()].filter(
      ({ isEvicted, lost }) => !lost && !isEvicted,
    );
    const failing = tracked.filter((one) => this.#isSilent(one, now) || one.progress.isStuck);
    return isSystemic(failing.length, tracked.length);
  }

  /** Who ended its connection is gone itself; for the others the wait has an end. */
  #mayHold({ closedAt, heardAt }: Known, cause: FailedWorker["cause"], now: number): boolean {
    return cause === "stuck" || (closedAt === null && now - heardAt < LIVE_MS);
  }

  nextDeadline(): number | null {
    let at = this.#lookAt;
    for (const { heardAt, held, isEvicted, lost, progress } of this.#workers.values()) {
      if (lost || held !== null) continue;
      if (this.#rules.silenceNoticed) at = Math.min(at, heardAt + this.#silenceMs);
      if (!isEvicted && progress.isStuck) at = Math.min(at, progress.extensions.evictAt() ?? at);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  /** It is silent or stands still like most others: nothing is taken from it for that. */
  isHeld(worker: string): boolean {
    return (this.#workers.get(worker)?.held ?? null) !== null;
  }

  /** It was given more time, and has not recovered. */
  isExtended(worker: string): boolean {
    const known = this.#workers.get(worker);
    return known !== undefined && !known.lost && known.progress.extensions.count > 0;
  }

  /** This life of it stood still for too long, and does. */
  isEvicted(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    return known?.isEvicted === true && known.heartbeat.incarnation === incarnation;
  }

  /** This life of it stands still, and has not done so for too long, or does so like most others. */
  isAwaited(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation !== incarnation) return false;
    return !known.lost && !known.isEvicted && known.progress.isStuck;
  }

  /** What becomes of new work for it. `ready`: it has room and takes work. */
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

  /** Takes work, and has not too much to do with what it has. (AD-19.11, BP-4, BP-6) */
  #isReady(heartbeat: WorkerHeartbeat): boolean {
    const { accepting = true, draining } = heartbeat;
    return !draining && accepting && this.#fill(heartbeat) < 1;
  }

  /** Of the queue that it may have. */
  #fill({ cores, queued = 0 }: WorkerHeartbeat): number {
    return queued / (this.#queuedPerCoreMax * Math.max(1, cores));
  }

  /** There are workers, and each has more to do than it can: what is new would only wait. (BP-5) */
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

  /** Whether this very life of it is heard. */
  isAlive(worker: string, incarnation: number): boolean {
    const known = this.#workers.get(worker);
    return known !== undefined && !known.lost && known.heartbeat.incarnation === incarnation;
  }

  /** Null: it was never heard, or is forgotten. */
  statusOf(worker: string): "alive" | "lost" | null {
    const known = this.#workers.get(worker);
    return known === undefined ? null : known.lost ? "lost" : "alive";
  }

  forget(worker: string): void {
    this.#workers.delete(worker);
  }

  /** Those that may be given more; those that are slow are for when nobody else has room. (AD-19.8) */
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
