/** Addresses of gates and managers as people write them: numeric ones, and host names that are resolved first. */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Address } from "../core/base/ids.ts";
import { formatAddress, parseAddress } from "../wire/address.ts";
import { ClusterError } from "./errors.ts";

/** Numeric addresses tried per name. */
const ADDRESSES_PER_NAME_MAX = 16;
/** The system's resolver waits much longer for dead name servers. */
const NAME_MS = 5_000;

/** All numeric addresses of a host; rejects when it has none. */
type Lookup = (host: string) => Promise<readonly string[]>;

interface HostName {
  readonly host: string;
  readonly port: number;
}

interface Places {
  readonly numeric: readonly Address[];
  readonly names: readonly HostName[];
}

/** Throws at text that is no address. */
export function placesIn(texts: readonly string[]): Places {
  const numeric: Address[] = [];
  const names: HostName[] = [];
  for (const text of texts) {
    const parsed = parseAddress(text);
    if (!parsed.ok) throw new ClusterError(parsed.problem, "invalid");
    const { address, host, port } = parsed;
    if (!/:\d+$/.test(text))
      throw new ClusterError(`"${text}" has no port: write ${text}:PORT`, "invalid");
    if (isIP(host) === 0) names.push({ host, port });
    else numeric.push(address);
  }
  return { numeric, names };
}

/** Resolves all names; throws when none has an address. `pause`: resolves after this many milliseconds. */
export async function resolveNames(
  names: readonly HostName[],
  pause: (ms: number) => Promise<unknown>,
  find: Lookup = systemLookup,
): Promise<readonly Address[]> {
  const problems: ClusterError[] = [];
  const found = await Promise.all(
    names.map(({ host, port }) =>
      Promise.race([find(host), pause(NAME_MS).then(() => late(host))]).then(
        (hosts) => hosts.slice(0, ADDRESSES_PER_NAME_MAX).map((one) => formatAddress(one, port)),
        (error: unknown) => {
          problems.push(unresolved(host, error));
          return [];
        },
      ),
    ),
  );
  const [problem] = problems;
  const addresses = [...new Set(found.flat())];
  if (addresses.length === 0 && problem !== undefined) throw problem;
  return addresses;
}

async function systemLookup(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function late(host: string): never {
  throw new Error(`no name server answered for ${host} within ${NAME_MS / 1_000} s`);
}

/** An unknown name is a mistake; a name server that does not answer may answer later. */
function unresolved(host: string, error: unknown): ClusterError {
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  const why = code === "ENOTFOUND" ? "no such host" : code === "" ? message : code;
  const text = `the host name "${host}" has no address (${why}); check it, or write a numeric address`;
  return new ClusterError(text, code === "ENOTFOUND" ? "invalid" : null);
}
