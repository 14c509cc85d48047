/** Destination of connections: host, port, TLS and route, resolved once per core. One object per distinct origin. */

import { clock } from "./clock.ts";
import { environmentProxy } from "./proxy.ts";
import { type ResolvedAddress, resolveHost } from "./resolve.ts";
import {
  type Endpoint,
  type HostAddress,
  type ProxyAddress,
  type Route,
  SYSTEM_DNS,
} from "./route.ts";

/** An address that a socket can be opened to. */
interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

export class Origin implements Endpoint {
  /** Small and dense: pools index their idle connections by it. */
  readonly id: number;
  readonly hostname: string;
  readonly port: number;
  readonly secure: boolean;
  readonly route: Route | null;
  readonly proxy: ProxyAddress | null;
  /** User-defined overrides of the host's address; empty nearly always. */
  readonly #instead: readonly HostAddress[];
  #addresses: readonly SocketAddress[] = [];
  #address: ResolvedAddress | undefined;
  #resolving: Promise<void> | undefined;
  #expiresAt = Number.POSITIVE_INFINITY;
  #turn = 0;

  constructor(id: number, { hostname, port, secure }: Endpoint, route: Route | null) {
    this.id = id;
    this.hostname = hostname;
    this.port = port;
    this.secure = secure;
    this.route = route;
    const proxy = route?.options.proxy;
    this.proxy = proxy === undefined ? environmentProxy(this) : proxy;
    const hosts = route?.options.hosts;
    this.#instead = hosts?.get(`${hostname}:${port}`) ?? hosts?.get(hostname) ?? [];
  }

  /** Undefined until `prepare` has been awaited. */
  get address(): ResolvedAddress | undefined {
    return this.#address;
  }

  /** The lookup is too old for a new connection; call `prepare` first. */
  get stale(): boolean {
    return this.#expiresAt !== Number.POSITIVE_INFINITY && clock() >= this.#expiresAt;
  }

  /** Returns the address of the next connection: the proxy's, where there is one. */
  nextAddress(): SocketAddress {
    const addresses = this.#addresses;
    const rotates = this.route?.options.dns?.rotates === true || this.#instead.length > 1;
    const at = rotates ? this.#turn++ % Math.max(1, addresses.length) : 0;
    return addresses[at] ?? { host: this.hostname, port: this.port };
  }

  /** Authority for a proxy without a tunnel: the user's override of the host, else that of the address. */
  authorityFor(given: string): string {
    return this.#instead.length === 0 ? given : this.authority;
  }

  /** Authority that a proxy is asked to connect to. */
  get authority(): string {
    const [instead] = this.#instead;
    const host = instead?.host ?? this.hostname;
    return `${host.includes(":") ? `[${host}]` : host}:${instead?.port ?? this.port}`;
  }

  /** Resolves the host; later calls share the lookup, unless it failed or is too old. */
  prepare(): Promise<void> {
    if (this.stale) {
      this.#resolving = undefined;
      this.#expiresAt = Number.POSITIVE_INFINITY;
    }
    this.#resolving ??= this.#resolve().catch((error: unknown) => {
      this.#resolving = undefined;
      this.#expiresAt = this.#address === undefined ? Number.POSITIVE_INFINITY : 0;
      throw error;
    });
    return this.#resolving;
  }

  async #resolve(): Promise<void> {
    const policy = this.route?.options.dns ?? SYSTEM_DNS;
    const found: SocketAddress[] = [];
    let first: ResolvedAddress | undefined;
    for (const { host, port } of this.#names()) {
      for (const address of await resolveHost(host, policy)) {
        first ??= address;
        found.push({ host: address.address, port: port ?? this.port });
      }
    }
    this.#addresses = found;
    this.#address = first;
    this.#expiresAt = clock() + policy.ttlMs;
  }

  #names(): readonly HostAddress[] {
    if (this.proxy !== null) return [{ host: this.proxy.hostname, port: this.proxy.port }];
    return this.#instead.length > 0 ? this.#instead : [{ host: this.hostname, port: null }];
  }
}

/** Distinct origins of one run; a workflow that generates host names must not grow memory without limit. */
const ORIGINS_MAX = 4_096;
const origins = new Map<string, Origin>();
let lastOrigin: Origin | undefined;

export function originOf(endpoint: Endpoint, route: Route | null = null): Origin {
  const { hostname, port, secure } = endpoint;
  // Calls made in a loop nearly always go to the same origin as the last one.
  if (
    lastOrigin?.hostname === hostname &&
    lastOrigin.port === port &&
    lastOrigin.secure === secure &&
    lastOrigin.route === route
  )
    return lastOrigin;
  const key = `${secure ? "s" : "p"}:${hostname}:${port}:${route?.id ?? 0}`;
  let origin = origins.get(key);
  if (origin === undefined) {
    if (origins.size >= ORIGINS_MAX)
      throw new Error(`more than ${ORIGINS_MAX} distinct hosts in one run`);
    origin = new Origin(origins.size, endpoint, route);
    origins.set(key, origin);
  }
  lastOrigin = origin;
  return origin;
}
