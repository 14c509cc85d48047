/** The workers that this manager hears, and since when it does not. */

import type { NodeView, WorkerHeartbeat } from "../messages.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";

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

interface Known {
  heartbeat: WorkerHeartbeat;
  heardAt: number;
  lost: boolean;
  /** When it ended its connection without having said anything since. */
  closedAt: number | null;
}

export class WorkerTable {
  readonly #timeoutMs: number;
  readonly #lostMs: number;
  readonly #rules: ManagerRules;
  readonly #workers = new Map<string, Known>();
  #firstHeardAt: number | null = null;
  #lateMs = 0;
  #lateUntil = 0;

  constructor(
    config: { readonly workerTimeoutMs: number; readonly lostWorkerMs: number },
    rules: ManagerRules = MANAGER_RULES,
  ) {
    this.#rules = rules;
    this.#timeoutMs = config.workerTimeoutMs;
    this.#lostMs = config.lostWorkerMs;
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

  /** True when it is new, has started again, or was lost. */
  onHeartbeat(heartbeat: WorkerHeartbeat, now: number): boolean {
    const { incarnation, worker } = heartbeat;
    const known = this.#workers.get(worker);
    this.#firstHeardAt ??= now;
    if (known !== undefined && incarnation < known.heartbeat.incarnation) return false;
    if (known === undefined && this.#workers.size >= WORKERS_MAX) return false;
    const isNew = known === undefined || known.lost || incarnation > known.heartbeat.incarnation;
    this.#workers.set(worker, { heartbeat, heardAt: now, lost: false, closedAt: null });
    return isNew;
  }

  /** Any other word of it is a sign of life, too. */
  onHeard(worker: string, incarnation: number, now: number): void {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation !== incarnation) return;
    known.heardAt = now;
    known.closedAt = null;
  }

  /** Its end of the connection was closed: most likely its process has ended. */
  onClosed(worker: string, now: number): void {
    const known = this.#workers.get(worker);
    if (known !== undefined) known.closedAt = now;
  }

  /** Since when this life of it is over; null: it may live, heard or not. */
  overAt({ incarnation, worker }: { worker: string; incarnation: number }): number | null {
    const known = this.#workers.get(worker);
    if (known === undefined || known.heartbeat.incarnation < incarnation) return null;
    return known.heartbeat.incarnation > incarnation ? known.heardAt : known.closedAt;
  }

  /** Those that have been silent for too long since the last call. Those that were lost long ago are forgotten. */
  takeLost(now: number): readonly WorkerHeartbeat[] {
    const lost: WorkerHeartbeat[] = [];
    if (!this.#rules.silenceNoticed) return lost;
    for (const [worker, known] of this.#workers) {
      if (known.lost && now - known.heardAt > this.#lostMs) this.#workers.delete(worker);
      if (known.lost || now - known.heardAt < this.#silenceMs) continue;
      known.lost = true;
      lost.push(known.heartbeat);
    }
    return lost;
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    if (!this.#rules.silenceNoticed) return null;
    for (const { heardAt, lost } of this.#workers.values())
      if (!lost) at = Math.min(at, heardAt + this.#silenceMs);
    return at === Number.POSITIVE_INFINITY ? null : at;
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

  /** Those that may be given more. */
  available(): readonly WorkerHeartbeat[] {
    return [...this.#workers.values()]
      .filter(({ heartbeat, lost }) => !lost && !heartbeat.draining)
      .map(({ heartbeat }) => heartbeat);
  }

  views(
    usedCores: (worker: string, incarnation: number) => number,
  ): readonly Omit<NodeView, "datacenter" | "leads">[] {
    return [...this.#workers.values()].map(({ heartbeat, lost }) => {
      const { cores, draining, incarnation, version, worker } = heartbeat;
      const status = lost ? "lost" : draining ? "draining" : "alive";
      const coresUsed = lost ? 0 : usedCores(worker, incarnation);
      return { name: worker, role: "worker", incarnation, version, status, cores, coresUsed };
    });
  }
}
