/** Identity of a configured agent: for its machine, for its peers, and its keys. */

import { isIP } from "node:net";
import { nodeId } from "../../core/base/ids.ts";
import type { MemberOptions } from "../../core/cluster/node/member-types.ts";
import type { CachedPeer } from "../../core/membership/discovery/peer-cache.ts";
import { ELECTION_OF, ELECTION_PROFILES } from "../../core/membership/election/config.ts";
import { SWIM_PROFILES } from "../../core/membership/swim/config.ts";
import { nodeAead } from "../../host/node-aead.ts";
import { formatAddress } from "../../wire/address.ts";
import type { Hello } from "../../wire/hello.ts";
import { KeyRing } from "../../wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../wire/version.ts";
import type { AgentConfig } from "./config.ts";

export function memberOptionsOf(
  config: AgentConfig,
  version: string,
  formerPeers: readonly CachedPeer[],
): MemberOptions {
  const { name, address, role, datacenter, profile, voters, priority } = config;
  const numeric = config.seeds.filter(({ host }) => isIP(host) !== 0);
  const named = config.seeds.filter(({ host }) => isIP(host) === 0);
  return {
    self: {
      ...{ id: nodeId(name), address, role, datacenter },
      versionMajor: PROTOCOL.major,
      versionMinor: PROTOCOL.minor,
      meta: new Uint8Array(0),
    },
    hello: helloOf(config, version),
    swim: SWIM_PROFILES[profile],
    electorate:
      voters.length === 0
        ? null
        : {
            voters: voters.map(nodeId),
            config: ELECTION_PROFILES[ELECTION_OF[profile]],
            priority,
          },
    discovery: {
      seeds: numeric.map(({ host, port }) => formatAddress(host, port)),
      names: [...named.map(({ host, port }) => `${host}:${port}`), ...config.dnsNames],
      formerPeers,
    },
    ring: ringOf(config),
  };
}

/** Reloads the secrets; throws if they are unusable. */
export function ringOf(config: AgentConfig): KeyRing {
  const scope = `${config.cluster}/${config.environment}`;
  const made = KeyRing.create(nodeAead, config.readSecrets(), scope);
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

function helloOf(config: AgentConfig, version: string): Hello {
  const { cluster, environment, name, address, role, datacenter } = config;
  return {
    ...{ cluster, environment, node: name, address, role, datacenter },
    versionMajor: PROTOCOL.major,
    versionMinor: PROTOCOL.minor,
    capabilities: CAPABILITIES,
    nodeVersion: version,
  };
}
