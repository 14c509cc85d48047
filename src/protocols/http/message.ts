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
import { type Template, unvaried, type Variation, varied } from "./variation.ts";

/** What one version of HTTP adds to the requests and clients that all versions share. */
export interface HttpVersion<Sent> {
  /** Name of the protocol in results. */
  readonly protocol: string;
  /** Does what is the same in every call of a template. */
  encoder(template: Template, settings: CallSettings, origin: Origin): Encode<Sent>;
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

/** Values of the two headers, "" for none; `lasting` says that what it gives is sent again and again. */
export type Encode<Sent> = (
  variation: Variation,
  cookies: string,
  traceparent: string,
  lasting: boolean,
) => Sent;

export interface HttpExchange<Sent> extends BoundCall {
  /** The next start sends this message: a client uses one exchange for many. */
  aim(message: HttpMessage<Sent>): void;
}

export class HttpMessage<Sent> {
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
  readonly #template: Template;
  readonly #variation: Variation;
  readonly #encode: Encode<Sent>;
  #source: ComposedRequest | undefined;
  #sent: Sent | undefined;
  #wasSent = false;

  /** `given` may be a message of the same template: then what their settings ask for is known already. */
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

  /** A request that is no variation of another. */
  static of<Sent>(
    version: HttpVersion<Sent>,
    request: ComposedRequest,
    settings: CallSettings,
  ): HttpMessage<Sent> {
    const template = { request, varying: [] };
    return new HttpMessage(version, template, unvaried(template), settings);
  }

  /** The whole request; put together only where somebody asks for more than what is sent. */
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

  /** For a virtual user without cookies. What is sent a second time is worth being kept. */
  get sent(): Sent {
    if (this.#sent !== undefined) return this.#sent;
    const own = this.#template.request.cookies;
    const sent = this.#encode(this.#variation, own, "", this.#wasSent);
    if (this.#wasSent) this.#sent = sent;
    this.#wasSent = true;
    return sent;
  }

  /** With the cookies of the virtual user's jar behind those of the request itself, and its trace. */
  sentWith(fromJar: string, traceparent: string): Sent {
    if (fromJar === "" && traceparent === "") return this.sent;
    const own = this.#template.request.cookies;
    const cookies = own === "" || fromJar === "" ? own + fromJar : `${own}; ${fromJar}`;
    return this.#encode(this.#variation, cookies, traceparent, false);
  }

  /** For people: "GET https://shop.test/cart?page=2". */
  get title(): string {
    const { method, url } = this.#template.request;
    return `${method} ${url.secure ? "https" : "http"}://${url.authority}${this.path}`;
  }

  get cookieOrigin(): CookieOrigin {
    const { url } = this.#template.request;
    return { host: url.hostname, path: this.path, secure: url.secure };
  }

  /** Why an answer is a failure, null for a success. The last redirect that may be followed leads to no other. */
  failureOf(status: number, redirectsMax: number, redirectsLeft: number): string | null {
    const { request } = this.#template;
    const isRedirect = status >= 300 && status <= 399 && status !== 304;
    if (isRedirect && redirectsMax > 0 && redirectsLeft === 0 && request.expect === null)
      return `redirected more than ${redirectsMax} times, the most that redirects allows (status ${status})`;
    return isSuccess(request, status) ? null : `the server answered with status ${status}`;
  }
}
