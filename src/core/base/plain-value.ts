/**
 * Plain data of any shape as bytes, and back: values that users pass from one workflow to another, and messages whose
 * shape is their type's. Self-describing, deterministic, bounded in size and depth.
 *
 *     0 null · 1 false · 2 true · 3 whole number ≥ 0 · 4 whole number < 0 · 5 other number · 6 text
 *     7 bytes · 8 list · 9 record · 10 undefined
 *
 * Any other value is rejected at the sender with its path. (CODEC-6)
 */

import { type ByteReader, ByteWriter } from "./bytes.ts";

export const PLAIN_DEPTH_MAX = 64;

const TAG = {
  null: 0,
  false: 1,
  true: 2,
  whole: 3,
  negative: 4,
  number: 5,
  text: 6,
  bytes: 7,
  list: 8,
  record: 9,
  undefined: 10,
} as const;

const TOO_DEEP = `is nested more than ${PLAIN_DEPTH_MAX} deep, or holds itself`;

/** Where a value is not plain data, as a path with the reason; null when it is. */
export function plainProblem(value: unknown, depth = 0): string | null {
  if (depth > PLAIN_DEPTH_MAX) return TOO_DEEP;
  if (value === null || value instanceof Uint8Array) return null;
  if (typeof value !== "object") {
    const plain = ["undefined", "boolean", "number", "string"].includes(typeof value);
    return plain ? null : `is a ${typeof value}`;
  }
  const parts = Array.isArray(value)
    ? value.map((part, at) => [`[${at}]`, part] as const)
    : isRecord(value)
      ? Object.entries(value).map(([key, part]) => [`.${key}`, part] as const)
      : null;
  if (parts === null) return `is a ${value.constructor?.name ?? "object"}`;
  for (const [path, part] of parts) {
    const problem = plainProblem(part, depth + 1);
    // The full path would be too long to read.
    if (problem === TOO_DEEP && depth > 0) return problem;
    if (problem !== null) return /^[.[]/.test(problem) ? path + problem : `${path} ${problem}`;
  }
  return null;
}

/** The value must be plain: see `plainProblem`. */
function writePlain(out: ByteWriter, value: unknown): void {
  switch (typeof value) {
    case "undefined":
      out.uint8(TAG.undefined);
      return;
    case "boolean":
      out.uint8(value ? TAG.true : TAG.false);
      return;
    case "number":
      writeNumber(out, value);
      return;
    case "string":
      out.uint8(TAG.text);
      out.text(value);
      return;
    case "object":
      writeObject(out, value);
      return;
    default:
      throw new TypeError(`a ${typeof value} is not plain data`);
  }
}

function writeNumber(out: ByteWriter, value: number): void {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    out.uint8(value >= 0 ? TAG.whole : TAG.negative);
    out.varint(Math.abs(value));
    return;
  }
  out.uint8(TAG.number);
  out.float64(value);
}

function writeObject(out: ByteWriter, value: object | null): void {
  if (value === null) {
    out.uint8(TAG.null);
  } else if (value instanceof Uint8Array) {
    out.uint8(TAG.bytes);
    out.bytes(value);
  } else if (Array.isArray(value)) {
    out.uint8(TAG.list);
    out.varint(value.length);
    for (const part of value) writePlain(out, part);
  } else {
    const entries = Object.entries(value);
    out.uint8(TAG.record);
    out.varint(entries.length);
    for (const [key, part] of entries) {
      out.text(key);
      writePlain(out, part);
    }
  }
}

/** Fails the reader at anything that `writePlain` does not write. */
export function readPlain(from: ByteReader, depth = 0): unknown {
  if (depth > PLAIN_DEPTH_MAX) {
    from.fail("plain data nested too deep");
    return null;
  }
  const tag = from.uint8();
  switch (tag) {
    case TAG.null:
      return null;
    case TAG.false:
      return false;
    case TAG.true:
      return true;
    case TAG.whole:
      return from.varint();
    case TAG.negative:
      return -from.varint();
    case TAG.number:
      return from.float64();
    case TAG.text:
      return from.text(from.remaining);
    case TAG.bytes:
      return from.bytes(from.remaining).slice();
    case TAG.list:
      return readList(from, depth);
    case TAG.record:
      return readRecord(from, depth);
    case TAG.undefined:
      return undefined;
    default:
      from.fail(`plain data of an unknown kind ${tag}`);
      return null;
  }
}

function readList(from: ByteReader, depth: number): unknown[] {
  const count = from.varint();
  const list: unknown[] = [];
  // Every part takes a byte at least: a count beyond what is there ends with the bytes.
  for (let i = 0; i < count && !from.failed; i++) list.push(readPlain(from, depth + 1));
  return list;
}

function readRecord(from: ByteReader, depth: number): Record<string, unknown> {
  const count = from.varint();
  const entries: [string, unknown][] = [];
  for (let i = 0; i < count && !from.failed; i++) {
    const key = from.text(from.remaining);
    entries.push([key, readPlain(from, depth + 1)]);
  }
  // Not by assignment: a key "__proto__" is a key.
  return Object.fromEntries(entries);
}

export function encodePlain(value: unknown): Uint8Array {
  const out = new ByteWriter(256);
  writePlain(out, value);
  return out.take();
}

function isRecord(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
