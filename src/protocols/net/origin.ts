/** Where connections go: host, port and TLS, looked up once per core. One object per distinct origin. */

import type { UrlPart } from "../http/parts.ts";
import type { CallEnvironment, ResolvedAddress } from "../protocol.ts";

export class Origin {
  /** Small and dense: pools index their idle connections by it. */
  readonly id: number;
  readonly hostname: string;
  readonly port: number;
  readonly secure: boolean;
  #address: ResolvedAddress | undefined;
  #resolving: Promise<void> | undefined;

  constructor(id: number, url: UrlPart) {
    this.id = id;
    this.hostname = url.hostname;
    this.port = url.port;
    this.secure = url.secure;
  }

  /** Undefined until `prepare` has been awaited. */
  get address(): ResolvedAddress | undefined {
    return this.#address;
  }

  prepare(environment: Pick<CallEnvironment, "resolve">): Promise<void> {
    this.#resolving ??= environment.resolve(this.hostname).then(
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

export function originOf(url: UrlPart): Origin {
  const key = `${url.secure ? "s" : "p"}:${url.hostname}:${url.port}`;
  let origin = origins.get(key);
  if (origin === undefined) {
    if (origins.size >= ORIGINS_MAX)
      throw new Error(`more than ${ORIGINS_MAX} distinct hosts in one run`);
    origin = new Origin(origins.size, url);
    origins.set(key, origin);
  }
  return origin;
}

/** All origins named so far: those of prepared requests, when asked before the loop begins. */
export function knownOrigins(): readonly Origin[] {
  return [...origins.values()];
}
