/**
 * Targets that tasks of the `http` executor may reach. Any holder of a client token can submit a task; other services
 * in the node's network trust the node. Without a list, only public addresses are reachable.
 */

import { lookup } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";
import { NotRetryable } from "../worker/executor.ts";

export interface HttpPolicy {
  /**
   * Hosts that may be reached, and no others: `api.example.com`, `*.example.com`, an address, a network
   * (`10.1.0.0/16`), each with an optional `:port`; `public` stands for every public address. Default: `public`.
   */
  readonly allow?: readonly string[];
}

/** Networks that are not part of the public internet (IANA's special-purpose registries). */
const PRIVATE_IPV4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"],
  ...["198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
];
/** In IPv6 only 2000::/3 is public, without documentation, tunnels and translations to IPv4. */
const PUBLIC_IPV6 = "2000::/3";
const PRIVATE_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const privateNetworks = networks([...PRIVATE_IPV4, ...PRIVATE_IPV6]);
const publicIpv6 = networks([PUBLIC_IPV6]);

interface Rule {
  readonly port: number | undefined;
  /** A name without its `*`, `public`, or undefined for a network. */
  readonly name: string | undefined;
  readonly network: BlockList | undefined;
}

export class HttpTargets {
  readonly #rules: readonly Rule[];
  readonly #list: string;

  /** Throws on an invalid entry. */
  constructor({ allow = ["public"] }: HttpPolicy = {}) {
    this.#rules = allow.map(parseRule);
    this.#list = allow.join(", ");
  }

  /** Checks a URL before it is requested. The returned lookup checks the addresses that its name resolves to. */
  check(url: URL): LookupFunction {
    const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
    const port = Number(url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port);
    const rules = this.#rules.filter((rule) => rule.port === undefined || rule.port === port);
    const target = `${url.hostname}:${port}`;
    const refuse = (reason: string): NotRetryable =>
      new NotRetryable(
        `${url.protocol}//${target} is not allowed: ${reason}. This node allows: ${this.#list}. ` +
          `To allow it, start the node with --allow-http ${target}`,
      );
    if (isIP(host) !== 0) {
      if (!rules.some((rule) => admitsAddress(rule, host)))
        throw refuse(isPublic(host) ? "the address is not listed" : "it is not a public address");
      return lookup as LookupFunction;
    }
    if (rules.some((rule) => admitsName(rule, host))) return lookup as LookupFunction;
    if (!rules.some(({ name, network }) => name === "public" || network !== undefined))
      throw refuse("the host is not listed");
    return (name, options, done) => {
      lookup(name, { ...options, all: true }, (error, addresses) => {
        if (error !== null) return done(error, []);
        // All of them: a connection may try one after the other.
        const wrong = addresses.find(
          ({ address }) => !rules.some((rule) => admitsAddress(rule, address)),
        );
        if (wrong !== undefined)
          return done(refuse(`it resolves to ${wrong.address}, which is not listed`), []);
        const [first] = addresses;
        if (options.all === true || first === undefined) return done(null, addresses);
        return done(null, first.address, first.family);
      });
    };
  }
}

export function isPublic(address: string): boolean {
  const plain = unmapped(address);
  if (!isIPv6(plain)) return !privateNetworks.check(plain, "ipv4");
  return publicIpv6.check(plain, "ipv6") && !privateNetworks.check(plain, "ipv6");
}

function admitsAddress({ name, network }: Rule, address: string): boolean {
  if (name === "public") return isPublic(address);
  const plain = unmapped(address);
  return network?.check(plain, isIPv6(plain) ? "ipv6" : "ipv4") === true;
}

function admitsName({ name }: Rule, host: string): boolean {
  if (name === undefined || name === "public") return false;
  return name.startsWith(".") ? host.endsWith(name) : host === name;
}

function parseRule(text: string): Rule {
  const whole = text.trim().toLowerCase();
  if (isNetwork(whole)) return { port: undefined, name: undefined, network: networks([whole]) };
  const [, host = "", digits] = /^(.*?)(?::(\d{1,5}))?$/.exec(whole) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  if (isNetwork(bare)) return { port, name: undefined, network: networks([bare]) };
  const name = bare.startsWith("*.") ? bare.slice(1) : bare;
  if (/^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/.test(name)) return { port, name, network: undefined };
  throw new Error(
    `"${text}" is no host: write a name, *.domain, an address or a network, each with an optional :port, or public`,
  );
}

function isNetwork(text: string): boolean {
  const [, address = "", bits] = /^(.*?)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 6 ? 128 : 32);
}

function networks(list: readonly string[]): BlockList {
  const found = new BlockList();
  for (const one of list) {
    const [address = "", bits] = one.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    found.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return found;
}

/** `::ffff:127.0.0.1` and `::ffff:7f00:1` are IPv4 addresses. */
function unmapped(address: string): string {
  const [, dotted, high, low] =
    /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address) ?? [];
  if (dotted !== undefined) return dotted;
  if (high === undefined || low === undefined) return address;
  const bits = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
}
