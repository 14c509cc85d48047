/** Resolves host names once per core; every later call uses the cached addresses. (OPT-4) */

import { lookup, Resolver } from "node:dns/promises";
import net from "node:net";
import { type DnsPolicy, SYSTEM_DNS } from "./route.ts";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

const HOSTS_MAX = 4_096;
const known = new Map<string, Promise<readonly ResolvedAddress[]>>();

/** Returns every address of the host, the preferred one first. */
export function resolveHost(
  host: string,
  policy: DnsPolicy = SYSTEM_DNS,
): Promise<readonly ResolvedAddress[]> {
  const family = net.isIP(host);
  if (family !== 0) return Promise.resolve([{ address: host, family: family === 6 ? 6 : 4 }]);
  // Callers with a TTL or other servers cache the addresses themselves.
  if (policy.ttlMs !== Number.POSITIVE_INFINITY || policy.servers.length > 0)
    return lookUp(host, policy);
  let resolved = known.get(host);
  if (resolved === undefined) {
    if (known.size >= HOSTS_MAX) known.clear();
    resolved = lookUp(host, policy);
    known.set(host, resolved);
    // A failed lookup is not cached: the next call may succeed.
    resolved.catch(() => known.delete(host));
  }
  return resolved;
}

async function lookUp(host: string, { servers }: DnsPolicy): Promise<readonly ResolvedAddress[]> {
  try {
    if (servers.length > 0) return await ask(host, servers);
    const found = await lookup(host, { family: 0, verbatim: false, all: true });
    return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new Error(`cannot resolve the host name "${host}" (${code})`, { cause });
  }
}

/** IPv4 first, like the system's lookup above. */
async function ask(host: string, servers: readonly string[]): Promise<ResolvedAddress[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  resolver.setServers(servers);
  try {
    const addresses = await resolver.resolve4(host);
    return addresses.map((address) => ({ address, family: 4 }));
  } catch (error) {
    const addresses = await resolver.resolve6(host).catch(() => {
      throw error;
    });
    return addresses.map((address) => ({ address, family: 6 }));
  }
}
