/**
 * Connections to one target: of one virtual user, or shared by all users of a core, kept between iterations. (PROTO-2)
 * A call uses one with free capacity, opens another below the limit, or waits. The wait is part of its `connectMs`, so
 * that it is not attributed to the server.
 */

import { clock, type MeasuredCall } from "../call.ts";
import type { Origin } from "../net/origin.ts";
import { setImmediate } from "../net/timers.ts";
import type { CallSettings } from "../protocol.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
  OpenTimes,
} from "./connection.ts";

/** Calls that may wait for a connection of one pool; further ones fail with kind "resources". */
const WAITING_CALLS_MAX = 65_536;

export interface PoolTarget<Command> {
  readonly origin: Origin;
  /** Concurrent calls on one connection. */
  readonly callsPerConnectionMax: number;
  connect(host: ConnectionHost, now: number): Connection<Command>;
}

/** A call as its pool sees it. */
export interface PooledCall<Command> extends CarriedCall<Command> {
  readonly measure: MeasuredCall;
  /** Owner of the call. */
  readonly user: object;
  /** Connection that carries it; null while it waits, and when it has finished. */
  connection: PooledConnection<Command> | null;
  /** Negative when an open connection was used. */
  loginMs: number;
}

interface PoolOptions {
  readonly settings: CallSettings;
  readonly user: number;
  readonly connectionsMax: number;
}

export class ConnectionPool<Command> {
  readonly target: PoolTarget<Command>;
  readonly settings: CallSettings;
  readonly user: number;
  readonly #connectionsMax: number;
  readonly #connections = new Set<PooledConnection<Command>>();
  /** Connections with free capacity. */
  readonly #ready: PooledConnection<Command>[] = [];
  readonly #waiting: PooledCall<Command>[] = [];

  constructor(target: PoolTarget<Command>, { connectionsMax, settings, user }: PoolOptions) {
    this.target = target;
    this.settings = settings;
    this.user = user;
    this.#connectionsMax = connectionsMax;
  }

  acquire(call: PooledCall<Command>, now: number): void {
    const ready = this.#ready.at(-1);
    if (ready !== undefined) {
      ready.carry(call, now);
      if (ready.full) this.#ready.pop();
      return;
    }
    if (this.#connections.size < this.#connectionsMax) {
      const connection = new PooledConnection(this);
      this.#connections.add(connection);
      connection.carry(call, now);
      if (!connection.full && !connection.closed) this.#ready.push(connection);
      return;
    }
    if (this.#waiting.length >= WAITING_CALLS_MAX) {
      const text = `${WAITING_CALLS_MAX} calls wait for a connection`;
      // In a separate turn, so that a loop of calls that fail at once does not block the event loop.
      setImmediate(() => call.failed({ kind: "resources", text }, clock()));
      return;
    }
    this.#waiting.push(call);
  }

  /** Removes an abandoned call that waits for a connection. */
  withdraw(call: PooledCall<Command>): void {
    const at = this.#waiting.indexOf(call);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  /** A full connection has capacity again. */
  hasCapacity(connection: PooledConnection<Command>): void {
    this.#ready.push(connection);
    this.#serveWaiting();
  }

  connectionClosed(connection: PooledConnection<Command>): void {
    this.#connections.delete(connection);
    const at = this.#ready.indexOf(connection);
    if (at >= 0) this.#ready.splice(at, 1);
    this.#serveWaiting();
  }

  #serveWaiting(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) this.acquire(next, clock());
  }

  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  /** Cancels the calls for which `leaves` returns true, without reporting them. */
  cut(leaves: (call: PooledCall<Command>) => boolean): void {
    for (const call of this.#waiting.filter(leaves)) {
      this.withdraw(call);
      call.measure.cancel();
    }
    for (const connection of [...this.#connections]) {
      for (const call of connection.carried.filter(leaves)) {
        call.measure.cancel();
        connection.abandon(call);
      }
    }
  }

  close(): void {
    this.cut(() => true);
    for (const connection of [...this.#connections]) connection.drop();
  }
}

/** One connection and the calls on it. */
export class PooledConnection<Command> implements ConnectionHost {
  readonly carried: PooledCall<Command>[] = [];
  open = false;
  closed = false;
  readonly #pool: ConnectionPool<Command>;
  #connection: Connection<Command> | null = null;

  constructor(pool: ConnectionPool<Command>) {
    this.#pool = pool;
  }

  get origin(): Origin {
    return this.#pool.target.origin;
  }

  get settings(): CallSettings {
    return this.#pool.settings;
  }

  get user(): number {
    return this.#pool.user;
  }

  get full(): boolean {
    return this.carried.length >= this.#pool.target.callsPerConnectionMax;
  }

  carry(call: PooledCall<Command>, now: number): void {
    call.connection = this;
    this.carried.push(call);
    if (this.open) {
      const { measure } = call;
      // The call waited for this connection, which another one used.
      if (now > measure.startedAt) measure.opened(now - measure.startedAt, -1);
      this.#connection?.send(call, now);
      return;
    }
    call.measure.connecting(now);
    if (this.carried.length > 1) return;
    const { origin } = this;
    if (origin.address !== undefined && !origin.stale) this.#connect(now);
    else call.measure.lookUp(origin, now, (later) => this.#connect(later));
  }

  #connect(now: number): void {
    if (!this.closed) this.#connection = this.#pool.target.connect(this, now);
  }

  opened(times: OpenTimes, now: number): void {
    if (this.closed) return;
    this.open = true;
    this.#measureOpening(times, now);
    for (const call of [...this.carried]) this.#connection?.send(call, now);
  }

  /** The first call opened the connection, the others waited for it. */
  #measureOpening({ connectMs, loginMs, tlsMs }: OpenTimes, now: number): void {
    this.carried.forEach((call, at) => {
      const { measure } = call;
      if (at > 0) measure.opened(now - measure.startedAt, -1);
      else {
        call.loginMs = loginMs;
        measure.opened(connectMs + Math.max(0, loginMs), tlsMs);
      }
    });
  }

  lost(failure: ConnectionFailure, now: number): void {
    if (this.closed) return;
    if (!this.open && failure.opening !== undefined) this.#measureOpening(failure.opening, now);
    const carried = this.#end();
    for (const call of carried) call.failed(failure, now);
  }

  /** A call has finished and reported itself; the connection is available for the next one. */
  left(call: PooledCall<Command>): void {
    const wasFull = this.full;
    this.#remove(call);
    const spent = this.#connection?.spent === true || !this.settings.keepAlive;
    if (!this.open || (spent && this.carried.length === 0)) this.drop();
    else if (wasFull && !this.closed) this.#pool.hasCapacity(this);
  }

  /** A call is abandoned before its end. */
  abandon(call: PooledCall<Command>): void {
    if (this.open && this.#connection?.forget?.(call) === true) {
      call.connection = null;
      this.left(call);
      return;
    }
    this.#remove(call);
    call.connection = null;
    this.lost({ kind: "reset", text: "another call on the connection was abandoned" }, clock());
  }

  #remove(call: PooledCall<Command>): void {
    const { carried } = this;
    const at = carried.lastIndexOf(call);
    // Nearly always the last one; `pop` avoids the array that `splice` allocates.
    if (at === carried.length - 1) carried.pop();
    else if (at >= 0) carried.splice(at, 1);
  }

  reset(): void {
    this.#connection?.reset?.();
  }

  drop(): void {
    if (!this.closed) this.#end();
  }

  #end(): readonly PooledCall<Command>[] {
    this.closed = true;
    this.open = false;
    const carried = this.carried.splice(0);
    for (const call of carried) call.connection = null;
    this.#connection?.destroy();
    this.#pool.connectionClosed(this);
    return carried;
  }
}
