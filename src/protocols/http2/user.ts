/**
 * HTTP/2 state of one virtual user: its connections (or the pool that all users of a core share), and its calls in
 * flight.
 */

import { type DecodedBodies, type DecodedOwner, decodedBodies } from "../http/decoded-bodies.ts";
import { type UserCookies, userCookies } from "../http/user-cookies.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings, Session, SessionKey, SessionState } from "../protocol.ts";
import type { Http2Connection } from "./connection.ts";
import { Http2Pool } from "./pool.ts";

/** A call in flight that its user can cancel. */
interface Cancellable {
  cancel(): void;
}

export class Http2User implements SessionState, DecodedOwner {
  readonly settings: CallSettings;
  readonly cookies: UserCookies;
  closed = false;
  readonly #session: Session;
  readonly #pool: Http2Pool;
  readonly #underWay = new Set<Cancellable>();

  constructor(session: Session) {
    const { settings } = session;
    this.#session = session;
    this.settings = settings;
    this.cookies = session.state(userCookies);
    this.#pool =
      settings.connections === "shared"
        ? Http2Pool.shared(settings)
        : new Http2Pool(settings, session.user);
    this.#pool.join();
  }

  connectionFor(origin: Origin, now: number): Http2Connection | null {
    return this.#pool.connectionFor(origin, now);
  }

  started(exchange: Cancellable): void {
    this.#underWay.add(exchange);
  }

  ended(exchange: Cancellable): void {
    this.#underWay.delete(exchange);
  }

  get decoded(): DecodedBodies {
    return this.#session.state(decodedBodies);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    for (const exchange of [...this.#underWay]) exchange.cancel();
    this.#pool.leave();
  }
}

export const http2Sessions: SessionKey<Http2User> = {
  name: "http2",
  create: (session) => new Http2User(session),
};
