/**
 * The verbs of HTTP over whatever a request becomes: a prepared request, or the promise of an answer,
 * by HTTP/1.1 or HTTP/2. The one base class of the package besides results and errors: four clients
 * share seven verbs, and forwarding them by hand was the same forty lines four times.
 */

import type { UrlPart } from "./parts.ts";
import type { Method, RequestOptions } from "./request.ts";

export type Target = string | UrlPart;

export abstract class HttpVerbs<Output> {
  abstract request(method: Method, target: Target, options?: RequestOptions): Output;

  get(target: Target, options?: RequestOptions): Output {
    return this.request("GET", target, options);
  }
  head(target: Target, options?: RequestOptions): Output {
    return this.request("HEAD", target, options);
  }
  post(target: Target, options?: RequestOptions): Output {
    return this.request("POST", target, options);
  }
  put(target: Target, options?: RequestOptions): Output {
    return this.request("PUT", target, options);
  }
  patch(target: Target, options?: RequestOptions): Output {
    return this.request("PATCH", target, options);
  }
  delete(target: Target, options?: RequestOptions): Output {
    return this.request("DELETE", target, options);
  }
  options(target: Target, options?: RequestOptions): Output {
    return this.request("OPTIONS", target, options);
  }
}
