/**
 * Resolves names to addresses: A and AAAA records, and SRV for names that begin with an underscore. DNS first, for its
 * TTLs; the system's other sources (hosts file) when DNS has no answer. (AD-28.4)
 */

import { lookup, Resolver } from "node:dns/promises";
import type { Address } from "../core/base/ids.ts";
import { formatAddress } from "../wire/address.ts";

interface DnsAnswer {
  readonly addresses: readonly Address[];
  /** Null when no record named one. */
  readonly ttlMs: number | null;
}

const ADDRESSES_MAX = 4_096;
const SRV_TARGETS_MAX = 64;

/** Rejects when the name has no address. */
export async function resolveName(
  name: string,
  defaultPort: number,
  timeoutMs: number,
  /** Name servers to use instead of the system's. */
  servers?: readonly string[],
): Promise<DnsAnswer> {
  const [host = "", port] = name.split(":");
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  if (!host.startsWith("_")) {
    return await resolveHost(resolver, host, port === undefined ? defaultPort : Number(port));
  }
  const records = await resolver.resolveSrv(host);
  // Lower priority numbers are preferred; weights are left to the order in which peers are tried.
  records.sort((a, b) => a.priority - b.priority);
  const answers = await Promise.all(
    records
      .slice(0, SRV_TARGETS_MAX)
      .map((record) => resolveHost(resolver, record.name, record.port).catch(() => NOBODY)),
  );
  return merge(answers);
}

const NOBODY: DnsAnswer = { addresses: [], ttlMs: null };

async function resolveHost(resolver: Resolver, host: string, port: number): Promise<DnsAnswer> {
  const [v4, v6] = await Promise.allSettled([
    resolver.resolve4(host, { ttl: true }),
    resolver.resolve6(host, { ttl: true }),
  ]);
  const records = [
    ...(v4.status === "fulfilled" ? v4.value : []),
    ...(v6.status === "fulfilled" ? v6.value : []),
  ];
  if (records.length > 0) {
    return {
      addresses: records.slice(0, ADDRESSES_MAX).map(({ address }) => formatAddress(address, port)),
      ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1_000,
    };
  }
  const found = await lookup(host, { all: true });
  return { addresses: found.map(({ address }) => formatAddress(address, port)), ttlMs: null };
}

function merge(answers: readonly DnsAnswer[]): DnsAnswer {
  const times = answers.map(({ ttlMs }) => ttlMs).filter((ttlMs) => ttlMs !== null);
  const addresses = [...new Set(answers.flatMap((answer) => answer.addresses))];
  if (addresses.length === 0) throw new Error("no target of the service has an address");
  return { addresses, ttlMs: times.length === 0 ? null : Math.min(...times) };
}
