/** Checks of plain data read from bytes: a shape tells whether a value matches it. */

import { ByteReader } from "../../base/bytes.ts";
import { readPlain } from "../../base/plain-value.ts";

export type Shape = (value: unknown) => boolean;

export const isText: Shape = (value) => typeof value === "string";
export const isWhole: Shape = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
export const isNumber: Shape = (value) => typeof value === "number";
export const isFiniteNumber: Shape = (value) => Number.isFinite(value);
export const isBytes: Shape = (value) => value instanceof Uint8Array;
export const isAnything: Shape = () => true;
export const isBoolean: Shape = (value) => typeof value === "boolean";

export function orNull(shape: Shape): Shape {
  return (value) => value === null || shape(value);
}

/** A field that may be absent. */
export function optional(shape: Shape): Shape {
  return (value) => value === undefined || shape(value);
}

export function listOf(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every(shape);
}

export function oneOf(...texts: readonly string[]): Shape {
  return (value) => typeof value === "string" && texts.includes(value);
}

/** A record with at least these fields. */
export function record(fields: Readonly<Record<string, Shape>>): Shape {
  const shapes = Object.entries(fields);
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    if (value instanceof Uint8Array) return false;
    const found = value as Readonly<Record<string, unknown>>;
    for (const [name, shape] of shapes)
      if (!shape(Object.hasOwn(found, name) ? found[name] : undefined)) return false;
    return true;
  };
}

/** A record with any keys, all of one shape. */
export function mapOf(shape: Shape): Shape {
  const isRecord = record({});
  return (value) => isRecord(value) && Object.values(value as object).every(shape);
}

/** A record whose `kind` is one of these, with the fields of that kind. */
export function variant(kinds: Readonly<Record<string, Shape>>): Shape {
  const hasKind = record({ kind: isText });
  return (value) => {
    const kind = hasKind(value) ? (value as { kind: string }).kind : "";
    return Object.hasOwn(kinds, kind) && kinds[kind]?.(value) === true;
  };
}

/** Decodes all of the bytes as one value of this shape; null otherwise. */
export function decodeShape<Value>(bytes: Uint8Array, shape: Shape): Value | null {
  const from = new ByteReader(bytes);
  const value = readPlain(from);
  if (from.failed || from.remaining > 0 || !shape(value)) return null;
  return value as Value;
}
