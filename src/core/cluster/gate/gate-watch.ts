/**
 * The gates, as one of them sees the others and itself: whether each answers, can give jobs to datacenters, and does.
 * (AD-19.20 to AD-19.26)
 *
 *     route         leads new jobs, and is named to clients that are refused here
 *     investigate   leads new jobs where no other is to be routed to
 *     drain         the same, and is given nothing; goes on with what it leads
 *     evict         as if it were not there, until it answers
 *
 * Only one that is routed to stands for the lead of a job as long as another may. (AD-19.26)
 */

import type { GateHealth } from "../gate-messages.ts";
import type { HealthDecision } from "../overload/health.ts";
import { NodeWatch, type NodeWatchView } from "../overload/node-watch.ts";

export class GateWatch {
  readonly #self: string;
  readonly #peers = new NodeWatch();
  /** It judges itself by the same rules, and alone: nobody else can fail with it. */
  readonly #own = new NodeWatch();
  /** What each has last said of itself. */
  readonly #told = new Map<string, GateHealth>();
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

  /** Connected again, it is judged anew; a connection that cannot be made is a question without an answer. */
  onPeer(peer: string, up: boolean, now: number): void {
    if (up || !this.#peers.has(peer)) {
      this.#told.delete(peer);
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
    // It may reach us before we reach it.
    if (gate !== this.#self && !this.#peers.has(gate)) this.#peers.add(gate, now);
    this.#told.set(gate, health);
    const work = { taken: forwarded, done: forwarded, open: forwardable };
    this.#watchOf(gate).report(gate, this.#isReady(gate), work, now);
  }

  #watchOf(gate: string): NodeWatch {
    return gate === this.#self ? this.#own : this.#peers;
  }

  /** One that has said nothing yet may do anything. (AD-19.20) */
  #isReady(gate: string): boolean {
    const told = this.#told.get(gate);
    if (this.#draining.has(gate)) return false;
    return told === undefined || isReady(told);
  }

  decision(gate: string, now: number): HealthDecision {
    return this.#watchOf(gate).decision(gate, now);
  }

  /** All that are known, itself first. */
  views(now: number): readonly NodeWatchView[] {
    return [...this.#own.views(now), ...this.#peers.views(now)];
  }
}

export function isReady({ datacenters, hasDatacenter, pressure }: GateHealth): boolean {
  const isPressed = pressure === "stressed" || pressure === "overloaded";
  return hasDatacenter && datacenters > 0 && !isPressed;
}
