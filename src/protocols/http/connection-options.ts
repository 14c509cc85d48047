/** Connection options of a target, as users write them; checks them and turns them into a route. */

import net from "node:net";
import { type Duration, parseDuration } from "../../core/base/duration.ts";
import { didYouMean } from "../../core/base/nearest.ts";
import { proxyOf } from "../net/proxy.ts";
import {
  type ClientCertificate,
  type DnsPolicy,
  type HostAddress,
  type PemSource,
  Route,
} from "../net/route.ts";
import { FilePart } from "./file-part.ts";
import { nameOf } from "./plain-data.ts";

/** PEM: as text, as bytes, or in a file. */
type Pem = string | Uint8Array | FilePart;

export interface UserCertificate {
  readonly cert: string | Uint8Array;
  readonly key: string | Uint8Array;
  readonly passphrase?: string;
}

export interface ConnectionOptions {
  /** Authorities to trust instead of the system's. */
  readonly ca?: Pem | readonly Pem[];
  /** Client certificate with its chain, and its key. */
  readonly cert?: Pem;
  readonly key?: Pem;
  readonly passphrase?: string;
  /** Returns the certificate of a virtual user by its number; called once per connection. */
  readonly certificate?: (user: number) => UserCertificate;
  /** Name that TLS requests (SNI) and verifies, if it differs from the host of the address. */
  readonly serverName?: string;
  /** Accepts any certificate. The result says so. */
  readonly insecure?: boolean;
  /**
   * "http://user:password@proxy:3128"; false disables proxies. By default HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply.
   */
  readonly proxy?: string | false;
  /** Overrides the addresses of hosts: { "shop.test": "127.0.0.1:8443" }. Connections rotate through a list. */
  readonly hosts?: Readonly<Record<string, string | readonly string[]>>;
  /** Local addresses to connect from; connections rotate through a list. */
  readonly localAddress?: string | readonly string[];
  readonly dns?: DnsOptions;
}

interface DnsOptions {
  /** How long a lookup is reused for new connections; the whole run by default. */
  readonly ttl?: Duration;
  /** "user": each new connection takes the next address of the host; "core": all take the first. */
  readonly per?: "core" | "user";
  /** DNS servers to query instead of the system's: "127.0.0.1:5353". */
  readonly servers?: readonly string[];
}

/** The names of `ConnectionOptions`; the compiler keeps the list complete. */
const NAMES: Readonly<Record<keyof ConnectionOptions, true>> = {
  ca: true,
  cert: true,
  certificate: true,
  dns: true,
  hosts: true,
  insecure: true,
  key: true,
  localAddress: true,
  passphrase: true,
  proxy: true,
  serverName: true,
};

export const CONNECTION_OPTION_NAMES: readonly string[] = Object.keys(NAMES);

/** Returns null when the options add nothing to the address. Throws for invalid options. */
export function routeOf(options: ConnectionOptions): Route | null {
  const { ca, hosts, insecure, localAddress, serverName } = options;
  const given = {
    ...(ca === undefined ? {} : { ca: listOf(ca).map((item) => pemSource(item, "ca")) }),
    ...certificatesOf(options),
    ...(serverName === undefined ? {} : { serverName: textOf(serverName, "serverName") }),
    ...(insecure === undefined ? {} : { insecure }),
    ...proxyOptionOf(options.proxy),
    ...(hosts === undefined ? {} : { hosts: hostsOf(hosts) }),
    ...(localAddress === undefined
      ? {}
      : { localAddresses: listOf(localAddress).map((item) => ipOf(item, "localAddress")) }),
    ...(options.dns === undefined ? {} : { dns: dnsOf(options.dns) }),
  };
  return Object.keys(given).length === 0 ? null : new Route(given);
}

function certificatesOf({ cert, certificate, key, passphrase }: ConnectionOptions): {
  readonly certificate?: () => ClientCertificate;
  readonly certificateOf?: (user: number) => ClientCertificate;
} {
  if (certificate !== undefined) {
    if (cert !== undefined || key !== undefined)
      throw new TypeError("certificate is called for each user: leave out cert and key");
    if (typeof certificate !== "function")
      throw new TypeError(
        "certificate is a function of the user's number: (user) => ({ cert, key })",
      );
    return { certificateOf: (user) => checkedCertificate(certificate(user)) };
  }
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined || key === undefined)
    throw new TypeError(
      `cert and key go together: ${cert === undefined ? "cert" : "key"} is missing`,
    );
  const readCert = pemSource(cert, "cert");
  const readKey = pemSource(key, "key");
  return {
    certificate: () => ({
      cert: readCert(),
      key: readKey(),
      ...(passphrase === undefined ? {} : { passphrase }),
    }),
  };
}

/** Null and undefined come from users' own tables, for a user that is missing in them. */
function checkedCertificate(given: UserCertificate | null | undefined): ClientCertificate {
  const { cert, key, passphrase } = given ?? {};
  if (cert === undefined || key === undefined) throw new TypeError("it needs cert and key");
  return {
    cert: pemSource(cert, "cert")(),
    key: pemSource(key, "key")(),
    ...(passphrase === undefined ? {} : { passphrase }),
  };
}

function pemSource(value: Pem, name: string): PemSource {
  if (typeof value === "string") {
    if (!value.includes("-----BEGIN "))
      throw new TypeError(`${name} is not PEM text; write file("${value}") if it is a path`);
    return () => value;
  }
  if (value instanceof Uint8Array) return () => Buffer.from(value);
  if (!(value instanceof FilePart))
    throw new TypeError(`${name} is ${nameOf(value)}: write PEM text or file("…")`);
  return () => {
    const { content } = value;
    if (content instanceof Uint8Array) return content;
    throw new TypeError(`${name}: file("${value.path}") is too long for a certificate`);
  };
}

function proxyOptionOf(value: string | false | undefined): Pick<Route["options"], "proxy"> {
  if (value === undefined) return {};
  return { proxy: value === false ? null : proxyOf(textOf(value, "proxy"), "proxy") };
}

function hostsOf(
  values: NonNullable<ConnectionOptions["hosts"]>,
): ReadonlyMap<string, readonly HostAddress[]> {
  return new Map(
    Object.entries(values).map(([name, value]) => [
      name.toLowerCase(),
      listOf(value).map((item) => addressOf(item, `hosts["${name}"]`)),
    ]),
  );
}

/** "127.0.0.1", "127.0.0.1:8443", "[::1]:8443", "other.test". */
function addressOf(text: string, name: string): HostAddress {
  if (net.isIPv6(text)) return { host: text, port: null };
  const [, bracketed, plain, port] =
    /^(?:\[([^\]]+)\]|([^:/\s]+))(?::(\d{1,5}))?$/.exec(textOf(text, name)) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port ?? 1) > 65_535 || Number(port ?? 1) < 1)
    throw new TypeError(`${name}: "${text}" is neither a host nor host:port`);
  return { host, port: port === undefined ? null : Number(port) };
}

function dnsOf({ per = "core", servers = [], ttl, ...rest }: DnsOptions): DnsPolicy {
  for (const name of Object.keys(rest))
    throw new TypeError(
      `dns has no option "${name}"${didYouMean(name, ["per", "servers", "ttl"])}`,
    );
  if (per !== "core" && per !== "user") throw new TypeError('dns.per is "core" or "user"');
  const parsed = ttl === undefined ? null : parseDuration(ttl);
  if (parsed?.ok === false) throw new TypeError(`dns.ttl: ${parsed.problem}`);
  return {
    ttlMs: parsed?.ms ?? Number.POSITIVE_INFINITY,
    rotates: per === "user",
    servers: servers.map((server) => {
      const { host } = addressOf(server, "dns.servers");
      ipOf(host, "dns.servers");
      return server;
    }),
  };
}

function ipOf(text: string, name: string): string {
  if (net.isIP(text) === 0) throw new TypeError(`${name}: "${text}" is not an IP address`);
  return text;
}

function textOf(value: unknown, name: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new TypeError(`${name} is ${value === "" ? "empty" : nameOf(value)}: write a text`);
}

function listOf<Item>(value: Item | readonly Item[]): readonly Item[] {
  return Array.isArray(value) ? (value as readonly Item[]) : [value as Item];
}
