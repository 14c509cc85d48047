/**
 * Discovers members to join: configured seeds, DNS, and peers of earlier processes. The rules are in
 * `core/membership/discovery`; this module delays probes and remembers peers.
 */

import type { Millis } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import {
  BOOTSTRAP_DEFAULTS,
  Bootstrap,
  type BootstrapEffect,
  type BootstrapInput,
} from "../../membership/discovery/bootstrap.ts";
import { type CachedPeer, PeerCache } from "../../membership/discovery/peer-cache.ts";

/** How long former peers are tried. An address reused by another service fails the greeting. */
const CACHE_TTL_MS = 7 * 24 * 3_600_000;
const CACHE_SAVE_MS = 30_000;

export type DiscoveryEffect =
  /** Answered by `resolved` or `resolveFailed`. */
  | { readonly kind: "resolve"; readonly name: string; readonly timeoutMs: number }
  /** Atomic. Losing the peers only slows down a restart. */
  | { readonly kind: "savePeers"; readonly peers: readonly CachedPeer[] };

export interface DiscoveryOptions {
  readonly self: Address;
  readonly seeds: readonly Address[];
  /** DNS names, resolved periodically. */
  readonly names: readonly string[];
  /** Peers of earlier processes. */
  readonly formerPeers: readonly CachedPeer[];
}

interface DiscoveryHandlers {
  readonly emit: (effect: DiscoveryEffect) => void;
  /** Checks whether anything answers at an address, without identifying it. Answered by `onProbed`. (BOOT-3) */
  readonly probe: (probe: number, to: Address, timeoutMs: number) => void;
  readonly join: (address: Address) => void;
  readonly onState: (from: string, to: string) => void;
}

interface Probe {
  readonly address: Address;
  readonly at: number;
  readonly timeoutMs: number;
}

export class MemberDiscovery {
  readonly #bootstrap: Bootstrap;
  readonly #cache: PeerCache;
  readonly #handlers: DiscoveryHandlers;
  /** Scheduled probes by number; limited by the concurrency of the bootstrap. */
  readonly #delayed = new Map<number, Probe>();
  /** Probes in progress; other answers are ignored. */
  readonly #probing = new Map<number, Address>();
  #probes = 0;
  #saveAt = Number.POSITIVE_INFINITY;
  #saved = "";
  #peers: readonly Address[] = [];
  #now = 0;

  constructor(
    options: DiscoveryOptions,
    wall: number,
    random: Random,
    handlers: DiscoveryHandlers,
  ) {
    const { self, seeds, names, formerPeers } = options;
    this.#handlers = handlers;
    this.#cache = new PeerCache(CACHE_TTL_MS, formerPeers);
    const cached = this.#cache.candidates(wall).map(({ address }) => address);
    const config = BOOTSTRAP_DEFAULTS;
    this.#bootstrap = new Bootstrap({ self, cached, seeds, names, config }, random);
  }

  start(now: Millis): void {
    this.#saveAt = now + CACHE_SAVE_MS;
    this.#step({ kind: "start" }, now);
  }

  tick(now: Millis, wall: number): void {
    this.#begin(now);
    if ((this.#bootstrap.nextDeadline() ?? Number.POSITIVE_INFINITY) <= now) {
      this.#step({ kind: "tick" }, now);
    }
    if (now < this.#saveAt) return;
    this.#saveAt = now + CACHE_SAVE_MS;
    this.save(wall);
  }

  /** Result of a name lookup. */
  onAnswer(
    input: Extract<BootstrapInput, { readonly kind: "resolved" | "resolveFailed" }>,
    now: Millis,
  ): void {
    this.#step(input, now);
  }

  onProbed(probe: number, answered: boolean, now: Millis, wall: number): void {
    const address = this.#probing.get(probe);
    if (address === undefined) return;
    this.#probing.delete(probe);
    if (answered) this.#cache.succeeded(address, wall);
    else this.#cache.failed(address);
    this.#step({ kind: "probed", address, answered }, now);
  }

  /** Membership changed: another member found us, or the last peer left. */
  onPeers(addresses: readonly Address[], now: Millis): void {
    this.#peers = addresses;
    this.#step({ kind: "peers", addresses }, now);
  }

  save(wall: number): void {
    for (const address of this.#peers) this.#cache.succeeded(address, wall);
    const peers = this.#cache.candidates(wall);
    const names = peers.map(({ address }) => address).join();
    if (names === this.#saved) return;
    this.#saved = names;
    this.#handlers.emit({ kind: "savePeers", peers });
  }

  nextDeadline(): number {
    let next = Math.min(this.#bootstrap.nextDeadline() ?? Number.POSITIVE_INFINITY, this.#saveAt);
    for (const { at } of this.#delayed.values()) next = Math.min(next, at);
    return next;
  }

  /** Starts the probes whose delay is over. */
  #begin(now: number): void {
    for (const [probe, { address, at, timeoutMs }] of this.#delayed) {
      if (at > now) continue;
      this.#delayed.delete(probe);
      this.#probing.set(probe, address);
      this.#handlers.probe(probe, address, timeoutMs);
    }
  }

  #step(input: BootstrapInput, now: Millis): void {
    this.#now = now;
    for (const effect of this.#bootstrap.step(input, now)) this.#run(effect);
  }

  #run(effect: BootstrapEffect): void {
    const { emit, join, onState } = this.#handlers;
    switch (effect.kind) {
      case "resolve":
        emit(effect);
        return;
      case "probe": {
        const { address, delayMs, timeoutMs } = effect;
        this.#delayed.set(++this.#probes, { address, at: this.#now + delayMs, timeoutMs });
        return;
      }
      case "cancelProbes":
        this.#delayed.clear();
        this.#probing.clear();
        return;
      case "join":
        join(effect.address);
        return;
      case "stateChanged":
        onState(effect.from, effect.to);
    }
  }
}
