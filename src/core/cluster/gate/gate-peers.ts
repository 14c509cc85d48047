/**
 * What a gate makes of how the gates are: it tells the others how it is itself, says when what it thinks of one
 * changes, has new jobs led by those that are well, and knows where to send a client that it refuses. (AD-19)
 */

import type { GateHealth } from "../gate-messages.ts";
import type { Peers } from "../manager/peers.ts";
import type { HealthDecision } from "../overload/health.ts";
import type { NodeWatchView } from "../overload/node-watch.ts";
import type { OverloadState } from "../views.ts";
import { GateWatch, isReady } from "./gate-watch.ts";
import type { GateEffect, GateOptions } from "./types.ts";

/** How often the gates are looked at, and a change of what this one is told to them. */
const LOOK_MS = 1_000;
/** How often the others hear that nothing has changed: several times in the 30 s after which it is not live. */
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
  /** Gates that were given up, and how often one was not since most failed at once. */
  readonly evicted: number;
  readonly held: number;
}

export class GatePeers {
  readonly #host: PeersHost;
  readonly #watch: GateWatch;
  /** What was thought of each at the last look. */
  readonly #decided = new Map<string, HealthDecision>();
  #told: GateHealth | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;
  #lookAt = 0;
  #passedOver: readonly string[] = [];
  /** Whom the last refused client was sent to. */
  #turn = 0;
  /** How hard-pressed this gate is. */
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
    this.#lookAt = this.#host.now;
  }

  onHealth(peer: string, health: GateHealth): void {
    this.#watch.onHealth(peer, health, this.#host.now);
  }

  nextDeadline(): number {
    return this.#lookAt;
  }

  /** `own`: how this gate is, but for its pressure. */
  onTick(own: () => Omit<GateHealth, "pressure">): void {
    const { now, options } = this.#host;
    if (now < this.#lookAt) return;
    this.#lookAt = now + LOOK_MS;
    const health = { ...own(), pressure: this.pressure };
    this.#watch.onHealth(options.self, health, now);
    this.#tell(health);
    this.#look();
  }

  #tell(health: GateHealth): void {
    const { now } = this.#host;
    const isNews = this.#told === null || isReady(this.#told) !== isReady(health);
    if (!isNews && now - this.#toldAt < TELL_MS) return;
    this.#told = health;
    this.#toldAt = now;
    this.#host.emit({ kind: "tellPeers", health });
  }

  #look(): void {
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

  /** Where a client that is refused here is taken, in turn; null: nowhere that is known. */
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
