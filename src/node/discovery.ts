/** Finds members to join: configured seeds, DNS and the peers of former lives. */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Address } from "../core/base/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { formatAddress, parseAddress } from "../wire/address.ts";
import type { Agent } from "./agent.ts";
import type { AgentConfig } from "./agent-config.ts";

export interface DiscoveryOptions {
  readonly agent: Agent;
  readonly config: AgentConfig;
  readonly log: Log;
  readonly clock: Clock;
}

export class Discovery {
  readonly #options: DiscoveryOptions;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  start(): void {
    const { seeds } = this.#options.config;
    void this.add(seeds.map(({ host, port }) => formatAddress(host, port)));
  }

  stop(): void {}

  async add(addresses: readonly string[]): Promise<readonly string[]> {
    const found: Address[] = [];
    for (const text of addresses) {
      const parsed = parseAddress(text);
      if (!parsed.ok) continue;
      if (isIP(parsed.host) !== 0) found.push(parsed.address);
      else {
        const hosts = await lookup(parsed.host, { all: true }).catch(() => []);
        for (const { address } of hosts) found.push(formatAddress(address, parsed.port));
      }
    }
    this.#options.agent.join(found);
    return found;
  }
}
