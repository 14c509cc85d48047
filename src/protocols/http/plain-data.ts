/**
 * What may become JSON: null, text, finite numbers, booleans, arrays and plain objects of them, and
 * whatever says itself how it is written (`toJSON`, as dates do). `JSON.stringify` turns a Map into
 * `{}`, a function into nothing and NaN into null without a word; a load test that sends `{}` measures
 * the wrong thing and passes, so all of these are refused with the path of the value.
 */

/** Objects and arrays; the compiler refuses functions, maps, sets, promises and patterns. */
export type PlainObject =
  | Readonly<Record<string, unknown>>
  // Interfaces have no index signature, so that they need the second form.
  | (object & {
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.match]?: never;
      readonly bind?: never;
    });

/** Deeper than any message; a value that holds itself is found by it. */
const DEPTH_MAX = 512;

/** `path` names the value in the message: "json". */
export function jsonText(value: unknown, path: string): string {
  const problem = problemOf(value, 0);
  if (problem !== null) throw new TypeError(`${path}${problem.path} ${problem.text}`);
  return JSON.stringify(value);
}

interface Problem {
  /** From the value that was looked at: ".items[2]". Put together only when there is a problem. */
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
    return { path: "", text: `lies more than ${DEPTH_MAX} levels deep, or holds itself` };
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const problem = problemOf(value[at], depth + 1);
      if (problem !== null) return { ...problem, path: `[${at}]${problem.path}` };
    }
    return null;
  }
  if (!isPlainObject(value)) {
    // Bytes have a toJSON in Node that writes every byte as a number: nobody means that.
    const own = "toJSON" in value && typeof value.toJSON === "function";
    return own && !ArrayBuffer.isView(value) ? null : refusal(nameOf(value), "it is no plain data");
  }
  const values = value as Readonly<Record<string, unknown>>;
  for (const name in values) {
    const item = values[name];
    // Left out by JSON, and meant so: an option that is not set.
    if (item === undefined) continue;
    const problem = problemOf(item, depth + 1);
    if (problem !== null) return { ...problem, path: `.${name}${problem.path}` };
  }
  return null;
}

/** Made by braces, `JSON.parse` or `Object.create(null)`, in whatever realm. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** "a Map", "a function", "undefined": for messages. */
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
