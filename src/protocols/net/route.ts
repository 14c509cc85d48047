/**
 * How the connections of a target are made, where the address alone does not say it: whom to trust and
 * who we are (TLS), through which proxy, to which machine instead of the name's, from which address of
 * ours. Made once; requests with the same route share connections, others never do.
 */

import tls from "node:tls";

/** A PEM text that is there, or that is read from a file when it is needed first. */
export type PemSource = () => string | Buffer;

export interface ClientCertificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly passphrase?: string;
}

export interface ProxyAddress {
  readonly hostname: string;
  readonly port: number;
  /** Value of ProxyAddress-Authorization; "" for none. */
  readonly authorization: string;
}

/** Where to connect instead of what the address says; without a port, to the address's own. */
export interface HostAddress {
  readonly host: string;
  readonly port: number | null;
}

export interface DnsPolicy {
  /** How long an answer is used for new connections; Infinity for the whole run. */
  readonly ttlMs: number;
  /** Each new connection takes the next of all addresses, not always the first. */
  readonly rotates: boolean;
  /** Asked instead of the system's resolver; empty for that one. */
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
  /** Asked once per connection with the number of the virtual user. */
  readonly certificateOf?: (user: number) => ClientCertificate;
  readonly serverName?: string;
  /** Accept any certificate; undefined leaves it to the workflow. */
  readonly insecure?: boolean;
  /** Undefined: as the environment says. Null: none, whatever it says. */
  readonly proxy?: ProxyAddress | null;
  /** By "host" or "host:port". */
  readonly hosts?: ReadonlyMap<string, readonly HostAddress[]>;
  readonly localAddresses?: readonly string[];
  readonly dns?: DnsPolicy;
}

let routes = 0;

export class Route {
  /** Part of the identity of an origin; 0 is the way without a route. */
  readonly id = ++routes;
  readonly options: RouteOptions;
  #context: tls.SecureContext | undefined;
  #locals = 0;

  constructor(options: RouteOptions) {
    this.options = options;
  }

  /** A certificate for each user is nothing that a shared connection could have. */
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

  /** The next one in turn; undefined leaves it to the system. */
  nextLocalAddress(): string | undefined {
    const { localAddresses = [] } = this.options;
    return localAddresses[this.#locals++ % Math.max(1, localAddresses.length)];
  }
}

/** What an address of any protocol says about the connection. */
export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
}
