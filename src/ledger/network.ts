/** Network configuration of the ledger's machine: its own name, the peers it calls, and its keys. */

import { randomBytes } from "node:crypto";
import { QUEUE_LIMITS } from "../core/cluster/link/limits.ts";
import { LINK_RULES } from "../core/cluster/link/rules.ts";
import { describeLedger } from "../core/cluster/node/describe-ledger.ts";
import type { LedgerPeersOptions } from "../core/cluster/node/ledger-peers.ts";
import { PROCESS_RULES } from "../core/cluster/node/rules.ts";
import { deflate } from "../host/deflate.ts";
import { nodeAead } from "../host/node-aead.ts";
import type { Log } from "../host/ports/log.ts";
import { warnOfExposure } from "../host/secret-exposure.ts";
import { TcpPort } from "../host/tcp.ts";
import { readTlsMaterial } from "../host/tls.ts";
import { formatAddress, hostOf } from "../wire/address.ts";
import { KeyRing } from "../wire/key-ring.ts";
import { spoken } from "../wire/version.ts";
import { type LedgerConfig, sitesOf } from "./config.ts";

/** A peer keeps one connection to us, and a second while it replaces it; strangers have the rest. */
const PLACES = { total: 256, perHost: 128, forMembers: 128 };
/** Workers, clients and gates keep one to managers or gates, too; many may live on one host. */
const CALLED_PLACES = { total: 4_096, perHost: 1_024, forMembers: 128 };

/** Connections are closed at once until somebody drives the port. */
export function listen(config: LedgerConfig): Promise<TcpPort> {
  const tls =
    config.tls === null ? null : readTlsMaterial(config.tls as NonNullable<typeof config.tls>);
  const hosts = new Set(config.peers.map(({ address }) => hostOf(address)));
  const isMember = (host: string): boolean => hosts.has(host);
  return TcpPort.listen({
    ...config.bind,
    tls,
    places: config.service === "ledger" ? PLACES : CALLED_PLACES,
    isMember,
  });
}

/** Throws when the secrets cannot be used. */
export function readRing(config: LedgerConfig, log: Log): KeyRing {
  const { cluster, environment, readSecrets, secretFile } = config;
  warnOfExposure(secretFile, log);
  const made = KeyRing.create(nodeAead, readSecrets(), `${cluster}/${environment}`);
  if (!made.ok) throw new Error(made.problem);
  if (config.readClientSecrets === null) return made.ring;
  const opened = made.ring.withClients(nodeAead, config.readClientSecrets());
  if (!opened.ok) throw new Error(`secrets of clients: ${opened.problem}`);
  return opened.ring;
}

export function peersOptions(
  config: LedgerConfig,
  ring: KeyRing,
  version: string,
): LedgerPeersOptions {
  const says = spoken(config.protocolMinor);
  return {
    hello: {
      cluster: config.cluster,
      environment: config.environment,
      ...says,
      // Deflating what goes to a neighbour's disk in the same millisecond costs more than it saves.
      capabilities: says.capabilities.filter((capability) => capability !== "compression"),
      nodeVersion: version,
      node: config.name,
      address: formatAddress(config.bind.host, config.bind.port),
      role: config.role,
      datacenter: config.region,
    },
    ledger: describeLedger(sitesOf(config), config.node),
    peers: config.peers,
    ring,
    entropy: randomBytes,
    compressor: deflate,
    limits: QUEUE_LIMITS,
    rules: { link: LINK_RULES, peers: PROCESS_RULES },
  };
}
