/**
 * Open connections by origin, as few as possible: a second one is opened when the first uses all streams that the
 * server allows. Closed when the last user has left.
 */

import type { Origin } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";
import { Http2Connection, type Http2ConnectionOwner } from "./connection.ts";

export class Http2Pool implements Http2ConnectionOwner {
  static readonly #shared = new Map<CallSettings, Http2Pool>();
  readonly #settings: CallSettings;
  readonly #byOrigin = new Map<Origin, Set<Http2Connection>>();
  readonly #user: number;
  #users = 0;

  /** `user` is the number of the virtual user that owns the pool. */
  constructor(settings: CallSettings, user = 0) {
    this.#settings = settings;
    this.#user = user;
  }

  /** Returns the pool of all virtual users of this core with these settings. */
  static shared(settings: CallSettings): Http2Pool {
    let pool = Http2Pool.#shared.get(settings);
    if (pool === undefined) {
      pool = new Http2Pool(settings);
      Http2Pool.#shared.set(settings, pool);
    }
    return pool;
  }

  join(): void {
    this.#users++;
  }

  leave(): void {
    if (--this.#users > 0) return;
    if (Http2Pool.#shared.get(this.#settings) === this) Http2Pool.#shared.delete(this.#settings);
    for (const connections of [...this.#byOrigin.values()]) {
      for (const connection of [...connections]) connection.close();
    }
  }

  /** Null when a new connection is needed and the address has to be resolved again first. */
  connectionFor(origin: Origin, now: number): Http2Connection | null {
    let connections = this.#byOrigin.get(origin);
    if (connections === undefined) {
      connections = new Set();
      this.#byOrigin.set(origin, connections);
    }
    let least: Http2Connection | null = null;
    for (const connection of connections) {
      if (!connection.usable) continue;
      if (connection.active < connection.capacity) return connection;
      if (least === null || connection.active < least.active) least = connection;
    }
    // At the limit, calls wait on a connection until the server allows another stream.
    if (least !== null && connections.size >= this.#settings.sharedConnectionsMax) return least;
    if (origin.stale) return null;
    const { insecure } = this.#settings;
    const connection = new Http2Connection(origin, this, { insecure, user: this.#user }, now);
    connections.add(connection);
    return connection;
  }

  connectionClosed(connection: Http2Connection): void {
    const connections = this.#byOrigin.get(connection.origin);
    connections?.delete(connection);
    if (connections?.size === 0) this.#byOrigin.delete(connection.origin);
  }
}
