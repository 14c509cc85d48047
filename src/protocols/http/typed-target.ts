/**
 * \n A target that is typed by its schema: paths, parameters, bodies and responses as `hyperscale types` generated them
 * from an OpenAPI document. Types only; at run time it is an `HttpTarget`.
 *
 *   const shop = http.target<Paths>("https://shop.test/api");
 *   await step("item", shop.get(route("/items/{id}", { id: 7 })));
 */

import type { HeaderValues } from "./parts.ts";
import type { RequestOptions } from "./request.ts";
import type { TargetOptions } from "./request-shape.ts";
import type { RoutePart } from "./route-part.ts";
import type { HttpKind, HttpOutputs } from "./verbs.ts";

/** Type of `Paths[method][path]`: the inputs of a request and the content of its response. */
interface HttpOperation {
  /** Values of the path parameters. */
  readonly values?: object;
  /** `params`, `headers`, and one of `json`, `form` and `body`. */
  readonly options?: object;
  /** Return type of `json()`. */
  readonly response: unknown;
}

export interface TypedHttpTarget<Paths, Kind extends HttpKind> {
  readonly get: TypedVerb<Paths, "GET", Kind>;
  readonly head: TypedVerb<Paths, "HEAD", Kind>;
  readonly post: TypedVerb<Paths, "POST", Kind>;
  readonly put: TypedVerb<Paths, "PUT", Kind>;
  readonly patch: TypedVerb<Paths, "PATCH", Kind>;
  readonly delete: TypedVerb<Paths, "DELETE", Kind>;
  readonly options: TypedVerb<Paths, "OPTIONS", Kind>;
  with(options: TargetOptions): TypedHttpTarget<Paths, Kind>;
}

type TypedVerb<Paths, Method extends string, Kind extends HttpKind> = <
  Path extends PathOf<Paths, Method>,
>(
  path: Where<Path, OperationOf<Paths, Method, Path>>,
  ...options: OptionsOf<OperationOf<Paths, Method, Path>>
) => HttpOutputs<OperationOf<Paths, Method, Path>["response"]>[Kind];

type PathOf<Paths, Method extends string> = Method extends keyof Paths
  ? keyof Paths[Method] & string
  : never;

type OperationOf<Paths, Method extends string, Path> = Method extends keyof Paths
  ? Path extends keyof Paths[Method]
    ? Paths[Method][Path] extends HttpOperation
      ? Paths[Method][Path]
      : never
    : never
  : never;

/** A path with parameters is filled by `route(path, values)`. */
type Where<Path extends string, Operation> = Path extends `${string}{${string}`
  ? RoutePart<Path, Operation extends { readonly values: infer Values } ? Values : unknown>
  : Path;

/** Optional when none of its fields is required. */
type OptionsOf<Operation> = Operation extends { readonly options: infer Own }
  ? Record<never, never> extends Own
    ? [options?: Common & Own]
    : [options: Common & Own]
  : [options?: Common];

/** Options common to every request. Headers may come from the target, so a request requires none. */
type Common = Omit<RequestOptions, "params" | "headers" | "json" | "form" | "body"> & {
  readonly headers?: HeaderValues;
};
