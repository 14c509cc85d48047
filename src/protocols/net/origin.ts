/** Where connections go: host, port and TLS, looked up once per core. One object per distinct origin. */

import { type ResolvedAddress, resolveHost } from "./resolve.ts";

/** What an address of any protocol says about the connection. */
export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
}

export class Origin implements Endpoint {
  /** Small and dense: pools index their idle connections by it. */
  readonly id: number;
  readonly hostname: string;
  readonly port: number;
  readonly secure: boolean;
  #address: ResolvedAddress | undefined;
  #resolving: Promise<void> | undefined;

  constructor(id: number, { hostname, port, secure }: Endpoint) {
    this.id = id;
    this.hostname = hostname;
    this.port = port;
    this.secure = secure;
  }

  /** Undefined until `prepare` has been awaited. */
  get address(): ResolvedAddress | undefined {
    return this.#address;
  }

  /** Looks the host up; later calls wait for the same answer, unless it was none. */
  prepare(): Promise<void> {
    this.#resolving ??= resolveHost(this.hostname).then(
      (address) => {
        this.#address = address;
      },
      (error: unknown) => {
        this.#resolving = undefined;
        throw error;
      },
    );
    return this.#resolving;
  }
}

/** Distinct origins of one run; a workflow that invents host names must not grow memory for ever. */
const ORIGINS_MAX = 4_096;
const origins = new Map<string, Origin>();

export function originOf(endpoint: Endpoint): Origin {
  const key = `${endpoint.secure ? "s" : "p"}:${endpoint.hostname}:${endpoint.port}`;
  let origin = origins.get(key);
  if (origin === undefined) {
    if (origins.size >= ORIGINS_MAX)
      throw new Error(`more than ${ORIGINS_MAX} distinct hosts in one run`);
    origin = new Origin(origins.size, endpoint);
    origins.set(key, origin);
  }
  return origin;
}

/** All origins named so far: those of prepared requests, when asked before the loop begins. */
export function knownOrigins(): readonly Origin[] {
  return [...origins.values()];
}
