/**
 * Finds the first peer to join: candidates, probes, and retries. (BOOT-1..8, AD-28.1..3, AD-28.24..26, C31-25)
 *
 *     resolving → probing → joined
 *         ↑          ↓         ↓  alone again, or time to refresh
 *         └─────── backoff ←───┘
 *
 * Candidates are tried in order of likelihood: peers of former processes, configured addresses, DNS answers. At most
 * ten probes run at a time, the first answer wins, and probes are retried without end: a cluster that was down must
 * find itself. Once joined, membership heals on its own; names are still resolved periodically, because the addresses
 * behind a DNS name change.
 *
 * Only addresses are known here: whether the peer belongs to our cluster and speaks our protocol is checked by the
 * greeting of the stream that follows.
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";

interface BootstrapConfig {
  /** Milliseconds a candidate has to answer. Keep it above the round trip to the farthest seed. */
  readonly probeTimeoutMs: number;
  /** Probes under way at once. More find a live peer sooner and knock at more doors of a cold cluster. */
  readonly probesMax: number;
  /** Upper bound in milliseconds of each probe's uniform delay, so that nodes started together spread. */
  readonly probeJitterMs: number;
  /** Milliseconds of the first pause after all candidates were silent. */
  readonly backoffMs: number;
  /** Milliseconds up to which pauses grow. It bounds how late a cluster that comes up is found. */
  readonly backoffMaxMs: number;
  /** Each pause is this many times the one before; at least 1. */
  readonly backoffMultiplier: number;
  /** A pause is longer by up to this fraction; 0 lets nodes that failed together come back together. */
  readonly jitterFactor: number;
  /** Milliseconds to resolve a name; after twice this the rest continues without it. */
  readonly dnsTimeoutMs: number;
  /** Milliseconds an answer without a time to live is used. */
  readonly dnsCacheMs: number;
  /** Milliseconds before a name that could not be resolved is tried again. */
  readonly negativeCacheMs: number;
  /** Milliseconds after joining before names are resolved again: the addresses behind a name change. */
  readonly refreshMs: number;
  /** Upper bound in milliseconds of the uniform extra on `refreshMs`. */
  readonly refreshJitterMs: number;
  /**
   * Addresses that are tried in one round, and kept of one answer. A headless service has thousands of
   * pods; any of them will do, so a part is enough.
   */
  readonly candidatesMax: number;
}

export const BOOTSTRAP_DEFAULTS: BootstrapConfig = {
  probeTimeoutMs: 500,
  probesMax: 10,
  probeJitterMs: 100,
  backoffMs: 500,
  backoffMaxMs: 15_000,
  backoffMultiplier: 2,
  jitterFactor: 0.25,
  dnsTimeoutMs: 2_000,
  dnsCacheMs: 30_000,
  negativeCacheMs: 30_000,
  refreshMs: 60_000,
  refreshJitterMs: 5_000,
  candidatesMax: 256,
};

/** Relations between the numbers; a configuration that breaks one is refused at start. */
function checkBootstrapConfig(config: BootstrapConfig): void {
  const { probeTimeoutMs, dnsTimeoutMs, backoffMs, backoffMaxMs, refreshMs } = config;
  assert(config.probesMax >= 1, "at least one probe runs at a time");
  assert(config.candidatesMax >= 1, "at least one candidate is tried");
  assert(probeTimeoutMs > 0 && dnsTimeoutMs > 0, "an answer has time to come");
  assert(backoffMs > 0 && backoffMs <= backoffMaxMs, "pauses grow up to their maximum");
  assert(config.backoffMultiplier >= 1, "pauses do not shrink");
  assert(config.jitterFactor >= 0 && config.probeJitterMs >= 0, "jitter only adds");
  assert(refreshMs > 0 && config.refreshJitterMs >= 0, "names are not asked without a pause");
  assert(config.negativeCacheMs > 0 && config.dnsCacheMs >= 0, "a name that failed rests");
}

export interface BootstrapOptions {
  readonly self: Address;
  /** Peers of former processes, best first. */
  readonly cached: readonly Address[];
  readonly seeds: readonly Address[];
  /** Names to resolve by DNS. */
  readonly names: readonly string[];
  readonly config: BootstrapConfig;
}

type BootstrapState = "initial" | "resolving" | "probing" | "joined" | "backoff";

export type BootstrapInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | {
      readonly kind: "resolved";
      readonly name: string;
      readonly addresses: readonly Address[];
      /** Null when the answer named none. */
      readonly ttlMs: number | null;
    }
  | { readonly kind: "resolveFailed"; readonly name: string }
  | { readonly kind: "probed"; readonly address: Address; readonly answered: boolean }
  /** How many live peers membership knows, ourselves not counted, and where they are. */
  | { readonly kind: "peers"; readonly addresses: readonly Address[] };

export type BootstrapEffect =
  | { readonly kind: "resolve"; readonly name: string; readonly timeoutMs: number }
  | {
      readonly kind: "probe";
      readonly address: Address;
      readonly delayMs: number;
      readonly timeoutMs: number;
    }
  | { readonly kind: "cancelProbes" }
  | { readonly kind: "join"; readonly address: Address }
  | { readonly kind: "stateChanged"; readonly from: BootstrapState; readonly to: BootstrapState };

interface Answer {
  readonly addresses: readonly Address[];
  readonly freshUntil: number;
}

export class Bootstrap {
  readonly #options: BootstrapOptions;
  readonly #random: Random;
  readonly #answers = new Map<string, Answer>();
  readonly #asking = new Set<string>();
  #peers = new Set<Address>();
  #waiting: Address[] = [];
  readonly #probing = new Set<Address>();
  #state: BootstrapState = "initial";
  #attempt = 0;
  #wakeAt = Number.POSITIVE_INFINITY;
  #now = 0;
  #out: BootstrapEffect[] = [];

  constructor(options: BootstrapOptions, random: Random) {
    checkBootstrapConfig(options.config);
    this.#options = options;
    this.#random = random;
  }

  get state(): BootstrapState {
    return this.#state;
  }

  step(input: BootstrapInput, now: Millis): readonly BootstrapEffect[] {
    this.#now = now;
    this.#out = [];
    switch (input.kind) {
      case "start":
        this.#resolve();
        break;
      case "tick":
        if (now >= this.#wakeAt) this.#onWake();
        break;
      case "resolved":
        this.#onAnswer(input.name, input.addresses, input.ttlMs);
        break;
      case "resolveFailed":
        this.#onNoAnswer(input.name);
        break;
      case "probed":
        this.#onProbed(input.address, input.answered);
        break;
      case "peers":
        this.#onPeers(input.addresses);
        break;
    }
    return this.#out;
  }

  nextDeadline(): Millis | null {
    return Number.isFinite(this.#wakeAt) ? millis(this.#wakeAt) : null;
  }

  #onWake(): void {
    this.#wakeAt = Number.POSITIVE_INFINITY;
    // A resolver that never answered must not hold the rest up.
    if (this.#state === "resolving") for (const name of [...this.#asking]) this.#onNoAnswer(name);
    else this.#resolve();
  }

  /** Resolves every name whose answer is no longer fresh. */
  #resolve(): void {
    this.#become("resolving");
    this.#asking.clear();
    for (const name of this.#options.names) {
      if ((this.#answers.get(name)?.freshUntil ?? 0) > this.#now) continue;
      this.#asking.add(name);
      const timeoutMs = this.#options.config.dnsTimeoutMs;
      this.#out.push({ kind: "resolve", name, timeoutMs });
    }
    this.#wakeAt = this.#now + this.#options.config.dnsTimeoutMs * 2;
    this.#probeWhenResolved();
  }

  #onAnswer(name: string, addresses: readonly Address[], ttlMs: number | null): void {
    const { dnsCacheMs, candidatesMax } = this.#options.config;
    const freshUntil = this.#now + (ttlMs ?? dnsCacheMs);
    const some = this.#random.shuffle([...addresses]).slice(0, candidatesMax);
    this.#answers.set(name, { addresses: some, freshUntil });
    this.#asking.delete(name);
    this.#probeWhenResolved();
  }

  /** Keeps an old answer while the name cannot be resolved; it is not retried meanwhile. */
  #onNoAnswer(name: string): void {
    const freshUntil = this.#now + this.#options.config.negativeCacheMs;
    this.#answers.set(name, { addresses: this.#answers.get(name)?.addresses ?? [], freshUntil });
    this.#asking.delete(name);
    this.#probeWhenResolved();
  }

  #probeWhenResolved(): void {
    if (this.#state !== "resolving" || this.#asking.size > 0) return;
    const candidates = this.#candidates();
    if (candidates.length === 0) {
      // No peers are known: we are the first, unless a DNS name may still resolve to one.
      if (this.#options.names.length === 0 || this.#peers.size > 0) this.#joined();
      else this.#backOff();
      return;
    }
    this.#become("probing");
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#waiting = candidates;
    this.#probeMore();
  }

  /** Candidates without duplicates, ourselves, and current members. (BOOT-1, BOOT-8) */
  #candidates(): Address[] {
    const { cached, seeds, self, config } = this.#options;
    const answers = this.#options.names.flatMap((name) => this.#answers.get(name)?.addresses ?? []);
    const all = new Set<Address>([...cached, ...seeds, ...answers]);
    all.delete(self);
    for (const peer of this.#peers) all.delete(peer);
    return [...all].slice(0, config.candidatesMax);
  }

  #probeMore(): void {
    const { probesMax, probeJitterMs, probeTimeoutMs: timeoutMs } = this.#options.config;
    while (this.#probing.size < probesMax) {
      const address = this.#waiting.shift();
      if (address === undefined) return;
      this.#probing.add(address);
      const delayMs = this.#random.float() * probeJitterMs;
      this.#out.push({ kind: "probe", address, delayMs, timeoutMs });
    }
  }

  #onProbed(address: Address, answered: boolean): void {
    if (!this.#probing.delete(address) || this.#state !== "probing") return;
    if (answered) {
      this.#waiting = [];
      this.#probing.clear();
      this.#out.push({ kind: "cancelProbes" }, { kind: "join", address });
      this.#joined();
      return;
    }
    this.#probeMore();
    if (this.#probing.size > 0) return;
    // Silence of strangers is nothing to worry about while we have peers.
    if (this.#peers.size > 0) this.#joined();
    else this.#backOff();
  }

  #joined(): void {
    const { refreshMs, refreshJitterMs } = this.#options.config;
    this.#become("joined");
    this.#attempt = 0;
    const asksAgain = this.#options.names.length > 0;
    const waitMs = refreshMs + this.#random.float() * refreshJitterMs;
    this.#wakeAt = asksAgain ? this.#now + waitMs : Number.POSITIVE_INFINITY;
  }

  #backOff(): void {
    const { backoffMs, backoffMaxMs, backoffMultiplier, jitterFactor } = this.#options.config;
    this.#become("backoff");
    const base = Math.min(backoffMaxMs, backoffMs * backoffMultiplier ** this.#attempt);
    this.#attempt = Math.min(this.#attempt + 1, 32);
    this.#wakeAt = this.#now + base * (1 + jitterFactor * this.#random.float());
  }

  /** A peer found us, or the last peer is lost: then the search restarts. */
  #onPeers(addresses: readonly Address[]): void {
    const had = this.#peers.size > 0;
    this.#peers = new Set(addresses);
    const has = this.#peers.size > 0;
    if (had && !has && this.#state === "joined") this.#backOff();
    else if (has && this.#state === "backoff") this.#joined();
  }

  #become(to: BootstrapState): void {
    const from = this.#state;
    this.#state = to;
    if (from !== to) this.#out.push({ kind: "stateChanged", from, to });
  }
}
