/** Where connections go: host, port, TLS and route, looked up once per core. One object per distinct origin. */

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

/** Somewhere that a socket can be opened to. */
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
  /** What the host's name stands for by the user's own word; empty nearly always. */
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

  /** The look-up is too old for a new connection: `prepare` first. */
  get stale(): boolean {
    return this.#expiresAt !== Number.POSITIVE_INFINITY && clock() >= this.#expiresAt;
  }

  /** Where the next connection goes: to the proxy, where there is one. */
  nextAddress(): SocketAddress {
    const addresses = this.#addresses;
    const rotates = this.route?.options.dns?.rotates === true || this.#instead.length > 1;
    const at = rotates ? this.#turn++ % Math.max(1, addresses.length) : 0;
    return addresses[at] ?? { host: this.hostname, port: this.port };
  }

  /** What a proxy without tunnel is asked for: the user's own word on the host, else the address's. */
  authorityFor(given: string): string {
    return this.#instead.length === 0 ? given : this.authority;
  }

  /** What a proxy is asked to connect us to. */
  get authority(): string {
    const [instead] = this.#instead;
    const host = instead?.host ?? this.hostname;
    return `${host.includes(":") ? `[${host}]` : host}:${instead?.port ?? this.port}`;
  }

  /** Looks the host up; later calls wait for the same answer, unless it was none or is too old. */
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

/** Distinct origins of one run; a workflow that invents host names must not grow memory for ever. */
const ORIGINS_MAX = 4_096;
const origins = new Map<string, Origin>();
let lastOrigin: Origin | undefined;

export function originOf(endpoint: Endpoint, route: Route | null = null): Origin {
  const { hostname, port, secure } = endpoint;
  // Calls that are made anew in a loop nearly always go where the last one went.
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
