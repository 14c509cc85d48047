/**
 * Provides connections for exchanges: those of the virtual user, or a pool shared by all users of a core. Both also
 * provide the cookies, which affect the bytes of a request.
 */

import { clock } from "../call.ts";
import { type DecodedBodies, decodedBodies } from "../http/decoded-bodies.ts";
import type { HttpMessage } from "../http/message.ts";
import { type UserCookies, userCookies } from "../http/user-cookies.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings, Session, SessionKey, SessionState } from "../protocol.ts";
import { type ConnectionOwner, Http1Connection } from "./connection.ts";
import type { CarriedExchange, ConnectionSource } from "./contract.ts";
import type { Http1Bytes } from "./encode.ts";

/** The connections of one virtual user. */
class UserConnections implements ConnectionSource, ConnectionOwner, SessionState {
  readonly settings: CallSettings;
  readonly user: number;
  readonly #session: Session;
  /** The connection that became idle last, which is nearly always the only one. */
  #idle: Http1Connection | null = null;
  /** Other idle connections by origin id; null until there are two, so that most users have no list. */
  #moreIdle: (Http1Connection[] | undefined)[] | null = null;
  /** All connections, idle or not; null until the first, because many users only use the shared pool. */
  #open: Set<Http1Connection> | null = null;
  /** Calls of this user that wait because its connection limit is reached. */
  #waiting: CarriedExchange[] | null = null;
  readonly #shared: SharedConnections | null;
  readonly #cookies: UserCookies;
  closed = false;

  constructor(session: Session) {
    const { settings } = session;
    this.#session = session;
    this.settings = settings;
    this.user = session.user;
    this.#cookies = session.state(userCookies);
    this.#shared = settings.connections === "shared" ? SharedConnections.of(settings) : null;
  }

  acquire(exchange: CarriedExchange, now: number): void {
    if (this.#shared !== null) {
      this.#shared.acquire(exchange, now);
      return;
    }
    const connection = this.#takeIdle(exchange.message.origin);
    if (connection !== undefined) {
      connection.send(exchange, now);
      return;
    }
    if (this.#full(exchange.message.origin)) {
      exchange.call.awaitFirstByte(now);
      this.#waiting ??= [];
      this.#waiting.push(exchange);
      return;
    }
    whenFresh(exchange, now, (later) => {
      this.#open ??= new Set();
      this.#open.add(new Http1Connection(exchange.message.origin, this, exchange, later));
    });
  }

  #takeIdle(origin: Origin): Http1Connection | undefined {
    const last = this.#idle;
    if (last === null || last.origin !== origin) return this.#moreIdle?.[origin.id]?.pop();
    this.#idle = null;
    return last;
  }

  /** Counted only where there is a limit: walking through a handful costs less than keeping count. */
  #full({ id }: Origin): boolean {
    const { connectionsPerOriginMax } = this.settings;
    if (this.#open === null || this.#open.size < connectionsPerOriginMax) return false;
    let open = 0;
    for (const { origin } of this.#open) if (origin.id === id) open++;
    return open >= connectionsPerOriginMax;
  }

  /** Serves waiting calls once a connection to this origin is idle or may be opened. */
  #serveWaiting({ id }: Origin): void {
    const at = this.#waiting?.findIndex(({ message }) => message.origin.id === id) ?? -1;
    if (at < 0) return;
    const [next] = this.#waiting?.splice(at, 1) ?? [];
    if (next !== undefined) this.acquire(next, clock());
  }

  abandon(exchange: CarriedExchange): void {
    if (this.#shared !== null) {
      this.#shared.abandon(exchange);
      return;
    }
    const at = this.#waiting?.indexOf(exchange) ?? -1;
    if (at >= 0) this.#waiting?.splice(at, 1);
    const { connection } = exchange;
    exchange.connection = null;
    connection?.drop();
  }

  idle(connection: Http1Connection): void {
    if (this.closed) {
      connection.close();
      return;
    }
    const before = this.#idle;
    this.#idle = connection;
    if (before !== null) {
      this.#moreIdle ??= [];
      const list = this.#moreIdle[before.origin.id];
      if (list === undefined) this.#moreIdle[before.origin.id] = [before];
      else list.push(before);
    }
    if (this.#waiting !== null) this.#serveWaiting(connection.origin);
  }

  connectionClosed(connection: Http1Connection): void {
    this.#open?.delete(connection);
    if (this.#idle === connection) this.#idle = null;
    const list = this.#moreIdle?.[connection.origin.id];
    const at = list?.indexOf(connection) ?? -1;
    if (at >= 0) list?.splice(at, 1);
    if (this.#waiting !== null && !this.closed) this.#serveWaiting(connection.origin);
  }

  bytesFor({ call, message }: CarriedExchange): Http1Bytes {
    return this.#cookies.apply(message, call);
  }

  cookiesArrived(message: HttpMessage<Http1Bytes>, head: string): void {
    const lines = [...head.matchAll(/\r\nset-cookie:[ \t]*([^\r]*)/gi)].map(
      (match) => match[1] ?? "",
    );
    this.#cookies.arrived(message, lines);
  }

  get decoded(): DecodedBodies {
    return this.#session.state(decodedBodies);
  }

  close(): void {
    this.closed = true;
    for (const connection of this.#open ?? []) {
      connection.exchange?.call.cancel();
      connection.close();
    }
    for (const { call } of this.#waiting ?? []) call.cancel();
    this.#waiting = null;
    this.#idle = null;
    this.#moreIdle = null;
    this.#open = null;
    this.#shared?.leave(this);
  }
}

/** Opens a connection at once, unless the address has to be resolved again first. */
function whenFresh(exchange: CarriedExchange, now: number, open: (now: number) => void): void {
  const { origin } = exchange.message;
  if (origin.stale) exchange.call.lookUp(origin, now, open);
  else open(now);
}

export const http1Sessions: SessionKey<UserConnections> = {
  name: "http1",
  create: (session) => new UserConnections(session),
};

/** One pool for all virtual users of a core: a limited number of connections per origin, first come, first served. */
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

  acquire(exchange: CarriedExchange, now: number): void {
    this.#pool(exchange.message.origin).acquire(exchange, now);
  }

  abandon(exchange: CarriedExchange): void {
    this.#pool(exchange.message.origin).abandon(exchange);
  }

  /** Cancels the calls of that user. */
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
  /** Belongs to all users. */
  readonly user = 0;
  readonly #idle: Http1Connection[] = [];
  /** Bounded by the number of virtual users: each has at most its own calls waiting. */
  readonly #waiting = new Set<CarriedExchange>();
  readonly #open = new Set<Http1Connection>();

  constructor(settings: CallSettings) {
    this.settings = settings;
  }

  acquire(exchange: CarriedExchange, now: number): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) connection.send(exchange, now);
    else if (this.#open.size < this.settings.sharedConnectionsMax) {
      this.#open.add(new Http1Connection(exchange.message.origin, this, exchange, now));
    } else {
      exchange.call.awaitFirstByte(now);
      this.#waiting.add(exchange);
    }
  }

  abandon(exchange: CarriedExchange): void {
    this.#waiting.delete(exchange);
    const { connection } = exchange;
    exchange.connection = null;
    connection?.drop();
  }

  leave(source: ConnectionSource): void {
    for (const { exchange } of this.#open) {
      if (exchange?.source !== source) continue;
      exchange.call.cancel();
      this.abandon(exchange);
    }
  }

  idle(connection: Http1Connection): void {
    const next = this.#nextWaiting();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next, clock());
  }

  connectionClosed(connection: Http1Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#open.delete(connection);
    const next = this.#nextWaiting();
    if (next !== undefined) this.acquire(next, clock());
  }

  /** Returns the first queued exchange whose user is still active. */
  #nextWaiting(): CarriedExchange | undefined {
    for (const exchange of this.#waiting) {
      this.#waiting.delete(exchange);
      if (!exchange.source.closed) return exchange;
      exchange.call.cancel();
    }
    return undefined;
  }
}
