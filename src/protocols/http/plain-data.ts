/**
 * Values that can become JSON: null, text, finite numbers, booleans, arrays and plain objects of them, and objects with
 * `toJSON`, such as dates. `JSON.stringify` silently turns a Map into `{}`, drops a function and turns NaN into null. A
 * load test that sends `{}` measures the wrong thing and passes, so all of these are rejected with the path of the
 * value.
 */

/** Objects and arrays; the compiler rejects functions, maps, sets, promises and regular expressions. */
export type PlainObject =
  | Readonly<Record<string, unknown>>
  // Interfaces have no index signature, so they need the second form.
  | (object & {
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.match]?: never;
      readonly bind?: never;
    });

/** Deeper than any message; detects a value that contains itself. */
const DEPTH_MAX = 512;

/** `path` names the value in the error message: "json". */
export function jsonText(value: unknown, path: string): string {
  const problem = problemOf(value, 0);
  if (problem !== null) throw new TypeError(`${path}${problem.path} ${problem.text}`);
  return JSON.stringify(value);
}

interface Problem {
  /** Relative to the checked value: ".items[2]". Built only when there is a problem. */
  readonly path: string;
  readonly text: string;
}

function problemOf(value: unknown, depth: number): Problem | null {
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return Number.isFinite(value) ? null : refusal(String(value), "JSON has no such number");
    case "object":
      return value === null ? null : problemInside(value, depth);
    default:
      return refusal(nameOf(value), "JSON cannot hold it");
  }
}

function problemInside(value: object, depth: number): Problem | null {
  if (depth >= DEPTH_MAX)
    return { path: "", text: `is nested more than ${DEPTH_MAX} levels deep, or contains itself` };
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const problem = problemOf(value[at], depth + 1);
      if (problem !== null) return { ...problem, path: `[${at}]${problem.path}` };
    }
    return null;
  }
  if (!isPlainObject(value)) {
    // Node's `toJSON` of bytes writes every byte as a number, which is never intended.
    const own = "toJSON" in value && typeof value.toJSON === "function";
    return own && !ArrayBuffer.isView(value)
      ? null
      : refusal(nameOf(value), "it is not plain data");
  }
  const values = value as Readonly<Record<string, unknown>>;
  for (const name in values) {
    const item = values[name];
    // JSON omits it, as intended for an option that is not set.
    if (item === undefined) continue;
    const problem = problemOf(item, depth + 1);
    if (problem !== null) return { ...problem, path: `.${name}${problem.path}` };
  }
  return null;
}

/** Created by braces, `JSON.parse` or `Object.create(null)`, in any realm. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Names a value in messages: "a Map", "a function", "undefined". */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = (value.constructor as { readonly name?: string } | undefined)?.name ?? "";
  if (name === "") return "an object without a class";
  return /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`;
}

function refusal(what: string, why: string): Problem {
  return { path: "", text: `is ${what}: ${why}` };
}
