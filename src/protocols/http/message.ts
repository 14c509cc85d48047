/**
 * A composed request under the settings of one workflow: where it goes, how long it may take, what
 * counts as success, and the form in which one version of HTTP sends it, made once. `Sent` is that
 * form: bytes for HTTP/1.1, a header object for HTTP/2.
 */

import { type CallTimeouts, timeoutsOf } from "../call.ts";
import { type Origin, originOf } from "../net/origin.ts";
import type { BoundCall, CallSettings, CallSink, Session } from "../protocol.ts";
import { type BodySource, isSource } from "./body-source.ts";
import type { CookieOrigin } from "./cookie-jar.ts";
import { type ComposedRequest, isSuccess } from "./request.ts";

/** What one version of HTTP adds to the requests and clients that all versions share. */
export interface HttpVersion<Sent> {
  /** Name of the protocol in results. */
  readonly protocol: string;
  /**
   * Does what is the same in every call; the function it gives adds the path, which may be another than
   * the request's, and the Cookie header ("" for none).
   */
  encoder(
    request: ComposedRequest,
    settings: CallSettings,
    origin: Origin,
  ): (path: string, cookies: string) => Sent;
  /** An exchange of this virtual user, to be started as often as needed. */
  exchange(
    message: HttpMessage<Sent>,
    session: Session,
    keep: boolean,
    sink: CallSink,
  ): HttpExchange<Sent>;
  /** The bound call, if it is an exchange of this version. */
  exchangeOf(bound: BoundCall | null): HttpExchange<Sent> | null;
}

export interface HttpExchange<Sent> extends BoundCall {
  /** The next start sends this message: a client uses one exchange for many. */
  aim(message: HttpMessage<Sent>): void;
}

export class HttpMessage<Sent> {
  readonly source: ComposedRequest;
  readonly origin: Origin;
  readonly timeouts: CallTimeouts;
  readonly redirectsMax: number;
  /** The longest body that is kept. */
  readonly bodyBytesMax: number;
  /** Null: keep the body where a function can see it. */
  readonly readBody: boolean | null;
  /** The answer has no body whatever its headers say. */
  readonly isHead: boolean;
  /** Sent piece by piece behind what `sent` holds; null nearly always. */
  readonly upload: BodySource | null;
  #sent: Sent | undefined;
  readonly #encode: (path: string, cookies: string) => Sent;

  /** `like` is a message of which only the path differs: the rest of its work is done already. */
  constructor(
    version: HttpVersion<Sent>,
    source: ComposedRequest,
    settings: CallSettings,
    like: HttpMessage<Sent> | null = null,
  ) {
    this.source = source;
    if (like !== null) {
      this.origin = like.origin;
      this.timeouts = like.timeouts;
      this.redirectsMax = like.redirectsMax;
      this.bodyBytesMax = like.bodyBytesMax;
      this.readBody = like.readBody;
      this.isHead = like.isHead;
      this.upload = like.upload;
      this.#encode = like.#encode;
      return;
    }
    this.origin = originOf(source.url, source.url.route);
    if (this.origin.route?.perUser === true && settings.connections === "shared")
      throw new TypeError('a certificate for each user needs connections: "user"');
    this.timeouts = timeoutsOf(source.timeoutMs, settings);
    this.redirectsMax = source.redirects ?? settings.redirectsMax;
    this.bodyBytesMax = source.bodyBytesMax ?? settings.bodyBytesMax;
    this.readBody = source.readBody ?? (settings.readBody ? null : false);
    this.isHead = source.method === "HEAD";
    this.upload = isSource(source.body) ? source.body : null;
    this.#encode = version.encoder(source, settings, this.origin);
  }

  /** For a virtual user without cookies; made when the first one sends it. */
  get sent(): Sent {
    this.#sent ??= this.#encode(this.source.path, this.source.cookies);
    return this.#sent;
  }

  /** With the cookies of the virtual user's jar behind those of the request itself. */
  sentWith(fromJar: string): Sent {
    if (fromJar === "") return this.sent;
    const own = this.source.cookies;
    return this.#encode(this.source.path, own === "" ? fromJar : `${own}; ${fromJar}`);
  }

  /** For people: "GET https://shop.test/cart?page=2". */
  get title(): string {
    const { method, path, url } = this.source;
    return `${method} ${url.secure ? "https" : "http"}://${url.authority}${path}`;
  }

  get cookieOrigin(): CookieOrigin {
    const { path, url } = this.source;
    return { host: url.hostname, path, secure: url.secure };
  }

  succeeded(status: number): boolean {
    return isSuccess(this.source, status);
  }
}
