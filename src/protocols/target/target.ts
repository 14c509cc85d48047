/**
 * A server that calls are sent to: its address, its connection options, and the protocol that carries them. It has no
 * user and sends nothing; a protocol's own target wraps one and describes calls with it, which steps perform.
 */

import { type Duration, parseDuration } from "../../core/base/duration.ts";
import { maskCredentials } from "../../core/base/mask-credentials.ts";
import { didYouMean } from "../../core/base/nearest.ts";
import { type CallTimeouts, timeoutsOf } from "../call.ts";
import {
  CONNECTION_OPTION_NAMES,
  type ConnectionOptions,
  routeOf,
} from "../http/connection-options.ts";
import { type Origin, originOf } from "../net/origin.ts";
import {
  type CallSettings,
  prepareBeforeLoop,
  type Session,
  type SessionKey,
  type SessionState,
  workflowFolder,
} from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import type { Connection, ConnectionHost } from "./connection.ts";
import type { CallingUser } from "./exchange.ts";
import { ConnectionPool, type PoolTarget } from "./pool.ts";

/** Targets of one file; one that is made in a loop would keep its connections forever. */
const TARGETS_MAX = 1_000;

/** Options of every target. */
export interface TargetOptions extends Omit<ConnectionOptions, "proxy"> {
  /** Timeout of each call; the workflow's `timeout` by default. */
  readonly timeout?: Duration;
}

interface Scheme {
  readonly port: number;
  /** Uses TLS. */
  readonly secure: boolean;
}

/** A protocol, as its targets use it. */
export interface TargetProtocol {
  /** Name in results and steps. */
  readonly name: string;
  /** By the scheme of an address, without its colon. */
  readonly schemes: Readonly<Record<string, Scheme>>;
  /** Names of its own options. */
  readonly optionNames: readonly string[];
  /** Concurrent calls on one connection; 1 by default. */
  readonly callsPerConnectionMax?: number;
  /** False where a preflight check makes no sense, as for UDP. */
  readonly listens?: boolean;
  /** Loads required packages before the run. Throws a readable message when one is missing. */
  load?(): Promise<void>;
}

const OWN_OPTION_NAMES = [
  ...CONNECTION_OPTION_NAMES.filter((name) => name !== "proxy"),
  "timeout",
] as const;

let made = 0;

export class Target<Command> implements PoolTarget<Command> {
  readonly protocol: TargetProtocol;
  readonly url: URL;
  readonly origin: Origin;
  readonly callsPerConnectionMax: number;
  readonly #connect: (host: ConnectionHost, now: number) => Connection<Command>;
  readonly #timeoutMs: number | null;
  readonly #users: SessionKey<TargetUser<Command>>;
  readonly #shared = new Map<CallSettings, ConnectionPool<Command>>();

  constructor(
    protocol: TargetProtocol,
    address: string,
    options: TargetOptions,
    connect: (host: ConnectionHost, now: number) => Connection<Command>,
  ) {
    if (++made > TARGETS_MAX)
      throw new Error(`more than ${TARGETS_MAX} targets: make them once, at the top of the file`);
    const { name, optionNames, schemes } = protocol;
    const scheme = schemeOf(protocol, address);
    checkNames(`${name}.target`, options, [...OWN_OPTION_NAMES, ...optionNames]);
    this.protocol = protocol;
    this.url = new URL(address);
    this.callsPerConnectionMax = protocol.callsPerConnectionMax ?? 1;
    this.#connect = connect;
    this.#timeoutMs =
      options.timeout === undefined ? null : millisecondsOf(options.timeout, "timeout");
    const { port, secure } = schemes[scheme] ?? { port: 0, secure: false };
    const hostname = this.url.hostname.replace(/^\[|\]$/g, "");
    if (hostname === "") throw new TypeError(`${name}.target: "${address}" names no host`);
    const endpoint = {
      hostname,
      port: this.url.port === "" ? port : Number(this.url.port),
      secure,
    };
    if (endpoint.port === 0)
      throw new TypeError(`${name}.target: "${address}" names no port, and ${scheme} has none`);
    const connection = Object.entries(options).filter(([key]) =>
      CONNECTION_OPTION_NAMES.includes(key),
    );
    // HTTP proxies do not apply to other protocols.
    const route = routeOf({ ...Object.fromEntries(connection), proxy: false });
    this.origin = originOf(endpoint, route);
    this.#users = {
      name: `${name} ${made}`,
      create: (session) => new TargetUser(this, session),
    };
    // Hosts of targets at the top of a file are resolved before the first call.
    if (workflowFolder() === null) prepareBeforeLoop({ prepare: () => this.#prepareEarly() });
  }

  /** A failed lookup fails the calls that need the host, not the rest of the file. */
  async #prepareEarly(): Promise<void> {
    await this.protocol.load?.();
    await this.origin.prepare().catch(() => undefined);
  }

  async prepare(): Promise<void> {
    await this.protocol.load?.();
    await this.origin.prepare();
  }

  connect(host: ConnectionHost, now: number): Connection<Command> {
    return this.#connect(host, now);
  }

  timeouts(ownMs: number | null, settings: CallSettings): CallTimeouts {
    return timeoutsOf(ownMs ?? this.#timeoutMs, settings);
  }

  user(session: Session): CallingUser<Command> {
    return session.state(this.#users);
  }

  /** Connections shared by all users of a core. */
  sharedPool(settings: CallSettings): ConnectionPool<Command> {
    let pool = this.#shared.get(settings);
    if (pool === undefined) {
      const connectionsMax = settings.sharedConnectionsMax;
      pool = new ConnectionPool<Command>(this, { connectionsMax, settings, user: 0 });
      this.#shared.set(settings, pool);
    }
    return pool;
  }
}

/** State of one virtual user for a target. */
class TargetUser<Command> implements CallingUser<Command>, SessionState {
  closed = false;
  readonly pool: ConnectionPool<Command>;
  readonly trace: TraceContext | null;
  readonly #shares: boolean;

  constructor(target: Target<Command>, { settings, trace = null, user }: Session) {
    this.trace = trace;
    this.#shares = settings.connections === "shared";
    const connectionsMax = Math.max(
      1,
      target.callsPerConnectionMax > 1 ? 1 : settings.connectionsPerOriginMax,
    );
    this.pool = this.#shares
      ? target.sharedPool(settings)
      : new ConnectionPool(target, { connectionsMax, settings, user });
  }

  reset(): void {
    if (!this.#shares) this.pool.reset();
  }

  close(): void {
    this.closed = true;
    if (this.#shares) this.pool.cut((call) => call.user === this);
    else this.pool.close();
  }
}

function schemeOf({ name, schemes }: TargetProtocol, address: unknown): string {
  const scheme = typeof address === "string" ? /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1] : "";
  const known = Object.keys(schemes);
  if (scheme !== undefined && known.includes(scheme.toLowerCase()) && URL.canParse(`${address}`))
    return scheme.toLowerCase();
  const [first = name] = known;
  const given = maskCredentials(String(JSON.stringify(address)));
  throw new TypeError(
    `${name}.target takes an address such as "${first}://host:port", not ${given}`,
  );
}

/** Rejects unknown options, which would be ignored otherwise. */
export function checkNames(where: string, options: object, known: readonly string[]): void {
  const stray = Object.keys(options).find((name) => !known.includes(name));
  if (stray !== undefined)
    throw new TypeError(`${where} has no option "${stray}"${didYouMean(stray, known)}`);
}

export function millisecondsOf(value: Duration, what: string): number {
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new TypeError(`${what}: ${parsed.problem}`);
  return parsed.ms;
}
