/**
 * The verbs of HTTP for anything that a request becomes: a described request, or the promise of a response, over
 * HTTP/1.1 or HTTP/2. The only base class of the package besides results and errors: several clients share seven verbs,
 * and forwarding them by hand repeated the same forty lines.
 */

import type { UrlPart } from "./parts.ts";
import type { Method, RequestOptions } from "./request.ts";

export type Target = string | UrlPart;

/**
 * Output type of a request, by kind; `Body` is the type of `json()` of its response. Empty here: the clients of each
 * version of HTTP add theirs by declaration merging.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled by merging.
// biome-ignore lint/correctness/noUnusedVariables: so is the use of its parameter.
export interface HttpOutputs<Body> {}

export type HttpKind = keyof HttpOutputs<unknown>;

export abstract class HttpVerbs<Kind extends HttpKind, Where = Target> {
  abstract request<Body = unknown>(
    method: Method,
    target: Where,
    options?: RequestOptions,
  ): HttpOutputs<Body>[Kind];

  get<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("GET", target, options);
  }
  head<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("HEAD", target, options);
  }
  post<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("POST", target, options);
  }
  put<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("PUT", target, options);
  }
  patch<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("PATCH", target, options);
  }
  delete<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("DELETE", target, options);
  }
  options<Body = unknown>(target: Where, options?: RequestOptions): HttpOutputs<Body>[Kind] {
    return this.request<Body>("OPTIONS", target, options);
  }
}
