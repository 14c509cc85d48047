/**
 * A gate's view of remote datacenters: probe the leader of each, nothing else. No gossip, no
 * membership, no incarnation shared with SWIM. (AD-33a)
 *
 *     UNREACHABLE --ack--> REACHABLE --5 failures in a row--> SUSPECTED --30 s--> UNREACHABLE
 *                              ^_____________ack__________________|
 *
 * Probes overlap: one leaves every interval whatever became of the last. A late ack proves life and
 * yields no round trip. When several datacenters fall at once, eviction is held: see `correlation.ts`.
 */

import type { Address, NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Coordinate } from "../vivaldi/coordinate.ts";
import type { CorrelationLevel } from "./correlation.ts";
import { correlationLevel, holdsEviction } from "./correlation.ts";
import type {
  CrossClusterAck,
  CrossClusterProbe,
  DatacenterAggregate,
  DatacenterHealth,
} from "./messages.ts";

export interface FederatedConfig {
  readonly probeIntervalMs: number;
  readonly probeTimeoutMs: number;
  readonly suspicionTimeoutMs: number;
  readonly failuresMax: number;
}

export const FEDERATED_DEFAULTS: FederatedConfig = {
  probeIntervalMs: 2_000,
  probeTimeoutMs: 5_000,
  suspicionTimeoutMs: 30_000,
  failuresMax: 5,
};

export const DATACENTERS_MAX = 256;
const PROBES_OPEN_MAX = 64;

export type Reachability = "UNREACHABLE" | "REACHABLE" | "SUSPECTED";

export type FederatedEffect =
  | { readonly kind: "send"; readonly to: Address; readonly probe: CrossClusterProbe }
  | {
      readonly kind: "changed";
      readonly datacenter: string;
      readonly from: Reachability;
      readonly to: Reachability;
      readonly health: DatacenterHealth | null;
    }
  | { readonly kind: "latency"; readonly datacenter: string; readonly rttMs: number }
  | { readonly kind: "resolveLeader"; readonly datacenter: string }
  | {
      readonly kind: "evictionHeld";
      readonly datacenter: string;
      readonly level: CorrelationLevel;
    };

interface Record {
  readonly datacenter: string;
  leader: Address;
  state: Reachability;
  failures: number;
  suspectedAt: number;
  turnedBadAt: number | null;
  nextProbeAt: number;
  /** sequence → sent at; answered or failed ones leave. */
  readonly open: Map<number, number>;
  /** Failed ones, whose late ack still proves life. */
  readonly late: Map<number, number>;
  term: number;
  incarnation: number;
  aggregate: DatacenterAggregate | null;
  lastRttMs: number;
}

export interface FederatedOptions {
  readonly cluster: string;
  readonly node: NodeId;
  readonly address: Address;
  readonly config: FederatedConfig;
}

export class FederatedMonitor {
  readonly #options: FederatedOptions;
  readonly #random: Random;
  readonly #records = new Map<string, Record>();
  #sequence = 0;
  #out: FederatedEffect[] = [];

  constructor(options: FederatedOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** False when there are too many. */
  add(datacenter: string, leader: Address, now: number): boolean {
    if (this.#records.has(datacenter) || this.#records.size >= DATACENTERS_MAX) return false;
    this.#records.set(datacenter, {
      datacenter,
      leader,
      state: "UNREACHABLE",
      failures: 0,
      suspectedAt: 0,
      turnedBadAt: null,
      // Gates that start together spread their probes.
      nextProbeAt: now + this.#random.float() * this.#options.config.probeIntervalMs,
      open: new Map(),
      late: new Map(),
      term: 0,
      incarnation: 0,
      aggregate: null,
      lastRttMs: 0,
    });
    return true;
  }

  /**
   * A new leader: aim there, forgive the old one's silence; only an ack makes it reachable. (C40-1)
   */
  retarget(datacenter: string, leader: Address): void {
    const record = this.#records.get(datacenter);
    if (record === undefined || record.leader === leader) return;
    record.leader = leader;
    record.failures = 0;
    record.open.clear();
    record.late.clear();
  }

  nextDeadline(): number | null {
    let next = Number.POSITIVE_INFINITY;
    const { probeTimeoutMs, suspicionTimeoutMs } = this.#options.config;
    for (const record of this.#records.values()) {
      next = Math.min(next, record.nextProbeAt);
      for (const sentAt of record.open.values()) {
        next = Math.min(next, sentAt + probeTimeoutMs);
        break;
      }
      if (record.state === "SUSPECTED") {
        next = Math.min(next, record.suspectedAt + suspicionTimeoutMs);
      }
    }
    return next === Number.POSITIVE_INFINITY ? null : next;
  }

  tick(now: number, coordinate: Coordinate | null): FederatedEffect[] {
    this.#out = [];
    for (const record of this.#records.values()) {
      this.#expire(record, now);
      const { suspicionTimeoutMs } = this.#options.config;
      if (record.state === "SUSPECTED" && now >= record.suspectedAt + suspicionTimeoutMs) {
        this.#move(record, "UNREACHABLE", now);
      }
      if (now >= record.nextProbeAt) this.#probe(record, now, coordinate);
    }
    return this.#out;
  }

  #probe(record: Record, now: number, coordinate: Coordinate | null): void {
    record.nextProbeAt = now + this.#options.config.probeIntervalMs;
    if (record.open.size >= PROBES_OPEN_MAX) return;
    const sequence = ++this.#sequence;
    record.open.set(sequence, now);
    const { cluster, node, address } = this.#options;
    const probe: CrossClusterProbe = {
      kind: "xprobe",
      sequence,
      sourceCluster: cluster,
      sourceNode: node,
      sourceAddress: address,
      coordinate,
      lastRttMs: record.lastRttMs,
    };
    this.#out.push({ kind: "send", to: record.leader, probe });
  }

  #expire(record: Record, now: number): void {
    const { probeTimeoutMs, suspicionTimeoutMs, failuresMax } = this.#options.config;
    for (const [sequence, sentAt] of record.open) {
      if (now < sentAt + probeTimeoutMs) break;
      record.open.delete(sequence);
      record.late.set(sequence, sentAt);
      record.failures++;
      if (record.failures >= failuresMax && record.state === "REACHABLE") {
        record.suspectedAt = now;
        this.#move(record, "SUSPECTED", now);
      }
    }
    for (const [sequence, sentAt] of record.late) {
      if (now < sentAt + probeTimeoutMs + suspicionTimeoutMs) break;
      record.late.delete(sequence);
    }
  }

  onAck(ack: CrossClusterAck, now: number): FederatedEffect[] {
    this.#out = [];
    const record = this.#records.get(ack.datacenter);
    if (record === undefined) return this.#out;
    const sentAt = record.open.get(ack.sequence);
    const known = sentAt !== undefined || record.late.has(ack.sequence);
    if (!known || this.#isOlder(record, ack)) return this.#out;
    record.open.delete(ack.sequence);
    record.late.delete(ack.sequence);
    record.failures = 0;
    if (sentAt !== undefined) {
      record.lastRttMs = now - sentAt;
      this.#out.push({ kind: "latency", datacenter: ack.datacenter, rttMs: now - sentAt });
    }
    const before = record.aggregate?.health ?? null;
    if (ack.isLeader) {
      record.term = ack.leaderTerm;
      record.incarnation = ack.incarnation;
      record.aggregate = ack.aggregate;
    } else this.#out.push({ kind: "resolveLeader", datacenter: ack.datacenter });
    const healthChanged = before !== (record.aggregate?.health ?? null);
    if (record.state !== "REACHABLE") this.#move(record, "REACHABLE", now);
    else if (healthChanged) this.#tell(record, "REACHABLE");
    return this.#out;
  }

  /** (term, external incarnation), lexicographically. (FED-5) */
  #isOlder(record: Record, ack: CrossClusterAck): boolean {
    if (ack.leaderTerm !== record.term) return ack.leaderTerm < record.term;
    return ack.incarnation < record.incarnation;
  }

  #move(record: Record, to: Reachability, now: number): void {
    const from = record.state;
    record.state = to;
    if (to === "REACHABLE") record.turnedBadAt = null;
    else record.turnedBadAt ??= now;
    this.#tell(record, from);
    const level = this.correlation(now);
    if (to !== "REACHABLE" && holdsEviction(level)) {
      this.#out.push({ kind: "evictionHeld", datacenter: record.datacenter, level });
    }
  }

  #tell(record: Record, from: Reachability): void {
    this.#out.push({
      kind: "changed",
      datacenter: record.datacenter,
      from,
      to: record.state,
      health: record.aggregate?.health ?? null,
    });
  }

  correlation(now: number): CorrelationLevel {
    const turned: number[] = [];
    for (const { turnedBadAt } of this.#records.values()) {
      if (turnedBadAt !== null) turned.push(turnedBadAt);
    }
    return correlationLevel(this.#records.size, turned, now);
  }

  /** May this datacenter be dropped from routing? Not while many fall together. (AD-33a.8) */
  mayEvict(datacenter: string, now: number): boolean {
    const record = this.#records.get(datacenter);
    if (record === undefined || record.state === "REACHABLE") return false;
    return !holdsEviction(this.correlation(now));
  }

  stateOf(datacenter: string): Reachability | null {
    return this.#records.get(datacenter)?.state ?? null;
  }

  aggregateOf(datacenter: string): DatacenterAggregate | null {
    return this.#records.get(datacenter)?.aggregate ?? null;
  }

  /** Reachable and not unhealthy by their own account: two separate axes. */
  healthyDatacenters(): string[] {
    return [...this.#records.values()]
      .filter(({ state, aggregate }) => state === "REACHABLE" && aggregate?.health !== "UNHEALTHY")
      .map(({ datacenter }) => datacenter);
  }
}
