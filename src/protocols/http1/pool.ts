/**
 * Where exchanges get their connections from: the virtual user's own ones, or a pool that all users
 * of a core share. Both also know the cookies, since those decide the bytes of a request.
 */

import { CookieJar, type CookieOrigin } from "../http/cookie-jar.ts";
import { clock } from "../net/clock.ts";
import type { Origin } from "../net/origin.ts";
import { resolveHost } from "../net/resolve.ts";
import type {
  CallSettings,
  ResolvedAddress,
  Session,
  SessionKey,
  SessionState,
} from "../protocol.ts";
import { Http1Connection } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import type { WireRequest } from "./wire-request.ts";

/** What an exchange asks of its virtual user. */
export interface ConnectionSource {
  readonly settings: CallSettings;
  /** The virtual user has ended: nothing begins, and nothing is told any more. */
  readonly closed: boolean;
  /** Sends the exchange on an idle connection, or opens one, or queues it. */
  acquire(exchange: Exchange, now: number): void;
  /** The exchange gives up: its connection, or its place in the queue, is closed. */
  abandon(exchange: Exchange): void;
  bytesFor(request: WireRequest): Buffer;
  cookiesArrived(request: WireRequest, head: string): void;
  resolve(host: string): Promise<ResolvedAddress>;
}

/** What a connection tells whoever holds it. */
export interface ConnectionOwner {
  readonly settings: CallSettings;
  /** An open connection has nothing to do. */
  idle(connection: Http1Connection): void;
  /** A connection has closed. */
  gone(connection: Http1Connection): void;
}

/** The connections and cookies of one virtual user. */
export class UserConnections implements ConnectionSource, ConnectionOwner, SessionState {
  readonly settings: CallSettings;
  /** Idle connections by origin id; nearly always at most one each. */
  readonly #idle: (Http1Connection[] | undefined)[] = [];
  readonly #busy = new Set<Http1Connection>();
  readonly #shared: SharedConnections | null;
  #jar: CookieJar | null = null;
  closed = false;

  constructor(settings: CallSettings) {
    this.settings = settings;
    this.#shared = settings.connections === "shared" ? SharedConnections.of(settings) : null;
  }

  acquire(exchange: Exchange, now: number): void {
    if (this.#shared !== null) {
      this.#shared.acquire(exchange, now);
      return;
    }
    const connection = this.#idle[exchange.request.origin.id]?.pop();
    if (connection !== undefined) {
      connection.send(exchange, now);
      return;
    }
    this.#busy.add(new Http1Connection(exchange.request.origin, this, exchange, now));
  }

  abandon(exchange: Exchange): void {
    if (this.#shared !== null) {
      this.#shared.abandon(exchange);
      return;
    }
    const connection = exchange.connection;
    exchange.connection = null;
    if (connection === null) return;
    this.#busy.delete(connection);
    connection.close();
  }

  idle(connection: Http1Connection): void {
    if (this.closed) {
      connection.close();
      return;
    }
    const list = this.#idle[connection.origin.id];
    if (list === undefined) this.#idle[connection.origin.id] = [connection];
    else list.push(connection);
  }

  gone(connection: Http1Connection): void {
    this.#busy.delete(connection);
    const list = this.#idle[connection.origin.id];
    const at = list?.indexOf(connection) ?? -1;
    if (at >= 0) list?.splice(at, 1);
  }

  bytesFor(request: WireRequest): Buffer {
    if (this.#jar === null || this.#jar.size === 0) return request.bytes;
    const fromJar = this.#jar.header(cookieOrigin(request), Date.now());
    if (fromJar === "") return request.bytes;
    const own = request.source.cookies;
    return request.withCookies(own === "" ? fromJar : `${own}; ${fromJar}`);
  }

  cookiesArrived(request: WireRequest, head: string): void {
    if (this.settings.cookies === "off") return;
    this.#jar ??= new CookieJar();
    const values = [...head.matchAll(/\r\nset-cookie:[ \t]*([^\r]*)/gi)].map(
      (match) => match[1] ?? "",
    );
    this.#jar.store(values, cookieOrigin(request), Date.now());
  }

  resolve(host: string): Promise<ResolvedAddress> {
    return resolveHost(host);
  }

  reset(): void {
    if (this.settings.cookies === "iteration") this.#jar = null;
  }

  close(): void {
    this.closed = true;
    for (const list of this.#idle) for (const connection of list ?? []) connection.close();
    for (const connection of this.#busy) connection.close();
    this.#idle.length = 0;
    this.#busy.clear();
    this.#shared?.leave(this);
  }
}

function cookieOrigin({ source }: WireRequest): CookieOrigin {
  return { host: source.url.hostname, path: source.path, secure: source.url.secure };
}

export const http1Sessions: SessionKey<UserConnections> = {
  name: "http1",
  create: (session: Session) => new UserConnections(session.settings),
};

/** One pool for all virtual users of a core: at most so many connections per origin, first come first served. */
class SharedConnections {
  static readonly #pools = new Map<CallSettings, SharedConnections>();
  readonly #settings: CallSettings;
  readonly #perOrigin: (OriginPool | undefined)[] = [];

  constructor(settings: CallSettings) {
    this.#settings = settings;
  }

  static of(settings: CallSettings): SharedConnections {
    let pool = SharedConnections.#pools.get(settings);
    if (pool === undefined) {
      pool = new SharedConnections(settings);
      SharedConnections.#pools.set(settings, pool);
    }
    return pool;
  }

  acquire(exchange: Exchange, now: number): void {
    this.#pool(exchange.request.origin).acquire(exchange, now);
  }

  abandon(exchange: Exchange): void {
    this.#pool(exchange.request.origin).abandon(exchange);
  }

  /** Cuts off what that user has under way. */
  leave(source: ConnectionSource): void {
    for (const pool of this.#perOrigin) pool?.leave(source);
  }

  #pool(origin: Origin): OriginPool {
    let pool = this.#perOrigin[origin.id];
    if (pool === undefined) {
      pool = new OriginPool(this.#settings);
      this.#perOrigin[origin.id] = pool;
    }
    return pool;
  }
}

class OriginPool implements ConnectionOwner {
  readonly settings: CallSettings;
  readonly #idle: Http1Connection[] = [];
  /** Bounded by the number of virtual users: each has at most its own calls waiting. */
  readonly #waiting = new Set<Exchange>();
  readonly #open = new Set<Http1Connection>();

  constructor(settings: CallSettings) {
    this.settings = settings;
  }

  acquire(exchange: Exchange, now: number): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) connection.send(exchange, now);
    else if (this.#open.size < this.settings.sharedConnectionsMax) {
      this.#open.add(new Http1Connection(exchange.request.origin, this, exchange, now));
    } else this.#waiting.add(exchange);
  }

  abandon(exchange: Exchange): void {
    this.#waiting.delete(exchange);
    const connection = exchange.connection;
    exchange.connection = null;
    if (connection === null) return;
    connection.close();
    this.gone(connection);
  }

  leave(source: ConnectionSource): void {
    for (const { exchange } of this.#open) if (exchange?.source === source) this.abandon(exchange);
  }

  idle(connection: Http1Connection): void {
    const next = this.#nextWaiting();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next, clock());
  }

  gone(connection: Http1Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#open.delete(connection);
    const next = this.#nextWaiting();
    if (next !== undefined) this.acquire(next, clock());
  }

  /** The first in the queue whose user is still there. */
  #nextWaiting(): Exchange | undefined {
    for (const exchange of this.#waiting) {
      this.#waiting.delete(exchange);
      if (!exchange.source.closed) return exchange;
      exchange.cancel();
    }
    return undefined;
  }
}
