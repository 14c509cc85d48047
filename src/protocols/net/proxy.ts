/** Selects the proxy for an address, from the option or the environment of the run. */

import net from "node:net";
import type { Endpoint, ProxyAddress } from "./route.ts";

const DEFAULT_PORT = 8080;

/** "http://user:password@proxy.test:3128"; throws a readable message without the password. */
export function proxyOf(text: string, from: string): ProxyAddress {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(url)) throw new TypeError(`${from}: not the address of a proxy`);
  const { hostname, password, port, protocol, username } = new URL(url);
  if (protocol !== "http:") {
    throw new TypeError(`${from}: a proxy address begins with http://, not ${protocol}//`);
  }
  const credentials = `${unescaped(username)}:${unescaped(password)}`;
  return {
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? DEFAULT_PORT : Number(port),
    authorization:
      credentials === ":" ? "" : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

/** Keeps stray percent signs. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Null where the environment names none, or excludes this address. */
export function environmentProxy(endpoint: Endpoint): ProxyAddress | null {
  const name = endpoint.secure ? "https_proxy" : "http_proxy";
  const text = variable(name);
  if (text === "" || isLoopback(endpoint.hostname)) return null;
  if (isExcepted(endpoint, variable("no_proxy"))) return null;
  return proxyOf(text, name.toUpperCase());
}

function variable(name: string): string {
  return (process.env[name] ?? process.env[name.toUpperCase()] ?? "").trim();
}

/** As Go and curl do: a remote proxy cannot reach our own loopback. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (net.isIPv4(host) && host.startsWith("127."));
}

/** "*", or names that include their subdomains, each with an optional port. */
function isExcepted({ hostname, port }: Endpoint, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === "*") return true;
    const [, name = "", onlyPort] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (name === "" || (onlyPort !== undefined && Number(onlyPort) !== port)) return false;
    const host = hostname.toLowerCase();
    return host === name || host.endsWith(`.${name}`);
  });
}
