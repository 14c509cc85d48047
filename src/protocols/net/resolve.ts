/** Host names are looked up once per core; every later call uses the remembered address. (OPT-4) */

import { lookup } from "node:dns/promises";
import net from "node:net";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

const HOSTS_MAX = 4_096;
const known = new Map<string, Promise<ResolvedAddress>>();

export function resolveHost(host: string): Promise<ResolvedAddress> {
  const family = net.isIP(host);
  if (family !== 0) return Promise.resolve({ address: host, family: family === 6 ? 6 : 4 });
  let resolved = known.get(host);
  if (resolved === undefined) {
    if (known.size >= HOSTS_MAX) known.clear();
    resolved = lookUp(host);
    known.set(host, resolved);
    // A failed look-up is not remembered: the next call may have better luck.
    resolved.catch(() => known.delete(host));
  }
  return resolved;
}

async function lookUp(host: string): Promise<ResolvedAddress> {
  try {
    const { address, family } = await lookup(host, { family: 0, verbatim: false });
    return { address, family: family === 6 ? 6 : 4 };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new Error(`cannot resolve the host name "${host}" (${code})`, { cause });
  }
}
