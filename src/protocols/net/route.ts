/**
 * How the connections of a target are made, where the address alone does not determine it: trusted authorities and
 * client certificate (TLS), proxy, address overrides, local address. Created once; requests with the same route share
 * connections, others never do.
 */

import tls from "node:tls";

/** A PEM text, or one that is read from a file on first use. */
export type PemSource = () => string | Buffer;

export interface ClientCertificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly passphrase?: string;
}

export interface ProxyAddress {
  readonly hostname: string;
  readonly port: number;
  /** Value of the Proxy-Authorization header; "" for none. */
  readonly authorization: string;
}

/** Overrides the address to connect to; without a port, the original port is used. */
export interface HostAddress {
  readonly host: string;
  readonly port: number | null;
}

export interface DnsPolicy {
  /** How long a lookup is reused for new connections; Infinity for the whole run. */
  readonly ttlMs: number;
  /** Each new connection takes the next address, not always the first. */
  readonly rotates: boolean;
  /** DNS servers to query instead of the system's resolver; empty for the system's. */
  readonly servers: readonly string[];
}

export const SYSTEM_DNS: DnsPolicy = {
  ttlMs: Number.POSITIVE_INFINITY,
  rotates: false,
  servers: [],
};

interface RouteOptions {
  readonly ca?: readonly PemSource[];
  readonly certificate?: () => ClientCertificate;
  /** Called once per connection with the number of the virtual user. */
  readonly certificateOf?: (user: number) => ClientCertificate;
  readonly serverName?: string;
  /** Accepts any certificate; undefined selects the workflow's setting. */
  readonly insecure?: boolean;
  /** Undefined: from the environment. Null: none, whatever the environment says. */
  readonly proxy?: ProxyAddress | null;
  /** By "host" or "host:port". */
  readonly hosts?: ReadonlyMap<string, readonly HostAddress[]>;
  readonly localAddresses?: readonly string[];
  readonly dns?: DnsPolicy;
}

let routes = 0;

export class Route {
  /** Part of the identity of an origin; 0 means no route. */
  readonly id = ++routes;
  readonly options: RouteOptions;
  #context: tls.SecureContext | undefined;
  #locals = 0;

  constructor(options: RouteOptions) {
    this.options = options;
  }

  /** A shared connection cannot have a certificate per user. */
  get perUser(): boolean {
    return this.options.certificateOf !== undefined;
  }

  /** Throws when a certificate or a key cannot be read. */
  secureContext(user: number): tls.SecureContext {
    const { certificateOf, certificate, ca } = this.options;
    if (certificateOf === undefined && this.#context !== undefined) return this.#context;
    const own = certificateOf?.(user) ?? certificate?.();
    const context = tls.createSecureContext({
      ...(ca === undefined ? {} : { ca: ca.map((read) => read()) }),
      ...own,
    });
    if (certificateOf === undefined) this.#context = context;
    return context;
  }

  /** Returns the next address in turn; undefined leaves the choice to the system. */
  nextLocalAddress(): string | undefined {
    const { localAddresses = [] } = this.options;
    return localAddresses[this.#locals++ % Math.max(1, localAddresses.length)];
  }
}

/** Connection part of an address of any protocol. */
export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
  /** Uses TLS. */
  readonly secure: boolean;
}
