/**
 * Health of the gates from the view of one of them: reports its own health to the others, logs changed decisions,
 * passes leadership of new jobs to healthy gates, and redirects clients that it refuses. (AD-19)
 */

import type { GateHealth } from "../gate-messages.ts";
import type { Peers } from "../manager/peers.ts";
import type { HealthDecision } from "../overload/health.ts";
import type { NodeWatchView } from "../overload/node-watch.ts";
import type { OverloadState } from "../views.ts";
import { GateWatch, isReady } from "./gate-watch.ts";
import type { GateEffect, GateOptions } from "./types.ts";

/** Interval of evaluating the gates and reporting changes of its own health. */
const EVALUATE_MS = 1_000;
/** Interval of unchanged health reports: several within the 30 s after which a gate counts as dead. */
export const TELL_MS = 5_000;

interface PeersHost {
  readonly now: number;
  readonly options: Pick<GateOptions, "self" | "addresses">;
  readonly peers: Pick<Peers, "view">;
  emit(effect: GateEffect): void;
  log(
    level: "info" | "warn",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void;
}

export interface GateWatchView {
  readonly gates: readonly NodeWatchView[];
  /** Evicted gates, and evictions suppressed because most failed at once. */
  readonly evicted: number;
  readonly held: number;
}

export class GatePeers {
  readonly #host: PeersHost;
  readonly #watch: GateWatch;
  /** Decision about each gate at the last evaluation. */
  readonly #decided = new Map<string, HealthDecision>();
  #reported: GateHealth | null = null;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #evaluateAt = 0;
  #passedOver: readonly string[] = [];
  /** Rotation over the gates for refused clients. */
  #turn = 0;
  /** Overload state of this gate. */
  pressure: OverloadState = "healthy";

  constructor(host: PeersHost) {
    this.#host = host;
    this.#watch = new GateWatch(host.options.self, host.now);
  }

  onPeer(peer: string, up: boolean): void {
    this.#watch.onPeer(peer, up, this.#host.now);
  }

  onDrains(gate: string, drains: boolean): void {
    this.#watch.onDrains(gate, drains);
    this.#evaluateAt = this.#host.now;
  }

  onHealth(peer: string, health: GateHealth): void {
    this.#watch.onHealth(peer, health, this.#host.now);
  }

  nextDeadline(): number {
    return this.#evaluateAt;
  }

  /** `own`: health of this gate without its overload state. */
  onTick(own: () => Omit<GateHealth, "pressure">): void {
    const { now, options } = this.#host;
    if (now < this.#evaluateAt) return;
    this.#evaluateAt = now + EVALUATE_MS;
    const health = { ...own(), pressure: this.pressure };
    this.#watch.onHealth(options.self, health, now);
    this.#report(health);
    this.#evaluate();
  }

  #report(health: GateHealth): void {
    const { now } = this.#host;
    const isNews = this.#reported === null || isReady(this.#reported) !== isReady(health);
    if (!isNews && now - this.#reportedAt < TELL_MS) return;
    this.#reported = health;
    this.#reportedAt = now;
    this.#host.emit({ kind: "tellPeers", health });
  }

  #evaluate(): void {
    const { now } = this.#host;
    const { held } = this.#watch;
    const seen = this.#watch.views(now);
    for (const { label, name } of seen) {
      const before = this.#decided.get(name) ?? "route";
      const decision = this.#watch.decision(name, now);
      this.#decided.set(name, decision);
      if (decision === before) continue;
      const fields = { gate: name, before, decision, label };
      this.#host.log(decision === "route" ? "info" : "warn", "gate.health", fields);
    }
    if (this.#watch.held > held) {
      const why = "more than half of the gates fail at once";
      this.#host.log("warn", "gate.held", { gates: this.#watch.held - held, why });
    }
    this.#passOver(seen.map(({ name }) => name).filter((name) => this.#isPassedOver(name)));
  }

  #isPassedOver(gate: string): boolean {
    return this.#decided.get(gate) !== "route";
  }

  #passOver(nodes: readonly string[]): void {
    if (nodes.join() === this.#passedOver.join()) return;
    this.#passedOver = nodes;
    this.#host.emit({ kind: "passOver", nodes });
  }

  /** Address of a healthy gate for a client refused here, in turn; null if none is known. */
  elsewhere(): string | null {
    const { options, peers } = this.#host;
    const well = [...this.#decided].flatMap(([name, decision]) => {
      const isTaken = decision === "route" && peers.view(name).status === "alive";
      return isTaken ? [name] : [];
    });
    const next = well[this.#turn++ % Math.max(1, well.length)];
    return next === undefined ? null : (options.addresses[next] ?? null);
  }

  view(): GateWatchView {
    const { evicted, held } = this.#watch;
    return { gates: this.#watch.views(this.#host.now), evicted, held };
  }
}
