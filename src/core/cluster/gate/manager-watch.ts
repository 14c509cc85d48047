/**
 * Health of the managers of one datacenter, as seen by this gate, and the decision about new work for each: whether it
 * responds, accepts jobs, and starts jobs that could start. (AD-19.14 to AD-19.18)
 *
 *     route         asked in turn
 *     investigate   asked if no other manager is healthy
 *     drain         gets no new jobs; asked about those it has
 *     evict         only probed, until it answers
 *
 * If more than half of three or more fail at once, this gate itself is probably cut off, and evicts none.
 */

import type { ManagerHealth } from "../gate-messages.ts";
import type { HealthDecision } from "../overload/health.ts";
import { NodeWatch, type NodeWatchView, WATCH_MS } from "../overload/node-watch.ts";

export interface ManagerWatchView extends Omit<NodeWatchView, "name"> {
  readonly manager: string;
}

export class ManagerWatch {
  readonly #nodes = new NodeWatch();
  /** Time of the last request to each manager; idle ones are probed after an interval. */
  readonly #askedAt = new Map<string, number>();

  get evicted(): number {
    return this.#nodes.evicted;
  }

  get held(): number {
    return this.#nodes.held;
  }

  /** A reconnected manager is evaluated afresh. */
  up(manager: string, now: number): void {
    this.#nodes.add(manager, now);
    this.#askedAt.set(manager, Number.NEGATIVE_INFINITY);
  }

  down(manager: string): void {
    this.#nodes.remove(manager);
    this.#askedAt.delete(manager);
  }

  /** Records a request to a manager. */
  asked(manager: string, now: number): void {
    if (this.#askedAt.has(manager)) this.#askedAt.set(manager, now);
  }

  missed(manager: string): void {
    this.#nodes.missed(manager);
  }

  /** `report`: health in the answer, if it has one. */
  heard(
    manager: string,
    report: { readonly health: ManagerHealth; readonly workers: number } | null,
    now: number,
  ): void {
    if (report === null) {
      this.#nodes.heard(manager, now);
      return;
    }
    const { accepted, accepting, dispatchable, dispatched, hasQuorum } = report.health;
    const ready = hasQuorum && accepting && report.workers > 0;
    const work = { taken: accepted, done: dispatched, open: dispatchable };
    this.#nodes.report(manager, ready, work, now);
  }

  /** Managers to probe, because they were not asked for an interval. */
  due(now: number): readonly string[] {
    return [...this.#askedAt].filter(([, at]) => now - at >= WATCH_MS).map(([name]) => name);
  }

  nextDeadline(): number {
    const times = [...this.#askedAt.values()].map((at) => at + WATCH_MS);
    return Math.min(Number.POSITIVE_INFINITY, ...times);
  }

  decision(manager: string, now: number): HealthDecision {
    return this.#nodes.decision(manager, now);
  }

  /** The datacenter is degraded: most managers accept no jobs, or one is stuck. (AD-19.18) */
  isDegraded(now: number): boolean {
    const signals = this.#nodes.signals(now);
    const unready = signals.filter(({ ready }) => !ready).length;
    return unready > signals.length / 2 || signals.some(({ progress }) => progress === "stuck");
  }

  views(now: number): readonly ManagerWatchView[] {
    return this.#nodes.views(now).map(({ name, ...view }) => ({ manager: name, ...view }));
  }
}
