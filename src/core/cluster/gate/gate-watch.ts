/**
 * Health of all gates from the view of one: whether each responds, can forward jobs to datacenters, and does so.
 * (AD-19.20 to AD-19.26)
 *
 *     route         leads new jobs, and is offered to clients that are refused here
 *     investigate   leads new jobs if no other gate is healthy
 *     drain         the same, and gets no new clients; keeps the jobs it leads
 *     evict         treated as absent until it answers
 *
 * A gate in another state than `route` does not stand for leadership of a job while another gate can. (AD-19.26)
 */

import type { GateHealth } from "../gate-messages.ts";
import type { HealthDecision } from "../overload/health.ts";
import { NodeWatch, type NodeWatchView } from "../overload/node-watch.ts";

export class GateWatch {
  readonly #self: string;
  readonly #peers = new NodeWatch();
  /** Evaluates itself by the same rules, but alone: no other gate can fail with it. */
  readonly #own = new NodeWatch();
  /** Last report of each gate. */
  readonly #reports = new Map<string, GateHealth>();
  readonly #draining = new Set<string>();

  constructor(self: string, now: number) {
    this.#self = self;
    this.#own.add(self, now, true);
  }

  get evicted(): number {
    return this.#peers.evicted;
  }

  get held(): number {
    return this.#peers.held;
  }

  /** A reconnected gate is evaluated afresh; a failed connection counts as an unanswered request. */
  onPeer(peer: string, up: boolean, now: number): void {
    if (up || !this.#peers.has(peer)) {
      this.#reports.delete(peer);
      this.#peers.add(peer, now, true);
    }
    if (!up) this.#peers.missed(peer);
    this.#peers.mark(peer, this.#isReady(peer));
  }

  onDrains(gate: string, drains: boolean): void {
    if (drains) this.#draining.add(gate);
    else this.#draining.delete(gate);
    this.#watchOf(gate).mark(gate, this.#isReady(gate));
  }

  onHealth(gate: string, health: GateHealth, now: number): void {
    const { forwardable, forwarded } = health;
    // The peer may reach us before we reach it.
    if (gate !== this.#self && !this.#peers.has(gate)) this.#peers.add(gate, now);
    this.#reports.set(gate, health);
    const work = { taken: forwarded, done: forwarded, open: forwardable };
    this.#watchOf(gate).report(gate, this.#isReady(gate), work, now);
  }

  #watchOf(gate: string): NodeWatch {
    return gate === this.#self ? this.#own : this.#peers;
  }

  /** A gate without a report counts as ready. (AD-19.20) */
  #isReady(gate: string): boolean {
    const report = this.#reports.get(gate);
    if (this.#draining.has(gate)) return false;
    return report === undefined || isReady(report);
  }

  decision(gate: string, now: number): HealthDecision {
    return this.#watchOf(gate).decision(gate, now);
  }

  /** All known gates, this one first. */
  views(now: number): readonly NodeWatchView[] {
    return [...this.#own.views(now), ...this.#peers.views(now)];
  }
}

export function isReady({ datacenters, hasDatacenter, pressure }: GateHealth): boolean {
  const isPressed = pressure === "stressed" || pressure === "overloaded";
  return hasDatacenter && datacenters > 0 && !isPressed;
}
