/** A socket to an origin, for every protocol: to the address looked up before, and secured where it asks for it. */

import net from "node:net";
import tls from "node:tls";
import type { Origin } from "./origin.ts";

export interface SocketOptions {
  /** Accept any certificate. */
  readonly insecure: boolean;
  /** What to agree on over TLS. */
  readonly alpn?: string;
  /** Reads into a buffer of the caller's instead of `data` events. */
  readonly onread?: net.OnReadOpts;
}

export function openSocket(origin: Origin, { alpn, insecure, onread }: SocketOptions): net.Socket {
  const { address, hostname, port, secure } = origin;
  const options = {
    host: address?.address ?? hostname,
    port,
    noDelay: true,
    ...(onread === undefined ? {} : { onread }),
  };
  if (!secure) return net.connect(options);
  return tls.connect({
    ...options,
    // An address is no name that a certificate could be chosen by.
    ...(net.isIP(hostname) === 0 ? { servername: hostname } : {}),
    ...(alpn === undefined ? {} : { ALPNProtocols: [alpn] }),
    rejectUnauthorized: !insecure,
  });
}
