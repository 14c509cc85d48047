/**
 * Peers that answered former processes, so that a restart needs neither seed nor DNS. Success counts up, failure counts
 * down, and at zero a peer is forgotten. (BOOT-7)
 */

import { type Address, address } from "../../base/ids.ts";

export const PEER_CACHE_MAX = 128;
const SUCCESSES_MAX = 16;

export interface CachedPeer {
  readonly address: Address;
  /** Wall-clock milliseconds. */
  readonly lastSeen: number;
  readonly successes: number;
}

export class PeerCache {
  readonly #peers = new Map<Address, CachedPeer>();
  readonly #ttlMs: number;

  constructor(ttlMs: number, peers: readonly CachedPeer[] = []) {
    this.#ttlMs = ttlMs;
    for (const peer of peers.slice(0, PEER_CACHE_MAX)) this.#peers.set(peer.address, peer);
  }

  succeeded(at: Address, now: number): void {
    const successes = Math.min(SUCCESSES_MAX, (this.#peers.get(at)?.successes ?? 0) + 1);
    this.#peers.delete(at);
    this.#peers.set(at, { address: at, lastSeen: now, successes });
    for (const oldest of this.#peers.keys()) {
      if (this.#peers.size <= PEER_CACHE_MAX) break;
      this.#peers.delete(oldest);
    }
  }

  failed(at: Address): void {
    const peer = this.#peers.get(at);
    if (peer === undefined) return;
    if (peer.successes <= 1) this.#peers.delete(at);
    else this.#peers.set(at, { ...peer, successes: peer.successes - 1 });
  }

  /** Peers worth trying, the most reliable and most recent first. */
  candidates(now: number): readonly CachedPeer[] {
    return [...this.#peers.values()]
      .filter(({ lastSeen }) => now - lastSeen <= this.#ttlMs)
      .sort((a, b) => b.successes - a.successes || b.lastSeen - a.lastSeen);
  }
}

/** From a file that anything may have happened to: what cannot be read is left out. */
export function readCachedPeers(value: unknown): readonly CachedPeer[] {
  if (!Array.isArray(value)) return [];
  const peers: CachedPeer[] = [];
  for (const item of value.slice(0, PEER_CACHE_MAX) as unknown[]) {
    if (typeof item !== "object" || item === null) continue;
    const { address: at, lastSeen, successes } = item as Record<string, unknown>;
    if (typeof at !== "string" || at === "" || at.length > 80) continue;
    if (typeof lastSeen !== "number" || typeof successes !== "number") continue;
    if (!Number.isFinite(lastSeen) || !(successes >= 1 && successes <= SUCCESSES_MAX)) continue;
    peers.push({ address: address(at), lastSeen, successes });
  }
  return peers;
}
