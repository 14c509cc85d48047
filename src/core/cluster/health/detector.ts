/**
 * Two questions about a node, kept apart: is the machine alive (global), and is it responsive for this
 * job (job). A suspicion of one never implies the other; a global death ends all job suspicions of the
 * node, a job death touches that job only. (AD-30, HFD-1..5, HFD-9, HFD-10, HFD-12)
 *
 * Confirmations change a suspicion's deadline, only ever to an earlier one; no timer is re-armed by
 * gossip, so nothing can starve. Global suspicions wait in the timing wheel, job suspicions in a heap
 * that is polled at their deadlines.
 */

import { assert } from "../../base/assert.ts";
import type { Incarnation, NodeId } from "../../base/ids.ts";
import { TimingWheel } from "./timing-wheel.ts";

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

export const JOB_SUSPICIONS_MAX = 1_000;
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
  readonly #wheel: TimingWheel;
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
    this.#wheel = new TimingWheel(now);
    this.#reconcileAt = now + RECONCILE_EVERY_MS;
  }

  suspectGlobal(node: NodeId, incarnation: Incarnation, from: NodeId, now: number): boolean {
    if (this.#globalDead.has(node)) return false;
    const known = this.#global.get(node);
    if (known !== undefined) return this.confirmGlobal(node, from, now);
    const { globalMinMs, globalMaxMs } = this.#config;
    const suspicion = this.#open(node, incarnation, from, now, {
      minMs: globalMinMs,
      maxMs: globalMaxMs,
      count: this.#suppliers.memberCount(),
    });
    if (!this.#wheel.set(node, suspicion.deadline)) {
      this.refusedCount++;
      return false;
    }
    this.#global.set(node, suspicion);
    return true;
  }

  /** A confirmation changes state only: the deadline may move earlier, never later. (HFD-3) */
  confirmGlobal(node: NodeId, from: NodeId, now: number): boolean {
    const suspicion = this.#global.get(node);
    if (suspicion === undefined || !this.#confirm(suspicion, from, now)) return false;
    this.#wheel.set(node, suspicion.deadline);
    return true;
  }

  refuteGlobal(node: NodeId, incarnation: Incarnation): boolean {
    const suspicion = this.#global.get(node);
    if (suspicion === undefined || incarnation <= suspicion.incarnation) return false;
    this.#global.delete(node);
    this.#wheel.delete(node);
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
    const bounds = { minMs: jobMinMs, maxMs: jobMaxMs, count };
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

  /** HFD-10: a finished job's suspicions end without a word; how many there were. */
  clearJob(job: string): number {
    const count = this.#jobs.get(job)?.size ?? 0;
    this.#jobs.delete(job);
    this.#jobDead.delete(job);
    this.#jobCount -= count;
    return count;
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

  nextDeadline(): number | null {
    let next = this.#reconcileAt;
    const wheelAt = this.#wheel.nextTickAt();
    if (wheelAt !== null) next = Math.min(next, wheelAt);
    for (const suspicions of this.#jobs.values()) {
      for (const { deadline } of suspicions.values()) next = Math.min(next, deadline);
    }
    return next;
  }

  tick(now: number): DetectorEvent[] {
    const events: DetectorEvent[] = [];
    for (const key of this.#wheel.advance(now)) this.#expireGlobal(key as NodeId, events);
    for (const [job, suspicions] of this.#jobs) {
      for (const suspicion of [...suspicions.values()]) {
        if (suspicion.deadline <= now) this.#expireJob(job, suspicion, events);
      }
    }
    if (now >= this.#reconcileAt) this.#reconcile(now);
    return events;
  }

  /** HFD-2: mark, clear the job layer, then tell, in that order. */
  #expireGlobal(node: NodeId, events: DetectorEvent[]): void {
    const suspicion = this.#global.get(node);
    if (suspicion === undefined) return;
    this.#global.delete(node);
    const { incarnation } = suspicion;
    this.#globalDead.set(node, incarnation);
    for (const job of [...this.#jobs.keys()]) this.#dropJob(job, node);
    events.push({ kind: "globalDeath", node, incarnation });
  }

  #expireJob(job: string, suspicion: Suspicion, events: DetectorEvent[]): void {
    const { node, incarnation } = suspicion;
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
    if (suspicions?.delete(node) !== true) return;
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
    bounds: { readonly minMs: number; readonly maxMs: number; readonly count: number },
  ): Suspicion {
    const { maxMs, count } = bounds;
    const health = Math.min(LHM_MULTIPLIER_MAX, Math.max(1, this.#suppliers.healthMultiplier()));
    const spread = Math.max(1, Math.log10(Math.max(1, count)));
    const suspicion: Suspicion = {
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
    return suspicion;
  }

  #confirm(suspicion: Suspicion, from: NodeId, now: number): boolean {
    if (suspicion.accusers.has(from)) return false;
    suspicion.accusers.add(from);
    const deadline = suspicion.since + timeoutMs(suspicion);
    assert(deadline <= suspicion.deadline, "a confirmation never lengthens a suspicion");
    suspicion.deadline = Math.max(deadline, now);
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
