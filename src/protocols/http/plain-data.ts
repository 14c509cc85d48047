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
  checkPlainData(value, path, 0);
  return JSON.stringify(value);
}

function checkPlainData(value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case "string":
    case "boolean":
      return;
    case "number":
      if (Number.isFinite(value)) return;
      throw refusal(path, String(value), "JSON has no such number");
    case "object":
      break;
    default:
      throw refusal(path, nameOf(value), "JSON cannot hold it");
  }
  if (value === null) return;
  if (depth >= DEPTH_MAX) {
    throw new TypeError(`${path} lies more than ${DEPTH_MAX} levels deep, or holds itself`);
  }
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++)
      checkPlainData(value[at], `${path}[${at}]`, depth + 1);
    return;
  }
  if (!isPlainObject(value)) {
    // Bytes have a toJSON in Node that writes every byte as a number: nobody means that.
    if ("toJSON" in value && typeof value.toJSON === "function" && !ArrayBuffer.isView(value))
      return;
    throw refusal(path, nameOf(value), "it is no plain data");
  }
  for (const name in value) {
    const item = (value as Readonly<Record<string, unknown>>)[name];
    // Left out by JSON, and meant so: an option that is not set.
    if (item !== undefined) checkPlainData(item, `${path}.${name}`, depth + 1);
  }
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

function refusal(path: string, what: string, why: string): TypeError {
  return new TypeError(`${path} is ${what}: ${why}`);
}
