/**
 * Selects which of several equivalent peers to ask: near ones first, a few at a time, and the same ones while they
 * stay healthy. (AD-28)
 *
 *   known ── tier, then hash x weight: the best 8 ──▶ candidates ── better of two drawn ──▶ primaries 3, backups 2
 *                                                        ▲                                    │ 4 failures in a row,
 *                          answered a probe after a refresh                                   │ far slower than the
 *                                                        └────────────── evicted ◀────────────┘ others, errors > 5 %
 *
 * Requests rotate over the primaries. A backup replaces an evicted primary at once. If more than half of the peers
 * in use fail, the cause is this node or its network, and none is evicted.
 */

import { encodeUtf8 } from "../../base/bytes.ts";
import type { Random } from "../../base/random.ts";
import { sha256 } from "../../base/sha256.ts";
import { type EvictionReason, PeerHealth } from "./peer-health.ts";

interface PoolConfig {
  readonly candidatesMax: number;
  readonly primaries: number;
  readonly backups: number;
  /** A farther tier is used while nearer ones have fewer peers. */
  readonly peersPerTierMin: number;
  /** Interval of probing evicted peers and re-ranking candidates; plus up to `refreshJitterMs`. */
  readonly refreshMs: number;
  readonly refreshJitterMs: number;
  /** Delay before the slot of a promoted backup is refilled. */
  readonly refillMsMin: number;
  readonly refillMsMax: number;
}

const POOL_DEFAULTS: PoolConfig = {
  candidatesMax: 8,
  primaries: 3,
  backups: 2,
  peersPerTierMin: 3,
  refreshMs: 60_000,
  refreshJitterMs: 5_000,
  refillMsMin: 100,
  refillMsMax: 500,
};

export interface PoolRules {
  /** Suspends eviction while more than half of the peers in use fail. */
  readonly evictionsHeld: boolean;
}

const POOL_RULES: PoolRules = { evictionsHeld: true };

/** Tier that peers declare, never measured. The names are metric labels. (AD-28.13) */
type LocalityTier = "same_dc" | "global";
const TIERS: readonly LocalityTier[] = ["same_dc", "global"];

/** Reason why candidates were re-ranked. */
type ChangeReason = "health_change" | "peer_added" | "peer_removed";

interface Peer {
  readonly name: string;
  readonly tier: LocalityTier;
  health: PeerHealth;
  /** Evicted, and no probe answered since. */
  isEvicted: boolean;
  /** Evicted, and probed after a refresh: its next answer readmits it. */
  isProbed: boolean;
}

interface PoolOptions {
  /** Selecting node and role of its peers. Both are part of the hash, so that selectors spread over the peers. */
  readonly selector: string;
  readonly role: string;
  readonly config?: PoolConfig;
  readonly rules?: PoolRules;
}

export interface PoolView {
  readonly primaries: readonly string[];
  readonly backups: readonly string[];
  readonly evicted: readonly string[];
  readonly candidates: number;
  readonly evictions: Readonly<Record<EvictionReason, number>>;
  /** Evictions suppressed because too many peers failed at once. */
  readonly held: number;
  readonly promotions: number;
  /** Changes of the candidates by reason. */
  readonly changes: Readonly<Record<ChangeReason, number>>;
  /** Selected peers by tier. */
  readonly tiers: Readonly<Record<LocalityTier, number>>;
  readonly peers: readonly {
    readonly name: string;
    readonly latencyMs: number | null;
    readonly errorRate: number;
  }[];
}

export class PeerPool {
  readonly #options: PoolOptions;
  readonly #config: PoolConfig;
  readonly #rules: PoolRules;
  readonly #random: Random;
  readonly #peers = new Map<string, Peer>();
  #primaries: string[] = [];
  #backups: string[] = [];
  /** Ranked when peers are added or removed and at a refresh, not on every answer. */
  #candidates: readonly string[] = [];
  /** Farthest tier in use. */
  #farthest: LocalityTier = "global";
  #turn = 0;
  #refillAt = Number.POSITIVE_INFINITY;
  #refreshAt = Number.POSITIVE_INFINITY;
  readonly #evictions: Record<EvictionReason, number> = {
    ...{ error_rate: 0, consecutive_failures: 0, latency: 0 },
  };
  #suppressed = 0;
  #promotions = 0;
  readonly #changes: Record<ChangeReason, number> = {
    ...{ health_change: 0, peer_added: 0, peer_removed: 0 },
  };
  readonly #drawn: Record<LocalityTier, number> = { same_dc: 0, global: 0 };

  constructor(options: PoolOptions, random: Random) {
    this.#options = options;
    this.#config = options.config ?? POOL_DEFAULTS;
    this.#rules = options.rules ?? POOL_RULES;
    this.#random = random;
  }

  /** Adds a reachable peer with a clean record: its connection is new. */
  add(name: string, tier: LocalityTier, now: number): void {
    if (this.#peers.has(name)) return;
    const health = new PeerHealth();
    this.#peers.set(name, { name, tier, health, isEvicted: false, isProbed: false });
    this.#rank("peer_added", now);
    // Far peers leave once there are enough near ones.
    for (const far of this.#inUse().filter((one) => !this.#isNear(one))) this.#leave(far);
    this.#fill();
    if (this.#refreshAt === Number.POSITIVE_INFINITY) this.#plan(now);
  }

  /** Removes an unreachable peer. */
  remove(name: string, now: number): void {
    if (!this.#peers.delete(name)) return;
    this.#rank("peer_removed", now);
    this.#leave(name);
    this.#fill();
    if (this.#primaries.length === 0) this.#readmitAll();
  }

  /** Returns the next primary in turn, or null if there is none. */
  choose(): string | null {
    const { length } = this.#primaries;
    return length === 0 ? null : (this.#primaries[this.#turn++ % length] ?? null);
  }

  succeeded(name: string, latencyMs: number, now: number): void {
    const peer = this.#peers.get(name);
    if (peer === undefined) return;
    peer.health.succeeded(latencyMs, now);
    if (peer.isProbed) this.#readmit(peer);
    else if (!peer.isEvicted) this.#judge(peer, now);
  }

  failed(name: string, now: number): void {
    const peer = this.#peers.get(name);
    if (peer === undefined) return;
    peer.health.failed(now);
    if (!peer.isEvicted) this.#judge(peer, now);
  }

  nextDeadline(): number {
    return Math.min(this.#refillAt, this.#refreshAt);
  }

  /** Returns the evicted peers to probe. */
  onTick(now: number): readonly string[] {
    if (now >= this.#refillAt) {
      this.#refillAt = Number.POSITIVE_INFINITY;
      this.#fill();
    }
    if (now < this.#refreshAt) return [];
    this.#plan(now);
    this.#rank("health_change", now);
    const out = [...this.#peers.values()].filter(({ isEvicted }) => isEvicted);
    for (const peer of out) peer.isProbed = true;
    return out.map(({ name }) => name);
  }

  view(now: number): PoolView {
    const peers = [...this.#peers.values()];
    return {
      ...{ primaries: [...this.#primaries], backups: [...this.#backups] },
      evicted: peers.flatMap(({ isEvicted, name }) => (isEvicted ? [name] : [])),
      candidates: this.#candidates.length,
      evictions: { ...this.#evictions },
      ...{ held: this.#suppressed, promotions: this.#promotions },
      ...{ changes: { ...this.#changes }, tiers: { ...this.#drawn } },
      peers: peers.map(({ health, name }) => ({
        ...{ name, latencyMs: health.latencyMs, errorRate: health.errorRate(now) },
      })),
    };
  }

  #plan(now: number): void {
    const { refreshJitterMs, refreshMs } = this.#config;
    this.#refreshAt = now + refreshMs + this.#random.float() * refreshJitterMs;
  }

  /** Readmits a peer with a clean record. */
  #readmit(peer: Peer): void {
    peer.isEvicted = false;
    peer.isProbed = false;
    peer.health = new PeerHealth();
    this.#fill();
  }

  /** Readmits all peers when only evicted ones are left: an unhealthy peer is better than none. */
  #readmitAll(): void {
    for (const peer of this.#peers.values()) this.#readmit(peer);
  }

  /** Ranks the nearest tiers that have enough peers by weighted rendezvous hashing. (AD-28.12, AD-28.14) */
  #rank(reason: ChangeReason, now: number): void {
    const near: Peer[] = [];
    for (const tier of TIERS) {
      if (near.length >= this.#config.peersPerTierMin) break;
      near.push(...[...this.#peers.values()].filter((peer) => peer.tier === tier));
      this.#farthest = tier;
    }
    const baselineMs = this.#baselineMs();
    const scored = near.map((peer) => {
      const { role, selector } = this.#options;
      const weight = peer.health.weight(baselineMs, now);
      return { name: peer.name, score: hashOf([peer.name, selector, role]) * weight };
    });
    const before = this.#candidates.join();
    this.#candidates = scored
      .toSorted((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
      .slice(0, this.#config.candidatesMax)
      .map(({ name }) => name);
    if (this.#candidates.join() !== before) this.#changes[reason]++;
  }

  #isNear(name: string): boolean {
    const { tier } = this.#peers.get(name) ?? {};
    return tier !== undefined && TIERS.indexOf(tier) <= TIERS.indexOf(this.#farthest);
  }

  /** Median latency of the peers in use. */
  #baselineMs(): number | null {
    const all = [...this.#peers.values()].filter(({ isEvicted }) => !isEvicted);
    const known = all.flatMap(({ health }) => health.latencyMs ?? []).toSorted((a, b) => a - b);
    return known[Math.floor((known.length - 1) / 2)] ?? null;
  }

  #reasonOf(peer: Peer, now: number): EvictionReason | null {
    const others = [...this.#peers.values()].filter(
      (one) => one !== peer && one.tier === peer.tier,
    );
    const hasOther = [...this.#inUse(), ...this.#candidates].some((name) => name !== peer.name);
    const healths = others.map(({ health }) => health);
    return peer.health.eviction(healths, hasOther, now);
  }

  #inUse(): readonly string[] {
    return [...this.#primaries, ...this.#backups];
  }

  #judge(peer: Peer, now: number): void {
    const reason = this.#inUse().includes(peer.name) ? this.#reasonOf(peer, now) : null;
    if (reason === null) return;
    // Evicted peers count as failing. Otherwise one eviction after another would leave no peer.
    const counted = [...this.#peers.values()].filter(
      ({ isEvicted, name }) => isEvicted || this.#inUse().includes(name),
    );
    const bad = counted.filter((one) => one.isEvicted || this.#reasonOf(one, now) !== null);
    if (this.#rules.evictionsHeld && bad.length > counted.length / 2) {
      this.#suppressed++;
      return;
    }
    this.#evictions[reason]++;
    peer.isEvicted = true;
    this.#leave(peer.name);
    this.#refillAt = Math.min(this.#refillAt, now + this.#refillMs());
  }

  #refillMs(): number {
    const { refillMsMax, refillMsMin } = this.#config;
    return refillMsMin + this.#random.float() * (refillMsMax - refillMsMin);
  }

  /** Promotes a backup to the slot of a leaving primary. (AD-28.21) */
  #leave(name: string): void {
    this.#backups = this.#backups.filter((one) => one !== name);
    const at = this.#primaries.indexOf(name);
    if (at < 0) return;
    const [promoted] = this.#backups.splice(0, 1);
    if (promoted === undefined) this.#primaries.splice(at, 1);
    else {
      this.#primaries[at] = promoted;
      this.#promotions++;
    }
  }

  /** Fills primaries first, then backups. (AD-28.23) */
  #fill(): void {
    const { backups, primaries } = this.#config;
    for (;;) {
      const wanted = this.#primaries.length < primaries ? this.#primaries : this.#backups;
      if (wanted === this.#backups && this.#backups.length >= backups) return;
      const drawn = this.#draw();
      if (drawn === null) return;
      wanted.push(drawn);
      const { tier } = this.#peers.get(drawn) ?? {};
      if (tier !== undefined) this.#drawn[tier]++;
    }
  }

  /** Returns the faster of two randomly drawn candidates; unknown latency counts as equal. (AD-28.17) */
  #draw(): string | null {
    const inUse = this.#inUse();
    const free = this.#candidates.filter(
      (name) => !inUse.includes(name) && this.#peers.get(name)?.isEvicted === false,
    );
    if (free.length === 0) return null;
    const first = free.splice(this.#random.below(free.length), 1)[0] ?? null;
    const second = free[this.#random.below(Math.max(1, free.length))] ?? first;
    const [one, other] = [first, second].map(
      (name) => this.#peers.get(name ?? "")?.health.latencyMs,
    );
    return one != null && other != null && one < other ? first : second;
  }
}

/** Hash from 0 to 1, equal on every machine: first 48 bits of the SHA-256 of length-prefixed parts. (AD-28.15) */
export function hashOf(parts: readonly string[]): number {
  const bytes = sha256(encodeUtf8(parts.map((part) => `${part.length}:${part}`).join("")));
  let value = 0;
  for (const byte of bytes.subarray(0, 6)) value = value * 256 + byte;
  return value / 2 ** 48;
}
