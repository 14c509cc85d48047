/**
 * Requests that a flow describes in every iteration differ from each other in little: their path, the values of a few
 * headers, their JSON. The rest is composed once, as a template; a variation contains the difference.
 */

import { UrlPart } from "./parts.ts";
import type { ComposedRequest } from "./request.ts";

export interface Variation {
  /** Includes the query. */
  readonly path: string;
  /** Values of the template's varying headers, in their order. */
  readonly headerValues: readonly string[];
  /** Text of the content; null keeps the template's. */
  readonly json: string | null;
}

/** A request that others are variations of. */
export interface Template {
  readonly request: ComposedRequest;
  /** Indexes of the headers that vary, in the order of the request. */
  readonly varying: readonly number[];
}

/** The template without changes. */
export function unvaried({ request, varying }: Template): Variation {
  const headerValues = varying.map((index) => request.headers[index]?.[1] ?? "");
  return { path: request.path, headerValues, json: null };
}

export function varied({ request, varying }: Template, variation: Variation): ComposedRequest {
  const { headerValues, json, path } = variation;
  const { url } = request;
  if (json === null && path === request.path && headerValues.length === 0) return request;
  const headers = request.headers.map((header, index) => {
    const at = varying.indexOf(index);
    return at < 0 ? header : ([header[0], headerValues[at] as string] as const);
  });
  return {
    ...request,
    url: new UrlPart(path, url.route, url),
    path,
    headers,
    body: json === null ? request.body : Buffer.from(json),
  };
}
