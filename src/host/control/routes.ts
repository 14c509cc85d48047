/** A table of routes: method and path, with `:name` for a variable part of the path. */

import { HttpError } from "./http-error.ts";

interface RouteMatch<Value> {
  readonly value: Value;
  readonly params: Readonly<Record<string, string>>;
}

interface Entry<Value> {
  readonly method: string;
  readonly parts: readonly string[];
  readonly value: Value;
}

export class RouteTable<Value> {
  readonly #exact = new Map<string, Value>();
  readonly #varying: Entry<Value>[] = [];

  /** `route` as in "GET /v1/jobs/:id". */
  add(route: string, value: Value): void {
    const [method = "", path = ""] = route.split(" ", 2);
    if (!path.includes("/:")) this.#exact.set(route, value);
    else this.#varying.push({ method, parts: path.split("/"), value });
  }

  find(method: string, path: string): RouteMatch<Value> | null {
    const exact = this.#exact.get(`${method} ${path}`);
    if (exact !== undefined) return { value: exact, params: {} };
    const parts = path.split("/");
    const entry = this.#varying.find((one) => one.method === method && fits(one.parts, parts));
    if (entry === undefined) return null;
    const params = entry.parts.flatMap((name, at) =>
      name.startsWith(":") ? [[name.slice(1), decodePart(parts[at] ?? "")]] : [],
    );
    return { value: entry.value, params: Object.fromEntries(params) };
  }
}

function fits(pattern: readonly string[], parts: readonly string[]): boolean {
  return (
    pattern.length === parts.length &&
    pattern.every((name, at) => (name.startsWith(":") ? parts[at] !== "" : name === parts[at]))
  );
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new HttpError(400, "the path is not well encoded");
  }
}
