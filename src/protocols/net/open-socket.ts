/**
 * Opens a socket to an origin, for every protocol: to the resolved address, by its route, and secured where required.
 * Through a proxy it takes two steps: a tunnel first (`openTunnel`), then TLS over it (`secure`).
 */

import net from "node:net";
import tls from "node:tls";
import { noteOnce } from "./notes.ts";
import type { Origin } from "./origin.ts";

export interface SocketOptions {
  /** Accepts any certificate, unless the route overrides it. */
  readonly insecure: boolean;
  /** Number of the virtual user that the connection is for. */
  readonly user: number;
  /** Protocol to negotiate over TLS. */
  readonly alpn?: string;
  /** Reads into a buffer of the caller instead of emitting `data` events; not with a tunnel. */
  readonly onread?: net.OnReadOpts;
}

export function openSocket(origin: Origin, options: SocketOptions): net.Socket {
  const { onread } = options;
  const given = { ...connectOptionsOf(origin), ...(onread === undefined ? {} : { onread }) };
  if (!origin.secure) return net.connect(given);
  try {
    return tls.connect({ ...given, ...tlsOptions(origin, options) });
  } catch (error) {
    return broken(error);
  }
}

/** Starts TLS over an open tunnel; returns the tunnel itself for an origin without TLS. */
export function secure(tunnel: net.Socket, origin: Origin, options: SocketOptions): net.Socket {
  return origin.secure ? upgrade(tunnel, origin, options) : tunnel;
}

/** Starts TLS on a socket that was used in plain text before. */
export function upgrade(plain: net.Socket, origin: Origin, options: SocketOptions): net.Socket {
  try {
    return tls.connect({ socket: plain, ...tlsOptions(origin, options) });
  } catch (error) {
    plain.destroy();
    return broken(error);
  }
}

/** Address and port to connect to, and the local address. */
export function connectOptionsOf(origin: Origin): net.TcpNetConnectOpts {
  const localAddress = origin.route?.nextLocalAddress();
  return {
    ...origin.nextAddress(),
    noDelay: true,
    ...(localAddress === undefined ? {} : { localAddress }),
  };
}

/** TLS options for an origin, also for drivers that open their own connections. */
export function tlsOptions(origin: Origin, options: SocketOptions): tls.ConnectionOptions {
  const { hostname, route } = origin;
  const insecure = route?.options.insecure ?? options.insecure;
  if (insecure) {
    noteOnce(
      `TLS certificates of ${hostname}:${origin.port} were NOT verified (insecure): ` +
        "any server was trusted",
    );
  }
  const name = route?.options.serverName ?? hostname;
  return {
    // A certificate cannot be selected by an IP address, but must contain it. Node would verify the machine that it
    // connects to: the proxy, or the override.
    ...(net.isIP(name) === 0
      ? { servername: name }
      : { checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate) }),
    ...(options.alpn === undefined ? {} : { ALPNProtocols: [options.alpn] }),
    ...(route === null ? {} : { secureContext: route.secureContext(options.user) }),
    rejectUnauthorized: !insecure,
  };
}

/** An unusable certificate or key fails the connection like any other TLS error. */
function broken(error: unknown): net.Socket {
  const text = error instanceof Error ? error.message : String(error);
  const failure = new Error(`the client certificate cannot be used: ${text}`, { cause: error });
  return new net.Socket().destroy(Object.assign(failure, { code: "ERR_TLS_CLIENT_CERTIFICATE" }));
}
