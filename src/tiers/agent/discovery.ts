/**
 * Finds members to join and keeps finding them: configured seeds, DNS, and the peers of former lives.
 * The rules are those of `core/cluster/discovery`; here they meet the resolver, the sockets and a small file.
 */

import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { errorText } from "../../core/base/error-text.ts";
import type { Address } from "../../core/base/ids.ts";
import { Random } from "../../core/base/random.ts";
import {
  BOOTSTRAP_DEFAULTS,
  Bootstrap,
  type BootstrapEffect,
  type BootstrapInput,
} from "../../core/cluster/discovery/bootstrap.ts";
import { PeerCache, readCachedPeers } from "../../core/cluster/discovery/peer-cache.ts";
import type { Background, Work } from "../../host/background.ts";
import { resolveName } from "../../host/dns.ts";
import type { Driven } from "../../host/loop.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { formatAddress, parseAddress } from "../../wire/address.ts";
import type { Agent } from "./agent.ts";
import type { AgentConfig } from "./config.ts";

interface DiscoveryOptions {
  readonly agent: Agent;
  readonly config: AgentConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly background: Background;
}

/** Former peers are worth a try this long; an address reused by a stranger is refused by its greeting. */
const CACHE_TTL_MS = 7 * 24 * 3_600_000;
const CACHE_SAVE_MS = 30_000;

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #cache: PeerCache;
  readonly #file: string;
  readonly #driven: Driven<BootstrapInput>;
  readonly #saver: Work;
  /** Rises when probes are cancelled; answers to earlier ones are nobody's. */
  #round = 0;
  #stopped = false;
  #saved = "";

  private constructor(options: DiscoveryOptions, cache: PeerCache, file: string) {
    this.#options = options;
    this.#cache = cache;
    this.#file = file;
    const { config, agent, clock } = options;
    const numeric = config.seeds.filter(({ host }) => isIP(host) !== 0);
    const named = config.seeds.filter(({ host }) => isIP(host) === 0);
    const seeds = numeric.map(({ host, port }) => formatAddress(host, port));
    const bootstrap = new Bootstrap(
      {
        self: config.address,
        cached: cache.candidates(clock.wall()).map(({ address }) => address),
        seeds,
        names: [...named.map(({ host, port }) => `${host}:${port}`), ...config.dnsNames],
        config: BOOTSTRAP_DEFAULTS,
      },
      new Random(randomBytes(16).toString("hex")),
    );
    this.#driven = agent.drive<BootstrapInput, BootstrapEffect>(
      bootstrap,
      { kind: "tick" },
      (effect) => this.#run(effect),
    );
    this.#saver = options.background.every("save peers", CACHE_SAVE_MS, () => this.#save());
    // Configured addresses are tried by membership itself, for ever. (CONF-3)
    if (seeds.length > 0) agent.join(seeds);
  }

  static async open(options: DiscoveryOptions): Promise<Discovery> {
    const file = join(options.config.dataDir, "peers.json");
    const text = await readFile(file, "utf8").catch(() => "[]");
    const peers = readCachedPeers(parseJson(text));
    return new Discovery(options, new PeerCache(CACHE_TTL_MS, peers), file);
  }

  start(): void {
    this.#driven.push({ kind: "start" });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#saver.cancel();
    await this.#save();
  }

  /** Membership changed: somebody found us, or the last peer went. */
  onMembersChanged(): void {
    if (this.#stopped) return;
    this.#driven.push({ kind: "peers", addresses: this.#livePeers() });
  }

  /** An operator names addresses to join now; what they came to mean. */
  async add(texts: readonly string[]): Promise<readonly Address[]> {
    const found: Address[] = [];
    const { bind } = this.#options.config;
    for (const text of texts) {
      const parsed = parseAddress(text, bind.port);
      if (!parsed.ok) continue;
      if (isIP(parsed.host) !== 0) {
        found.push(parsed.address);
        continue;
      }
      const { dnsTimeoutMs } = BOOTSTRAP_DEFAULTS;
      const answer = await resolveName(text, bind.port, dnsTimeoutMs).catch(() => null);
      found.push(...(answer?.addresses ?? []));
    }
    if (found.length > 0) this.#options.agent.join(found);
    return found;
  }

  #run(effect: BootstrapEffect): undefined {
    const { agent, log, background } = this.#options;
    switch (effect.kind) {
      case "resolve":
        background.run(`resolve ${effect.name}`, () =>
          this.#resolve(effect.name, effect.timeoutMs),
        );
        return;
      case "probe":
        this.#probe(effect);
        return;
      case "cancelProbes":
        this.#round++;
        return;
      case "join":
        agent.join([effect.address]);
        return;
      case "stateChanged":
        log.event("info", "discovery.state", { from: effect.from, to: effect.to });
        return;
    }
  }

  async #resolve(name: string, timeoutMs: number): Promise<void> {
    const { log, config } = this.#options;
    try {
      const { addresses, ttlMs } = await resolveName(name, config.bind.port, timeoutMs);
      this.#push({ kind: "resolved", name, addresses, ttlMs });
    } catch (error) {
      const problem = errorText(error);
      log.event("warn", "discovery.unresolved", { name, problem });
      this.#push({ kind: "resolveFailed", name });
    }
  }

  #probe({ address, delayMs, timeoutMs }: Extract<BootstrapEffect, { kind: "probe" }>): void {
    const round = this.#round;
    this.#options.background.after("probe a seed", delayMs, () => {
      if (this.#stopped || round !== this.#round) return;
      this.#options.agent.transports.probe(address, timeoutMs, (answered) => {
        if (answered) this.#cache.succeeded(address, this.#options.clock.wall());
        else this.#cache.failed(address);
        if (round === this.#round) this.#push({ kind: "probed", address, answered });
      });
    });
  }

  #push(input: BootstrapInput): void {
    if (!this.#stopped) this.#driven.push(input);
  }

  #livePeers(): readonly Address[] {
    const { self, members } = this.#options.agent.view();
    return members
      .filter(({ status, id }) => id !== self.id && (status === "alive" || status === "suspect"))
      .map(({ record }) => record.address);
  }

  /** Whole or not at all; losing it costs a restart some speed, never correctness. */
  async #save(): Promise<void> {
    const now = this.#options.clock.wall();
    for (const address of this.#livePeers()) this.#cache.succeeded(address, now);
    const candidates = this.#cache.candidates(now);
    const names = candidates.map(({ address }) => address).join();
    if (names === this.#saved) return;
    this.#saved = names;
    try {
      await mkdir(this.#options.config.dataDir, { recursive: true, mode: 0o700 });
      await writeFile(`${this.#file}.new`, JSON.stringify(candidates), { mode: 0o600 });
      await rename(`${this.#file}.new`, this.#file);
    } catch (error) {
      const problem = errorText(error);
      this.#options.log.event("warn", "discovery.cacheNotSaved", { problem });
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
