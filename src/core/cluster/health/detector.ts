/**
 * Two questions about a node, kept apart: is the machine alive (global), and is it responsive for this
 * job (job). A suspicion of one never implies the other; a global death ends all job suspicions of the
 * node, a job death touches that job only. (AD-30, HFD-1..5, HFD-9, HFD-10, HFD-12)
 *
 * Confirmations change a suspicion's deadline, only ever to an earlier one; no timer is re-armed by
 * gossip, so nothing can starve. A suspicion ends at its deadline, not before. (WHEEL-3, WHEEL-6)
 */

import { assert } from "../../base/assert.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { Incarnation, NodeId } from "../../base/ids.ts";

export interface HierarchicalConfig {
  readonly globalMinMs: number;
  readonly globalMaxMs: number;
  readonly jobMinMs: number;
  readonly jobMaxMs: number;
}

export const HIERARCHICAL_PROFILES = {
  base: { globalMinMs: 5_000, globalMaxMs: 30_000, jobMinMs: 1_000, jobMaxMs: 10_000 },
  manager: { globalMinMs: 10_000, globalMaxMs: 60_000, jobMinMs: 2_000, jobMaxMs: 15_000 },
  gate: { globalMinMs: 30_000, globalMaxMs: 120_000, jobMinMs: 5_000, jobMaxMs: 30_000 },
} as const satisfies Readonly<Record<string, HierarchicalConfig>>;

/** Nodes under suspicion at once. */
export const GLOBAL_SUSPICIONS_MAX = 10_000;
/** Nodes under suspicion for one job. */
export const JOB_SUSPICIONS_MAX = 1_000;
/** Suspicions of both layers. */
export const SUSPICIONS_MAX = 50_000;
export const RECONCILE_EVERY_MS = 5_000;
const CONFIRMATIONS_WANTED = 3;
const LHM_MULTIPLIER_MAX = 3;

export type NodeStatus =
  | "ALIVE"
  | "SUSPECTED_JOB"
  | "DEAD_JOB"
  | "SUSPECTED_GLOBAL"
  | "DEAD_GLOBAL";

export type DetectorEvent =
  | { readonly kind: "globalDeath"; readonly node: NodeId; readonly incarnation: Incarnation }
  | {
      readonly kind: "jobDeath";
      readonly job: string;
      readonly node: NodeId;
      readonly incarnation: Incarnation;
    };

interface Suspicion {
  /** Null for the global layer. */
  readonly job: string | null;
  readonly node: NodeId;
  readonly incarnation: Incarnation;
  readonly since: number;
  readonly accusers: Set<NodeId>;
  readonly minMs: number;
  readonly maxMs: number;
  readonly wanted: number;
  deadline: number;
}

export interface Suppliers {
  readonly memberCount: () => number;
  readonly jobMemberCount: (job: string) => number;
  /** 1 to 3: our own bad health stretches every timeout. */
  readonly healthMultiplier: () => number;
}

export class HierarchicalDetector {
  readonly #config: HierarchicalConfig;
  readonly #suppliers: Suppliers;
  readonly #deadlines = new Deadlines<Suspicion>();
  readonly #global = new Map<NodeId, Suspicion>();
  readonly #globalDead = new Map<NodeId, Incarnation>();
  /** job → node → suspicion. */
  readonly #jobs = new Map<string, Map<NodeId, Suspicion>>();
  readonly #jobDead = new Map<string, Map<NodeId, Incarnation>>();
  #jobCount = 0;
  #reconcileAt: number;
  refusedCount = 0;
  anomalyCount = 0;

  constructor(config: HierarchicalConfig, suppliers: Suppliers, now: number) {
    this.#config = config;
    this.#suppliers = suppliers;
    this.#reconcileAt = now + RECONCILE_EVERY_MS;
  }

  suspectGlobal(node: NodeId, incarnation: Incarnation, from: NodeId, now: number): boolean {
    if (this.#globalDead.has(node)) return false;
    const known = this.#global.get(node);
    if (known !== undefined) return this.confirmGlobal(node, from, now);
    if (this.#global.size >= GLOBAL_SUSPICIONS_MAX) {
      this.refusedCount++;
      return false;
    }
    const { globalMinMs, globalMaxMs } = this.#config;
    const suspicion = this.#open(node, incarnation, from, now, {
      job: null,
      minMs: globalMinMs,
      maxMs: globalMaxMs,
      count: this.#suppliers.memberCount(),
    });
    this.#global.set(node, suspicion);
    return true;
  }

  /** A confirmation changes state only: the deadline may move earlier, never later. (HFD-3) */
  confirmGlobal(node: NodeId, from: NodeId, now: number): boolean {
    const suspicion = this.#global.get(node);
    return suspicion !== undefined && this.#confirm(suspicion, from, now);
  }

  refuteGlobal(node: NodeId, incarnation: Incarnation): boolean {
    const suspicion = this.#global.get(node);
    if (suspicion === undefined || incarnation <= suspicion.incarnation) return false;
    this.#global.delete(node);
    this.#deadlines.delete(suspicion);
    return true;
  }

  /** The node rejoined: alive at both layers, if its incarnation is really higher. */
  clearGlobalDeath(node: NodeId, incarnation: Incarnation): boolean {
    const died = this.#globalDead.get(node);
    if (died === undefined || incarnation <= died) return false;
    this.#globalDead.delete(node);
    for (const dead of this.#jobDead.values()) dead.delete(node);
    return true;
  }

  /** HFD-9: an unresponsive workflow suspects its node for this job, and for nothing else. */
  suspectJob(
    job: string,
    node: NodeId,
    incarnation: Incarnation,
    from: NodeId,
    now: number,
  ): boolean {
    if (this.#globalDead.has(node) || this.#jobDead.get(job)?.has(node) === true) return false;
    const suspicions = this.#jobs.get(job) ?? new Map<NodeId, Suspicion>();
    const known = suspicions.get(node);
    if (known !== undefined) return this.#confirm(known, from, now);
    if (!this.#hasRoom(suspicions)) {
      this.refusedCount++;
      return false;
    }
    const { jobMinMs, jobMaxMs } = this.#config;
    const count = this.#suppliers.jobMemberCount(job);
    const bounds = { job, minMs: jobMinMs, maxMs: jobMaxMs, count };
    suspicions.set(node, this.#open(node, incarnation, from, now, bounds));
    this.#jobs.set(job, suspicions);
    this.#jobCount++;
    return true;
  }

  confirmJob(job: string, node: NodeId, from: NodeId, now: number): boolean {
    const suspicion = this.#jobs.get(job)?.get(node);
    return suspicion !== undefined && this.#confirm(suspicion, from, now);
  }

  refuteJob(job: string, node: NodeId, incarnation: Incarnation): boolean {
    const suspicion = this.#jobs.get(job)?.get(node);
    if (suspicion === undefined || incarnation <= suspicion.incarnation) return false;
    this.#dropJob(job, node);
    return true;
  }

  /**
   * It answered for this job: neither suspected nor dead for it any more, whatever its incarnation. A
   * worker raises that only when membership accuses it, so it could never clear itself of a job's doubt.
   */
  answeredJob(job: string, node: NodeId): boolean {
    const dead = this.#jobDead.get(job);
    const wasDead = dead?.delete(node) === true;
    if (dead?.size === 0) this.#jobDead.delete(job);
    const suspected = this.#jobs.get(job)?.has(node) === true;
    this.#dropJob(job, node);
    return wasDead || suspected;
  }

  /** HFD-10: a finished job's suspicions end without a word; how many there were. */
  clearJob(job: string): number {
    const suspicions = this.#jobs.get(job) ?? new Map<NodeId, Suspicion>();
    for (const suspicion of suspicions.values()) this.#deadlines.delete(suspicion);
    this.#jobs.delete(job);
    this.#jobDead.delete(job);
    this.#jobCount -= suspicions.size;
    return suspicions.size;
  }

  isAliveGlobal(node: NodeId): boolean {
    return !this.#globalDead.has(node);
  }

  isAliveForJob(job: string, node: NodeId): boolean {
    return this.isAliveGlobal(node) && this.#jobDead.get(job)?.has(node) !== true;
  }

  /** The worst of all layers. */
  statusOf(node: NodeId): NodeStatus {
    if (this.#globalDead.has(node)) return "DEAD_GLOBAL";
    if (this.#global.has(node)) return "SUSPECTED_GLOBAL";
    for (const dead of this.#jobDead.values()) if (dead.has(node)) return "DEAD_JOB";
    for (const suspicions of this.#jobs.values()) {
      if (suspicions.has(node)) return "SUSPECTED_JOB";
    }
    return "ALIVE";
  }

  get suspicionCount(): number {
    return this.#global.size + this.#jobCount;
  }

  nextDeadline(): number {
    return Math.min(this.#reconcileAt, this.#deadlines.next() ?? Number.POSITIVE_INFINITY);
  }

  tick(now: number): DetectorEvent[] {
    const events: DetectorEvent[] = [];
    const due = this.#deadlines.takeDue(now);
    // A node that is dead is dead for every job: its job suspicions end without a word. (HFD-2)
    for (const suspicion of due) {
      if (suspicion.job === null) this.#expireGlobal(suspicion, events);
    }
    for (const suspicion of due) {
      if (suspicion.job !== null) this.#expireJob(suspicion.job, suspicion, events);
    }
    if (now >= this.#reconcileAt) this.#reconcile(now);
    return events;
  }

  /** HFD-2: mark, clear the job layer, then tell, in that order. */
  #expireGlobal({ node, incarnation }: Suspicion, events: DetectorEvent[]): void {
    this.#global.delete(node);
    this.#globalDead.set(node, incarnation);
    for (const job of [...this.#jobs.keys()]) this.#dropJob(job, node);
    events.push({ kind: "globalDeath", node, incarnation });
  }

  #expireJob(job: string, suspicion: Suspicion, events: DetectorEvent[]): void {
    const { node, incarnation } = suspicion;
    if (this.#jobs.get(job)?.get(node) !== suspicion) return;
    this.#dropJob(job, node);
    const dead = this.#jobDead.get(job) ?? new Map<NodeId, Incarnation>();
    dead.set(node, incarnation);
    this.#jobDead.set(job, dead);
    events.push({ kind: "jobDeath", job, node, incarnation });
  }

  /** HFD-5: nothing should be left over; what is counts as an anomaly. */
  #reconcile(now: number): void {
    this.#reconcileAt = now + RECONCILE_EVERY_MS;
    for (const [job, suspicions] of this.#jobs) {
      for (const node of [...suspicions.keys()]) {
        if (!this.#globalDead.has(node)) continue;
        this.anomalyCount++;
        this.#dropJob(job, node);
      }
    }
  }

  #dropJob(job: string, node: NodeId): void {
    const suspicions = this.#jobs.get(job);
    const suspicion = suspicions?.get(node);
    if (suspicions === undefined || suspicion === undefined) return;
    suspicions.delete(node);
    this.#deadlines.delete(suspicion);
    this.#jobCount--;
    if (suspicions.size === 0) this.#jobs.delete(job);
  }

  #hasRoom(suspicions: ReadonlyMap<NodeId, Suspicion>): boolean {
    return suspicions.size < JOB_SUSPICIONS_MAX && this.suspicionCount < SUSPICIONS_MAX;
  }

  #open(
    node: NodeId,
    incarnation: Incarnation,
    from: NodeId,
    now: number,
    bounds: Pick<Suspicion, "job" | "minMs" | "maxMs"> & { readonly count: number },
  ): Suspicion {
    const { job, maxMs, count } = bounds;
    const health = Math.min(LHM_MULTIPLIER_MAX, Math.max(1, this.#suppliers.healthMultiplier()));
    const spread = Math.max(1, Math.log10(Math.max(1, count)));
    const suspicion: Suspicion = {
      job,
      node,
      incarnation,
      since: now,
      accusers: new Set([from]),
      minMs: Math.min(maxMs, bounds.minMs * spread) * health,
      maxMs: maxMs * health,
      wanted: Math.min(CONFIRMATIONS_WANTED, count - 2),
      deadline: 0,
    };
    suspicion.deadline = now + timeoutMs(suspicion);
    this.#deadlines.set(suspicion, suspicion.deadline);
    return suspicion;
  }

  #confirm(suspicion: Suspicion, from: NodeId, now: number): boolean {
    if (suspicion.accusers.has(from)) return false;
    suspicion.accusers.add(from);
    const deadline = suspicion.since + timeoutMs(suspicion);
    assert(deadline <= suspicion.deadline, "a confirmation never lengthens a suspicion");
    suspicion.deadline = Math.max(deadline, now);
    this.#deadlines.set(suspicion, suspicion.deadline);
    return true;
  }
}

/** SWIM-11 for the confirmations so far. */
function timeoutMs(suspicion: Suspicion): number {
  const { minMs, maxMs, wanted } = suspicion;
  if (wanted < 1) return minMs;
  const confirmations = Math.min(suspicion.accusers.size - 1, wanted);
  const share = Math.log(confirmations + 1) / Math.log(wanted + 1);
  return Math.max(minMs, maxMs - (maxMs - minMs) * share);
}
