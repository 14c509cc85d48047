/**
 * How the managers of one datacenter are, as this gate sees them, and what becomes of new work for each: whether it
 * answers, whether it takes jobs, and whether jobs that could begin do. (AD-19.14 to AD-19.18)
 *
 *     route         asked like any other
 *     investigate   asked where no other is to be routed to
 *     drain         given no new jobs; asked about those that it has
 *     evict         asked nothing but whether it is there, until it answers
 *
 * When more than half of three or more fail at once this gate itself is more likely to be cut off, and evicts none.
 */

import type { ManagerHealth } from "../gate-messages.ts";
import type { HealthDecision } from "../overload/health.ts";
import { NodeWatch, type NodeWatchView, WATCH_MS } from "../overload/node-watch.ts";

export interface ManagerWatchView extends Omit<NodeWatchView, "name"> {
  readonly manager: string;
}

export class ManagerWatch {
  readonly #nodes = new NodeWatch();
  /** When each was asked something last: one that nobody has asked for an interval is. */
  readonly #askedAt = new Map<string, number>();

  get evicted(): number {
    return this.#nodes.evicted;
  }

  get held(): number {
    return this.#nodes.held;
  }

  /** Connected again, it is judged anew. */
  up(manager: string, now: number): void {
    this.#nodes.add(manager, now);
    this.#askedAt.set(manager, Number.NEGATIVE_INFINITY);
  }

  down(manager: string): void {
    this.#nodes.remove(manager);
    this.#askedAt.delete(manager);
  }

  /** It was asked something. */
  asked(manager: string, now: number): void {
    if (this.#askedAt.has(manager)) this.#askedAt.set(manager, now);
  }

  missed(manager: string): void {
    this.#nodes.missed(manager);
  }

  /** `told`: what it says of itself, in an answer that says it. */
  heard(
    manager: string,
    told: { readonly health: ManagerHealth; readonly workers: number } | null,
    now: number,
  ): void {
    if (told === null) {
      this.#nodes.heard(manager, now);
      return;
    }
    const { accepted, accepting, dispatchable, dispatched, hasQuorum } = told.health;
    const ready = hasQuorum && accepting && told.workers > 0;
    const work = { taken: accepted, done: dispatched, open: dispatchable };
    this.#nodes.report(manager, ready, work, now);
  }

  /** Those that are to be asked whether they are there: nobody has heard of them for long. */
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

  /** The datacenter is not well: most of them take no jobs, or one stands still. (AD-19.18) */
  isDegraded(now: number): boolean {
    const signals = this.#nodes.signals(now);
    const unready = signals.filter(({ ready }) => !ready).length;
    return unready > signals.length / 2 || signals.some(({ progress }) => progress === "stuck");
  }

  views(now: number): readonly ManagerWatchView[] {
    return this.#nodes.views(now).map(({ name, ...view }) => ({ manager: name, ...view }));
  }
}
