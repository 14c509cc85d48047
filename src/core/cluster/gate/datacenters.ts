/**
 * Datacenters known to this gate: which managers are connected, and how much capacity they have. Connected managers
 * report for their datacenter in turn, over the connection that carries its jobs, so reachability is tested on the path
 * that jobs take. (AD-33a, HFD-11)
 */

import type { Capacity } from "../gate-messages.ts";
import type { DatacenterView } from "../messages.ts";
import { RoundTrips } from "../routing/round-trips.ts";
import type { RouteCounts } from "../routing/route-counters.ts";
import { type Candidate, Router, type RouteScore } from "../routing/router.ts";
import type { CONDITIONS } from "../views.ts";
import type { DatacenterCalls } from "./calls.ts";
import type { DatacenterPlace, GateOptions } from "./types.ts";

interface TableHost {
  readonly now: number;
  readonly options: Pick<GateOptions, "config">;
  readonly calls: Pick<DatacenterCalls, "reachedIn" | "circuitOf" | "isDegraded" | "probe">;
  log(
    level: "info" | "warn",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void;
}

/** Routing state for metrics. */
export interface RoutingView {
  readonly counts: RouteCounts;
  /** Scores of the last comparison. */
  readonly scores: readonly RouteScore[];
}

/** A full datacenter counts as busy until this share of its cores is free. (AD-36) */
const ROOM_AGAIN = 0.05;

/** Reachability by the age of the last answer: recent, overdue, or too old. (AD-33a) */
type Reachability = "REACHABLE" | "SUSPECTED" | "UNREACHABLE";

/** Statistics of capacity requests to one datacenter. */
export interface FederatedView {
  readonly datacenter: string;
  readonly state: Reachability;
  readonly answered: number;
  readonly unanswered: number;
  /** Round trip of the last answer; null if there was none. */
  readonly roundTripMs: number | null;
  /** Counts by "FROM TO". */
  readonly transitions: ReadonlyMap<string, number>;
}

interface Known {
  readonly name: string;
  readonly managers: readonly string[];
  readonly roundTrips: RoundTrips;
  capacity: Capacity | null;
  lastSeenAt: number;
  askAt: number;
  asking: boolean;
  state: Reachability;
  answered: number;
  unanswered: number;
  roundTripMs: number | null;
  readonly transitions: Map<string, number>;
  /** Had no free core, and has not had enough since. */
  isBusy: boolean;
}

/** Capacity as used by the choice of datacenters. */
export interface DatacenterRoom {
  readonly name: string;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
}

export class DatacenterTable {
  readonly #context: TableHost;
  readonly #known: ReadonlyMap<string, Known>;
  readonly #router = new Router();
  #routed: ReturnType<Router["route"]> | null = null;
  /** Jobs assigned to a datacenter. */
  forwarded = 0;

  constructor(context: TableHost, places: readonly DatacenterPlace[]) {
    this.#context = context;
    this.#known = new Map(
      places.map(({ managers, name }) => [
        name,
        {
          ...{ name, managers, capacity: null, lastSeenAt: 0 },
          roundTrips: new RoundTrips(),
          ...{ askAt: 0, asking: false, isBusy: false, state: "UNREACHABLE" },
          ...{ answered: 0, unanswered: 0, roundTripMs: null, transitions: new Map() },
        },
      ]),
    );
  }

  get names(): readonly string[] {
    return [...this.#known.keys()];
  }

  /** Another manager of the datacenter is connected. */
  onReached(datacenter: string): void {
    const known = this.#known.get(datacenter);
    if (known !== undefined && this.#reached(known) === 1) known.askAt = this.#context.now;
  }

  isHealthy(datacenter: string): boolean {
    const known = this.#known.get(datacenter);
    const { now, options } = this.#context;
    return known?.capacity != null && now - known.lastSeenAt < options.config.silenceMs;
  }

  /** Datacenters that can be assigned jobs. */
  rooms(): readonly DatacenterRoom[] {
    return [...this.#known.values()].flatMap(({ capacity, name }) => {
      if (capacity === null || !this.isHealthy(name)) return [];
      const { cores, coresFree, jobsQueued } = capacity;
      return [{ name, cores, coresFree, jobsQueued }];
    });
  }

  /** Order in which these datacenters are offered a job. (AD-36) */
  routingOrder(names: readonly string[], preferred: readonly string[]): readonly string[] {
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

  /** Records that a job goes to a datacenter. `from`: one that did not accept it before. */
  decided(job: string, datacenter: string, from: string | null): void {
    const { health, reason, scores } = this.#routed ?? {};
    this.forwarded++;
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

  /** The datacenter did not accept an assigned job, or lost it. */
  failed(datacenter: string): void {
    this.#router.failed(datacenter, this.#context.now);
    this.#context.log("warn", "RoutingCooldown", { datacenter });
  }

  succeeded(datacenter: string): void {
    this.#router.succeeded(datacenter);
  }

  #candidate(known: Known, capacity: Capacity): Candidate {
    const { isBusy, managers, name, roundTrips } = known;
    const { now } = this.#context;
    const reached = this.#reached(known);
    return {
      ...{ name, cores: capacity.cores, coresFree: capacity.coresFree },
      health: this.#isDegraded(known) ? "degraded" : isBusy ? "busy" : "healthy",
      jobsQueued: capacity.jobsQueued,
      ...{ managers: managers.length, managersAway: managers.length - reached },
      distance: roundTrips.distance(now),
    };
  }

  #isDegraded(known: Known): boolean {
    const { lastSeenAt, managers, name } = known;
    const { now, options } = this.#context;
    const isSilent = now - lastSeenAt > options.config.silenceMs / 2;
    const isUnwell = this.#context.calls.isDegraded(name);
    return isSilent || isUnwell || this.#reached(known) <= managers.length / 2;
  }

  #conditionOf(known: Known): (typeof CONDITIONS)[number] {
    if (!this.isHealthy(known.name) || known.capacity?.workers === 0) return "unhealthy";
    if (this.#isDegraded(known)) return "degraded";
    return known.isBusy ? "busy" : "healthy";
  }

  views(): readonly DatacenterView[] {
    return [...this.#known.values()].map((known) => {
      const { capacity, name } = known;
      const circuit = this.#context.calls.circuitOf(name);
      return {
        name,
        status: this.isHealthy(name) ? "healthy" : "unreachable",
        condition: this.#conditionOf(known),
        managers: this.#reached(known),
        workers: capacity?.workers ?? 0,
        cores: capacity?.cores ?? 0,
        coresFree: capacity?.coresFree ?? 0,
        jobsQueued: capacity?.jobsQueued ?? 0,
        circuit: circuit?.state ?? "CLOSED",
        operationsQueued: circuit?.queued ?? 0,
      };
    });
  }

  nextDeadline(): number {
    const due = [...this.#known.values()].filter((one) => !one.asking && this.#reached(one) > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...due.map(({ askAt }) => askAt));
  }

  get federated(): readonly FederatedView[] {
    return [...this.#known.values()].map(
      ({ answered, name: datacenter, roundTripMs, state, transitions, unanswered }) => ({
        ...{ datacenter, state, answered, unanswered, roundTripMs, transitions },
      }),
    );
  }

  /** Updates the reachability. Silence up to half the limit is normal. */
  #updateReachability(known: Known): void {
    const { now, options } = this.#context;
    const silentMs = known.capacity === null ? Number.POSITIVE_INFINITY : now - known.lastSeenAt;
    const isSilent = silentMs > options.config.silenceMs / 2;
    const isLost = silentMs >= options.config.silenceMs;
    const state = isLost ? "UNREACHABLE" : isSilent ? "SUSPECTED" : "REACHABLE";
    if (state === known.state) return;
    const change = `${known.state} ${state}`;
    known.transitions.set(change, (known.transitions.get(change) ?? 0) + 1);
    const level = state === "REACHABLE" ? "info" : "warn";
    const fields = { datacenter: known.name, from: known.state, to: state };
    this.#context.log(level, "DatacenterReachability", fields);
    known.state = state;
  }

  onTick(): void {
    const { now } = this.#context;
    for (const known of this.#known.values()) this.#updateReachability(known);
    for (const known of this.#known.values())
      if (!known.asking && known.askAt <= now && this.#reached(known) > 0) this.#ask(known);
  }

  #reached({ name }: Known): number {
    return this.#context.calls.reachedIn(name).length;
  }

  #ask(known: Known): void {
    known.asking = true;
    const askedAt = this.#context.now;
    this.#context.calls.probe(known.name, (answer) => {
      const { now, options } = this.#context;
      known.asking = false;
      known.askAt = now + options.config.capacityMs;
      if (answer?.kind !== "capacity") {
        known.unanswered++;
        return;
      }
      known.answered++;
      known.roundTripMs = now - askedAt;
      const { cores, coresFree } = answer;
      known.capacity = answer;
      known.isBusy = coresFree === 0 || (known.isBusy && coresFree < ROOM_AGAIN * cores);
      known.lastSeenAt = now;
      known.roundTrips.record(now - askedAt, now);
      this.#updateReachability(known);
    });
  }
}
