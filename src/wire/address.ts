/** Addresses as people write them: `host:port`, `host`, `[v6]:port`, `[v6]`. (BOOT-13) */

import { ADDRESS_BYTES_MAX, type Address, address } from "../core/base/ids.ts";

export const DEFAULT_PORT = 7946;

type AddressResult =
  | { readonly ok: true; readonly host: string; readonly port: number; readonly address: Address }
  | { readonly ok: false; readonly problem: string };

export function parseAddress(text: string, defaultPort = DEFAULT_PORT): AddressResult {
  const match =
    /^\[([0-9a-fA-F:.%\w]+)\](?::(\d{1,5}))?$/.exec(text) ??
    /^([^\s:[\]/]+)(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1];
  if (host === undefined) {
    return refuse(`"${text.slice(0, 100)}" is not an address: write host:port or [v6]:port`);
  }
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  if (port < 1 || port > 65_535) return refuse(`"${text}" has port ${port}; 1 to 65535 exist`);
  // Brackets, colon and port included.
  if (host.length + 8 > ADDRESS_BYTES_MAX) return refuse(`"${text.slice(0, 100)}" is too long`);
  return { ok: true, host, port, address: formatAddress(host, port) };
}

export function formatAddress(host: string, port: number): Address {
  return address(host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
}

/** Key of a host in limits: an IPv4 address, or a whole /64 of IPv6. */
export function hostKey(host: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  if (!host.includes(":")) return host;
  const [front = "", back] = host.toLowerCase().split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const head = groups(front);
  const tail = back === undefined ? [] : groups(back);
  const zeros = Math.max(0, 8 - head.length - tail.length);
  const whole = [...head, ...new Array<string>(back === undefined ? 0 : zeros).fill("0"), ...tail];
  return whole.slice(0, 4).join(":");
}

/** The host of an address that a socket or a decoder has made. */
export function hostOf(of: Address): string {
  const host = of.slice(0, of.lastIndexOf(":"));
  return host.startsWith("[") ? host.slice(1, -1) : host;
}

function refuse(problem: string): AddressResult {
  return { ok: false, problem };
}
