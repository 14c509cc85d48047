/**
 * A composed request under the settings of one workflow: its destination, its timeouts, its success criterion, and the
 * form in which one version of HTTP sends it, encoded once. `Sent` is that form: bytes for HTTP/1.1, a header object
 * for HTTP/2.
 */

import { type CallTimeouts, timeoutsOf } from "../call.ts";
import { type Origin, originOf } from "../net/origin.ts";
import type { BoundCall, CallSettings, CallSink, Session } from "../protocol.ts";
import { type BodySource, isSource } from "./body-source.ts";
import type { CookieOrigin } from "./cookie-jar.ts";
import { type ComposedRequest, isSuccess } from "./request.ts";
import { type Template, unvaried, type Variation, varied } from "./variation.ts";

/** Parts that one version of HTTP adds to the shared requests and clients. */
export interface HttpVersion<Sent> {
  /** Name of the protocol in results. */
  readonly protocol: string;
  /** Does the work that is the same for every call of a template. */
  encoder(template: Template, settings: CallSettings, origin: Origin): Encode<Sent>;
  /** An exchange of this virtual user, which can be started repeatedly. */
  exchange(
    message: HttpMessage<Sent>,
    session: Session,
    keep: boolean,
    sink: CallSink,
  ): HttpExchange<Sent>;
  /** Returns the bound call if it is an exchange of this version. */
  exchangeOf(bound: BoundCall | null): HttpExchange<Sent> | null;
}

/** Takes the values of the two headers, "" for none; `lasting` says that the result is sent repeatedly. */
export type Encode<Sent> = (
  variation: Variation,
  cookies: string,
  traceparent: string,
  lasting: boolean,
) => Sent;

export interface HttpExchange<Sent> extends BoundCall {
  /** Sets the message that the next start sends; a client uses one exchange for many. */
  aim(message: HttpMessage<Sent>): void;
}

export class HttpMessage<Sent> {
  readonly origin: Origin;
  readonly timeouts: CallTimeouts;
  readonly redirectsMax: number;
  /** Longest body to keep. */
  readonly bodyBytesMax: number;
  /** Null: keep the body where a function can read it. */
  readonly readBody: boolean | null;
  /** The response has no body, whatever its headers say. */
  readonly isHead: boolean;
  /** Sent piece by piece after `sent`; null nearly always. */
  readonly upload: BodySource | null;
  readonly #template: Template;
  readonly #variation: Variation;
  readonly #encode: Encode<Sent>;
  #source: ComposedRequest | undefined;
  #sent: Sent | undefined;
  #wasSent = false;

  /** `given` may be a message of the same template, whose derived settings are then reused. */
  constructor(
    version: HttpVersion<Sent>,
    template: Template,
    variation: Variation,
    given: CallSettings | HttpMessage<Sent>,
  ) {
    this.#template = template;
    this.#variation = variation;
    if (given instanceof HttpMessage) {
      this.origin = given.origin;
      this.timeouts = given.timeouts;
      this.redirectsMax = given.redirectsMax;
      this.bodyBytesMax = given.bodyBytesMax;
      this.readBody = given.readBody;
      this.isHead = given.isHead;
      this.upload = given.upload;
      this.#encode = given.#encode;
      return;
    }
    const { request } = template;
    this.origin = originOf(request.url, request.url.route);
    if (this.origin.route?.perUser === true && given.connections === "shared")
      throw new TypeError('a certificate for each user needs connections: "user"');
    this.timeouts = timeoutsOf(request.timeoutMs, given);
    this.redirectsMax = request.redirects ?? given.redirectsMax;
    this.bodyBytesMax = request.bodyBytesMax ?? given.bodyBytesMax;
    this.readBody = request.readBody ?? (given.readBody ? null : false);
    this.isHead = request.method === "HEAD";
    this.upload = isSource(request.body) ? request.body : null;
    this.#encode = version.encoder(template, given, this.origin);
  }

  /** A request that is not a variation of another. */
  static of<Sent>(
    version: HttpVersion<Sent>,
    request: ComposedRequest,
    settings: CallSettings,
  ): HttpMessage<Sent> {
    const template = { request, varying: [] };
    return new HttpMessage(version, template, unvaried(template), settings);
  }

  /** The whole request; composed only when more than its bytes is needed. */
  get source(): ComposedRequest {
    this.#source ??= varied(this.#template, this.#variation);
    return this.#source;
  }

  get method(): string {
    return this.#template.request.method;
  }

  get path(): string {
    return this.#variation.path;
  }

  /** Encoded form for a virtual user without cookies; cached from the second use on. */
  get sent(): Sent {
    if (this.#sent !== undefined) return this.#sent;
    const own = this.#template.request.cookies;
    const sent = this.#encode(this.#variation, own, "", this.#wasSent);
    if (this.#wasSent) this.#sent = sent;
    this.#wasSent = true;
    return sent;
  }

  /** Encoded form with the cookies of the virtual user's jar after those of the request itself, and its trace. */
  sentWith(fromJar: string, traceparent: string): Sent {
    if (fromJar === "" && traceparent === "") return this.sent;
    const own = this.#template.request.cookies;
    const cookies = own === "" || fromJar === "" ? own + fromJar : `${own}; ${fromJar}`;
    return this.#encode(this.#variation, cookies, traceparent, false);
  }

  /** Request as shown in reports: "GET https://shop.test/cart?page=2". */
  get title(): string {
    const { method, url } = this.#template.request;
    return `${method} ${url.secure ? "https" : "http"}://${url.authority}${this.path}`;
  }

  get cookieOrigin(): CookieOrigin {
    const { url } = this.#template.request;
    return { host: url.hostname, path: this.path, secure: url.secure };
  }

  /** Returns why a response is a failure; null for a success. A redirect beyond the allowed number is a failure. */
  failureOf(status: number, redirectsMax: number, redirectsLeft: number): string | null {
    const { request } = this.#template;
    const isRedirect = status >= 300 && status <= 399 && status !== 304;
    if (isRedirect && redirectsMax > 0 && redirectsLeft === 0 && request.expect === null)
      return `redirected more than ${redirectsMax} times, the most that redirects allows (status ${status})`;
    return isSuccess(request, status) ? null : `the server answered with status ${status}`;
  }
}
