/**
 * A socket to an origin, for every protocol: to the address looked up before, by its route, and secured
 * where it asks for it. Through a proxy it takes two steps: a tunnel first (`openTunnel`), then TLS over
 * it (`secure`).
 */

import net from "node:net";
import tls from "node:tls";
import { noteOnce } from "./notes.ts";
import type { Origin } from "./origin.ts";

export interface SocketOptions {
  /** Accept any certificate, unless the route says otherwise. */
  readonly insecure: boolean;
  /** Number of the virtual user that the connection is for. */
  readonly user: number;
  /** What to agree on over TLS. */
  readonly alpn?: string;
  /** Reads into a buffer of the caller's instead of `data` events; not with a tunnel. */
  readonly onread?: net.OnReadOpts;
}

export function openSocket(origin: Origin, options: SocketOptions): net.Socket {
  const { onread } = options;
  const given = { ...placeOf(origin), ...(onread === undefined ? {} : { onread }) };
  if (!origin.secure) return net.connect(given);
  try {
    return tls.connect({ ...given, ...tlsOptions(origin, options) });
  } catch (error) {
    return broken(error);
  }
}

/** TLS over a tunnel that is open; the tunnel itself for an origin without TLS. */
export function secure(tunnel: net.Socket, origin: Origin, options: SocketOptions): net.Socket {
  return origin.secure ? upgrade(tunnel, origin, options) : tunnel;
}

/** TLS over a socket that has been spoken on in plain. */
export function upgrade(plain: net.Socket, origin: Origin, options: SocketOptions): net.Socket {
  try {
    return tls.connect({ socket: plain, ...tlsOptions(origin, options) });
  } catch (error) {
    plain.destroy();
    return broken(error);
  }
}

/** Address and port to connect to, and where from. */
export function placeOf(origin: Origin): net.TcpNetConnectOpts {
  const localAddress = origin.route?.nextLocalAddress();
  return {
    ...origin.nextAddress(),
    noDelay: true,
    ...(localAddress === undefined ? {} : { localAddress }),
  };
}

/** How TLS to an origin is made, by whoever makes it. */
export function tlsOptions(origin: Origin, options: SocketOptions): tls.ConnectionOptions {
  const { hostname, route } = origin;
  const insecure = route?.options.insecure ?? options.insecure;
  if (insecure) {
    noteOnce(
      `TLS certificates of ${hostname}:${origin.port} were NOT verified (insecure): ` +
        "whoever answered was believed",
    );
  }
  const name = route?.options.serverName ?? hostname;
  return {
    // An address is no name that a certificate could be chosen by, but one that it must hold; Node
    // would look for the machine that we really connect to: the proxy, or the override.
    ...(net.isIP(name) === 0
      ? { servername: name }
      : { checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate) }),
    ...(options.alpn === undefined ? {} : { ALPNProtocols: [options.alpn] }),
    ...(route === null ? {} : { secureContext: route.secureContext(options.user) }),
    rejectUnauthorized: !insecure,
  };
}

/** A certificate or key that cannot be used ends the connection as any other failure of TLS. */
function broken(error: unknown): net.Socket {
  const text = error instanceof Error ? error.message : String(error);
  const failure = new Error(`the client certificate cannot be used: ${text}`, { cause: error });
  return new net.Socket().destroy(Object.assign(failure, { code: "ERR_TLS_CLIENT_CERTIFICATE" }));
}
