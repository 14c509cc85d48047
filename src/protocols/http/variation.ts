/**
 * Requests that a flow describes anew in every iteration differ from each other in little: their path,
 * the values of a few headers, their JSON. Everything else is composed once, as a template; a
 * variation says what differs from it.
 */

import { UrlPart } from "./parts.ts";
import type { ComposedRequest } from "./request.ts";

export interface Variation {
  /** With the query. */
  readonly path: string;
  /** Of the template's varying headers, in their order. */
  readonly headerValues: readonly string[];
  /** Text of the content; null leaves the template's. */
  readonly json: string | null;
}

/** A request of which others are variations. */
export interface Template {
  readonly request: ComposedRequest;
  /** Places of the headers that differ in its variations; their order is that of the request. */
  readonly varying: readonly number[];
}

/** The template as it is. */
export function unvaried({ request, varying }: Template): Variation {
  const headerValues = varying.map((place) => request.headers[place]?.[1] ?? "");
  return { path: request.path, headerValues, json: null };
}

export function varied({ request, varying }: Template, variation: Variation): ComposedRequest {
  const { headerValues, json, path } = variation;
  const { url } = request;
  if (json === null && path === request.path && headerValues.length === 0) return request;
  const headers = request.headers.map((header, place) => {
    const at = varying.indexOf(place);
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
