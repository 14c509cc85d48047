/**
 * One virtual user's side of HTTP/2: its connections (or the pool that all users of a core share),
 * its cookies, and the calls it has under way.
 */

import type { OutgoingHttpHeaders } from "node:http2";
import { CookieJar } from "../http/cookie-jar.ts";
import type { Origin } from "../net/origin.ts";
import { resolveHost } from "../net/resolve.ts";
import type {
  CallSettings,
  ResolvedAddress,
  Session,
  SessionKey,
  SessionState,
} from "../protocol.ts";
import type { Http2Connection } from "./connection.ts";
import type { Http2Exchange } from "./exchange.ts";
import type { Http2Message } from "./message.ts";
import { Http2Pool } from "./pool.ts";

export class Http2User implements SessionState {
  readonly settings: CallSettings;
  closed = false;
  readonly #pool: Http2Pool;
  readonly #underWay = new Set<Http2Exchange>();
  #jar: CookieJar | null = null;

  constructor(settings: CallSettings) {
    this.settings = settings;
    this.#pool =
      settings.connections === "shared" ? Http2Pool.shared(settings) : new Http2Pool(settings);
    this.#pool.join();
  }

  connectionFor(origin: Origin, now: number): Http2Connection {
    return this.#pool.connectionFor(origin, now);
  }

  started(exchange: Http2Exchange): void {
    this.#underWay.add(exchange);
  }

  ended(exchange: Http2Exchange): void {
    this.#underWay.delete(exchange);
  }

  headersFor(message: Http2Message): OutgoingHttpHeaders {
    const cookies = this.#jar?.header(cookieOrigin(message), Date.now()) ?? "";
    return cookies === "" ? message.headers : message.withCookies(cookies);
  }

  cookiesArrived(message: Http2Message, values: readonly string[]): void {
    if (this.settings.cookies === "off") return;
    this.#jar ??= new CookieJar();
    this.#jar.store(values, cookieOrigin(message), Date.now());
  }

  resolve(host: string): Promise<ResolvedAddress> {
    return resolveHost(host);
  }

  reset(): void {
    if (this.settings.cookies === "iteration") this.#jar = null;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    for (const exchange of [...this.#underWay]) exchange.cancel();
    this.#pool.leave();
  }
}

function cookieOrigin({ source }: Http2Message): { host: string; path: string; secure: boolean } {
  return { host: source.url.hostname, path: source.path, secure: source.url.secure };
}

export const http2Sessions: SessionKey<Http2User> = {
  name: "http2",
  create: (session: Session) => new Http2User(session.settings),
};
