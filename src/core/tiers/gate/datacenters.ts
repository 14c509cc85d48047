/**
 * The datacenters that this gate knows: which of their managers it reaches, and what room they have. Whoever
 * is reached tells for the datacenter, in turn, over the connection that carries its jobs: what says that a
 * datacenter is there is the way that jobs take. (AD-33a, HFD-11)
 */

import type { Capacity } from "../gate-messages.ts";
import type { DatacenterView } from "../messages.ts";
import { RoundTrips } from "../route/round-trips.ts";
import type { RouteCounts } from "../route/route-counters.ts";
import { type Candidate, Router, type RouteScore } from "../route/router.ts";
import type { DatacenterPlace, GateOptions, ManagerAnswer, ManagerMessage } from "./types.ts";

interface TableHost {
  readonly now: number;
  readonly options: Pick<GateOptions, "config">;
  ask(
    datacenter: string,
    manager: string,
    message: ManagerMessage,
    done: (answer: ManagerAnswer | null) => void,
  ): void;
  log(
    level: "info" | "warn",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void;
}

/** Where this gate sends jobs, for metrics. */
export interface RoutingView {
  readonly counts: RouteCounts;
  /** When they were last compared. */
  readonly scores: readonly RouteScore[];
}

/** A datacenter that had no free core is busy until this part of its cores is free. (AD-36) */
const ROOM_AGAIN = 0.05;

interface Known {
  readonly name: string;
  readonly managers: readonly string[];
  readonly up: Set<string>;
  readonly roundTrips: RoundTrips;
  capacity: Capacity | null;
  heardAt: number;
  askAt: number;
  asking: boolean;
  /** Which of those that are up is asked next. */
  turn: number;
  /** It had no free core, and has not had enough of them since. */
  isBusy: boolean;
}

/** What the choice of datacenters looks at. */
export interface DatacenterRoom {
  readonly name: string;
  readonly cores: number;
  readonly coresFree: number;
}

export class DatacenterTable {
  readonly #context: TableHost;
  readonly #known: ReadonlyMap<string, Known>;
  readonly #router = new Router();
  #routed: ReturnType<Router["route"]> | null = null;

  constructor(context: TableHost, places: readonly DatacenterPlace[]) {
    this.#context = context;
    this.#known = new Map(
      places.map(({ managers, name }) => [
        name,
        {
          ...{ name, managers, up: new Set<string>(), capacity: null, heardAt: 0 },
          roundTrips: new RoundTrips(),
          ...{ askAt: 0, asking: false, turn: 0, isBusy: false },
        },
      ]),
    );
  }

  get names(): readonly string[] {
    return [...this.#known.keys()];
  }

  onLink(datacenter: string, manager: string, up: boolean): void {
    const known = this.#known.get(datacenter);
    if (known === undefined) return;
    if (up) known.up.add(manager);
    else known.up.delete(manager);
    if (up && known.up.size === 1) known.askAt = this.#context.now;
  }

  /** Its managers that are connected. */
  reachedIn(datacenter: string): readonly string[] {
    return [...(this.#known.get(datacenter)?.up ?? [])];
  }

  /** The manager to ask: the one that is named if it is there, else the next in turn; null: none is. */
  managerOf(datacenter: string, named: string | null): string | null {
    const known = this.#known.get(datacenter);
    if (known === undefined) return null;
    if (named !== null && known.up.has(named)) return named;
    const up = known.managers.filter((one) => known.up.has(one));
    return up[known.turn % Math.max(1, up.length)] ?? null;
  }

  /** Another one is asked from now on. */
  turnAway(datacenter: string): void {
    const known = this.#known.get(datacenter);
    if (known !== undefined) known.turn++;
  }

  isHealthy(datacenter: string): boolean {
    const known = this.#known.get(datacenter);
    const { now, options } = this.#context;
    return known?.capacity != null && now - known.heardAt < options.config.silenceMs;
  }

  /** Those that can be given jobs. */
  rooms(): readonly DatacenterRoom[] {
    return [...this.#known.values()].flatMap(({ capacity, name }) =>
      capacity === null || !this.isHealthy(name)
        ? []
        : [{ name, cores: capacity.cores, coresFree: capacity.coresFree }],
    );
  }

  /** In which order these are asked to take a job. (AD-36) */
  inOrder(names: readonly string[], preferred: readonly string[]): readonly string[] {
    const { now } = this.#context;
    const candidates = names.flatMap((name) => {
      const known = this.#known.get(name);
      return known?.capacity == null ? [] : [this.#candidate(known, known.capacity)];
    });
    const routed = this.#router.route(candidates, preferred, now);
    this.#routed = routed;
    const { reason, switched } = routed;
    if (switched !== null) {
      const { from, ratio } = switched;
      const fields = { from, to: routed.names[0] ?? "", reason, ratio: Number(ratio.toFixed(3)) };
      this.#context.log("info", "RoutingSwitch", fields);
    }
    return routed.names;
  }

  /** A job goes there; `from`: another that has not taken it before. */
  decided(job: string, datacenter: string, from: string | null): void {
    const { health, reason, scores } = this.#routed ?? {};
    this.#router.counters.decided(health ?? "named", reason ?? "named");
    if (from !== null && from !== datacenter) this.#router.counters.fellBack(from, datacenter);
    const compared = (scores ?? []).map(
      ({ load, name, quality, score, upperMs }) =>
        `${name} ${score.toFixed(1)} = ${upperMs.toFixed(1)} ms x ${load.toFixed(2)} x ${quality.toFixed(2)}`,
    );
    this.#context.log("info", "RoutingDecision", {
      ...{ job, datacenter, bucket: health ?? "named", reason: reason ?? "named" },
      candidates: compared.join("; "),
    });
  }

  get routing(): RoutingView {
    return { counts: this.#router.counters, scores: this.#routed?.scores ?? [] };
  }

  /** It did not take a job that it was given, or lost it. */
  failed(datacenter: string): void {
    this.#router.failed(datacenter, this.#context.now);
    this.#context.log("warn", "RoutingCooldown", { datacenter });
  }

  succeeded(datacenter: string): void {
    this.#router.succeeded(datacenter);
  }

  #candidate(known: Known, capacity: Capacity): Candidate {
    const { heardAt, isBusy, managers, name, roundTrips, up } = known;
    const { now, options } = this.#context;
    const isSilent = now - heardAt > options.config.silenceMs / 2;
    const isDegraded = isSilent || up.size <= managers.length / 2;
    return {
      ...{ name, cores: capacity.cores, coresFree: capacity.coresFree },
      health: isDegraded ? "degraded" : isBusy ? "busy" : "healthy",
      jobsQueued: capacity.jobsQueued,
      ...{ managers: managers.length, managersAway: managers.length - up.size },
      distance: roundTrips.distance(now),
    };
  }

  views(): readonly DatacenterView[] {
    return [...this.#known.values()].map(({ capacity, name, up }) => ({
      name,
      status: this.isHealthy(name) ? "healthy" : "unreachable",
      managers: up.size,
      workers: capacity?.workers ?? 0,
      cores: capacity?.cores ?? 0,
      coresFree: capacity?.coresFree ?? 0,
      jobsQueued: capacity?.jobsQueued ?? 0,
    }));
  }

  nextDeadline(): number {
    const due = [...this.#known.values()].filter(({ asking, up }) => !asking && up.size > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...due.map(({ askAt }) => askAt));
  }

  onTick(): void {
    for (const known of this.#known.values())
      if (!known.asking && known.up.size > 0 && known.askAt <= this.#context.now) this.#ask(known);
  }

  #ask(known: Known): void {
    const manager = this.managerOf(known.name, null);
    if (manager === null) return;
    known.asking = true;
    const askedAt = this.#context.now;
    const message = { kind: "gate", request: { kind: "capacity" } } as const;
    this.#context.ask(known.name, manager, message, (answer) => {
      known.asking = false;
      known.askAt = this.#context.now + this.#context.options.config.capacityMs;
      if (answer?.kind !== "capacity") {
        known.turn++;
        return;
      }
      known.capacity = answer;
      const { cores, coresFree } = answer;
      known.isBusy = coresFree === 0 || (known.isBusy && coresFree < ROOM_AGAIN * cores);
      known.heardAt = this.#context.now;
      known.roundTrips.record(this.#context.now - askedAt, this.#context.now);
    });
  }
}
