/**
 * Finds the part of a value that its schema would reject, on the sender's side. It uses the schema's own bounds, so
 * that both sides always agree. A receiver can only reject the whole message, without naming the part.
 */

import { assertNever } from "../core/base/assert.ts";
import { encodeUtf8 } from "../core/base/bytes.ts";
import type { FieldShape, Shape } from "./schema.ts";

export interface Misfit {
  /** Names of fields, from the outermost; empty for the value itself. */
  readonly path: readonly string[];
  /** As the end of a sentence that begins with what it is: "is 300: it takes …". */
  readonly problem: string;
}

/** Null when the schema takes it. */
export function misfitOf(shape: Shape, value: unknown): Misfit | null {
  switch (shape.kind) {
    case "uint":
      return wholeNumber(value, 0, Number.MAX_SAFE_INTEGER);
    case "int":
      return wholeNumber(value, -INT_MAX, INT_MAX);
    case "counter":
      return wholeNumber(value, 0, shape.max);
    case "float":
      return Number.isFinite(value) ? null : wrong(value, "a finite number");
    case "bool":
      return typeof value === "boolean" ? null : wrong(value, "true or false");
    case "text":
      return textMisfit(value, shape.bytesMin, shape.bytesMax);
    case "bytes":
      if (!(value instanceof Uint8Array)) return wrong(value, "bytes");
      return tooMany(value.length, shape.bytesMax, "bytes");
    case "json":
      return tooMany(encodeUtf8(JSON.stringify(value) ?? "").length, shape.bytesMax, "bytes");
    case "oneOf":
      return shape.words.includes(String(value)) ? null : wrong(value, shape.words.join(", "));
    case "list":
      return listMisfit(value, shape.countMax, shape.item);
    case "dictionary":
      if (!(value instanceof Map)) return wrong(value, "a map");
      return listMisfit([...value.values()], shape.countMax, shape.value);
    case "nullable":
      return value === null ? null : misfitOf(shape.inner, value);
    case "struct":
      return fieldsMisfit(shape.fields, value);
    case "union":
      return unionMisfit(shape, value);
    default:
      return assertNever(shape);
  }
}

/** Zig-zag doubles it. */
const INT_MAX = 2 ** 52 - 1;
/** Characters of a rejected value shown in the message. */
const SHOWN_CHARACTERS_MAX = 40;

function wrong(value: unknown, taken: string): Misfit {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return { path: [], problem: `is ${shown.slice(0, SHOWN_CHARACTERS_MAX)}: it takes ${taken}` };
}

function wholeNumber(value: unknown, min: number, max: number): Misfit | null {
  const fits = Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max;
  return fits ? null : wrong(value, `a whole number from ${min} to ${max}`);
}

function tooMany(count: number, max: number, what: string): Misfit | null {
  if (count <= max) return null;
  return { path: [], problem: `has ${count} ${what}: it takes at most ${max}` };
}

function textMisfit(value: unknown, bytesMin: number, bytesMax: number): Misfit | null {
  if (typeof value !== "string") return wrong(value, "a text");
  const { length } = encodeUtf8(value);
  if (length < bytesMin)
    return { path: [], problem: `is empty: it takes ${bytesMin} to ${bytesMax} bytes of text` };
  return tooMany(length, bytesMax, "bytes of text");
}

function listMisfit(value: unknown, countMax: number, item: Shape): Misfit | null {
  if (!Array.isArray(value)) return wrong(value, "a list");
  const long = tooMany(value.length, countMax, "entries");
  if (long !== null) return long;
  for (const one of value as readonly unknown[]) {
    const misfit = misfitOf(item, one);
    if (misfit !== null) return { ...misfit, problem: `has an entry that ${misfit.problem}` };
  }
  return null;
}

function fieldsMisfit(fields: readonly FieldShape[], value: unknown): Misfit | null {
  if (typeof value !== "object" || value === null) return wrong(value, "an object");
  const held = value as Readonly<Record<string, unknown>>;
  for (const { fallback, name, shape } of fields) {
    // As it is written: what is left out, or is the default, does not travel.
    if (fallback !== undefined && (held[name] === undefined || held[name] === fallback.value))
      continue;
    const misfit = misfitOf(shape, held[name]);
    if (misfit !== null) return { ...misfit, path: [name, ...misfit.path] };
  }
  return null;
}

function unionMisfit(shape: Extract<Shape, { kind: "union" }>, value: unknown): Misfit | null {
  const kind: unknown = (value as { readonly kind?: unknown } | null | undefined)?.kind;
  const variant = shape.variants.find((one) => one.kind === kind);
  if (variant === undefined) return wrong(kind, shape.variants.map((one) => one.kind).join(", "));
  return fieldsMisfit(variant.fields, value);
}
