/**
 * The schema-checked binary codec. (CODEC-1..3, AD-25.6)
 *
 * A schema is a value built from the types below; it writes what it describes and reads nothing else. Bytes choose
 * among the shapes that a schema allows, never a constructor, a module or a property name, so nothing that arrives can
 * run or reach a prototype.
 *
 *     struct = field*                     fields in rising order of number, each at most once
 *     field  = varint(number · 4 + wire)  value
 *     wire   = 0 varint · 1 eight bytes · 2 length-prefixed
 *
 * Unknown fields are skipped by their wire kind; missing optional ones take their default; a missing required one, a
 * wrong kind or a value out of bounds is rejected with the names of message and field. Every count and length is
 * checked against its bound and against the available bytes before anything is allocated. Depth is limited by the
 * schema: no schema refers to itself.
 */

import { ByteReader, ByteWriter, decodeUtf8, encodeUtf8 } from "../core/base/bytes.ts";
import { PartMemory } from "../core/base/part-memory.ts";

const NO_BYTES = new Uint8Array(0);
const VARINT = 0;
const EIGHT_BYTES = 1;
const PREFIXED = 2;
type WireKind = typeof VARINT | typeof EIGHT_BYTES | typeof PREFIXED;

/** A schema as data: for the protocol's golden file, generators and documentation. */
export type Shape =
  | { readonly kind: "uint" | "int" | "bool" | "float" }
  | { readonly kind: "counter"; readonly max: number }
  | { readonly kind: "text"; readonly bytesMin: number; readonly bytesMax: number }
  | { readonly kind: "bytes"; readonly bytesMax: number }
  | { readonly kind: "json"; readonly bytesMax: number }
  | { readonly kind: "oneOf"; readonly words: readonly string[] }
  | { readonly kind: "list"; readonly item: Shape; readonly countMax: number }
  | { readonly kind: "dictionary"; readonly value: Shape; readonly countMax: number }
  | { readonly kind: "nullable"; readonly inner: Shape }
  | { readonly kind: "struct"; readonly name: string; readonly fields: readonly FieldShape[] }
  | { readonly kind: "union"; readonly name: string; readonly variants: readonly VariantShape[] };

export interface FieldShape {
  readonly name: string;
  readonly number: number;
  readonly shape: Shape;
  readonly fallback: { readonly value: unknown } | undefined;
}

interface VariantShape {
  readonly kind: string;
  readonly number: number;
  readonly fields: readonly FieldShape[];
}

export interface Type<Value> {
  readonly wire: WireKind;
  readonly shape: Shape;
  write(out: ByteWriter, value: Value): void;
  /** Total: a bad value turns the reader `failed`, and the answer means nothing then. */
  read(from: ByteReader): Value;
}

export type ValueOf<Schema> = Schema extends Type<infer Value> ? Value : never;

export type Decoded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

/** A safe non-negative integer. */
export const uint: Type<number> = {
  wire: VARINT,
  shape: { kind: "uint" },
  write: (out, value) => out.varint(value),
  read: (from) => from.varint(),
};

/** A whole number from 0 to `max`: what others count and we add to, or compare with our own. */
export function counter(max: number): Type<number> {
  return {
    wire: VARINT,
    shape: { kind: "counter", max },
    write: (out, value) => out.varint(value),
    read: (from) => {
      const value = from.varint();
      if (value > max) from.fail("a counter is beyond its bound");
      return value;
    },
  };
}

/** An integer of either sign, smaller than 2^52 in size: zig-zag doubles it. */
export const int: Type<number> = {
  wire: VARINT,
  shape: { kind: "int" },
  write: (out, value) => out.signed(value),
  read: (from) => from.signed(),
};

export const bool: Type<boolean> = {
  wire: VARINT,
  shape: { kind: "bool" },
  write: (out, value) => out.varint(value ? 1 : 0),
  read: (from) => {
    const value = from.varint();
    if (value > 1) from.fail("a yes/no value is neither 0 nor 1");
    return value === 1;
  },
};

/** A finite double: NaN and the infinities are refused, since nothing of ours means them. */
export const float: Type<number> = {
  wire: EIGHT_BYTES,
  shape: { kind: "float" },
  write: (out, value) => out.float64(value),
  read: (from) => {
    const value = from.float64();
    if (!Number.isFinite(value)) from.fail("a number is not finite");
    return value;
  },
};

/** UTF-8 of at most `bytesMax` bytes. Invalid UTF-8 is refused: two spellings of one name are an attack. */
export function text(bytesMax: number, bytesMin = 0): Type<string> {
  return {
    wire: PREFIXED,
    shape: { kind: "text", bytesMin, bytesMax },
    write: (out, value) => out.text(value),
    read: (from) => {
      const familiar = from.familiar(bytesMax);
      if (familiar !== null && familiar.length >= bytesMin) return familiar;
      const raw = familiar === null ? from.bytes(bytesMax) : NO_BYTES;
      if (raw.length < bytesMin) from.fail("a text is empty");
      const value = decodeStrict(raw);
      if (value === null) from.fail("a text is not UTF-8");
      return value ?? "";
    },
  };
}

export function bytes(bytesMax: number): Type<Uint8Array> {
  return {
    wire: PREFIXED,
    shape: { kind: "bytes", bytesMax },
    write: (out, value) => out.bytes(value),
    // A copy: the packet it arrived in may be reused or be far larger.
    read: (from) => from.bytes(bytesMax).slice(),
  };
}

/** One of a fixed list of words, sent as its index in the list. Words are only ever appended. */
export function oneOf<Word extends string>(words: readonly Word[]): Type<Word> {
  const places = new Map(words.map((word, place) => [word, place]));
  return {
    wire: VARINT,
    shape: { kind: "oneOf", words },
    write: (out, value) => out.varint(places.get(value) ?? words.length),
    read: (from) => {
      const word = words[from.varint()];
      if (word === undefined) from.fail("an unknown word of a fixed list");
      return word ?? (words[0] as Word);
    },
  };
}

export function list<Item>(item: Type<Item>, countMax: number): Type<readonly Item[]> {
  return {
    wire: PREFIXED,
    shape: { kind: "list", item: item.shape, countMax },
    write: (out, values) => {
      const mark = out.begin();
      out.varint(values.length);
      for (const value of values) item.write(out, value);
      out.end(mark);
    },
    read: (from) => {
      const outer = from.enter();
      const count = boundedCount(from, countMax);
      const values: Item[] = [];
      for (let i = 0; i < count && !from.failed; i++) values.push(item.read(from));
      if (from.remaining > 0) from.fail("bytes after the end of a list");
      from.leave(outer);
      return values;
    },
  };
}

/** Text keys to values. A `Map`, so that no key can name a property. */
export function dictionary<Value>(
  value: Type<Value>,
  countMax: number,
  keyBytesMax = 256,
): Type<ReadonlyMap<string, Value>> {
  const key = text(keyBytesMax);
  return {
    wire: PREFIXED,
    shape: { kind: "dictionary", value: value.shape, countMax },
    write: (out, values) => {
      const mark = out.begin();
      out.varint(values.size);
      for (const [name, held] of values) {
        key.write(out, name);
        value.write(out, held);
      }
      out.end(mark);
    },
    read: (from) => {
      const outer = from.enter();
      const count = boundedCount(from, countMax);
      const values = new Map<string, Value>();
      for (let i = 0; i < count && !from.failed; i++) {
        const name = key.read(from);
        if (values.has(name)) from.fail("a key occurs twice");
        values.set(name, value.read(from));
      }
      if (from.remaining > 0) from.fail("bytes after the end of a dictionary");
      from.leave(outer);
      return values;
    },
  };
}

/** Wraps a value that may be null; meant for optional fields whose default is null. */
export function nullable<Value>(type: Type<Value>): Type<Value | null> {
  return {
    wire: type.wire,
    shape: { kind: "nullable", inner: type.shape },
    write: (out, value) => {
      if (value !== null) type.write(out, value);
    },
    read: (from) => type.read(from),
  };
}

/** The same bytes under a branded name. The one cast of the codec: decoders are where brands are made. */
export function branded<Name>(type: Type<string> | Type<number>): Type<Name> {
  return type as unknown as Type<Name>;
}

export interface Field<Value> {
  readonly number: number;
  readonly type: Type<Value>;
  /** Absent for required fields. */
  readonly fallback?: { readonly value: Value };
}

export function required<Value>(number: number, type: Type<Value>): Field<Value> {
  return { number, type };
}

/** Not sent when it equals its default (or is an empty list or empty bytes with an empty default). */
export function optional<Value>(number: number, type: Type<Value>, value: Value): Field<Value> {
  return { number, type, fallback: { value } };
}

export type Fields<Value> = { readonly [Name in keyof Value]-?: Field<Value[Name]> };

interface Slot {
  readonly name: string;
  readonly tag: number;
  readonly type: Type<unknown>;
  readonly fallback: { readonly value: unknown } | undefined;
}

export function struct<Value extends object>(name: string, fields: Fields<Value>): Type<Value> {
  const slots = slotsOf(fields as Readonly<Record<string, Field<unknown>>>);
  return {
    wire: PREFIXED,
    shape: { kind: "struct", name, fields: shapesOf(slots) },
    write: (out, value) => {
      const mark = out.begin();
      writeSlots(out, slots, value as Readonly<Record<string, unknown>>);
      out.end(mark);
    },
    read: (from) => {
      const outer = from.enter();
      const value = readSlots(from, name, slots) as Value;
      from.leave(outer);
      return value;
    },
  };
}

/** How many parts of one kind are kept, and how long they may be. */
const RECURRING_PARTS = 4_096;
const RECURRING_BYTES_MAX = 160;

/**
 * A part that repeats in the same bytes, such as a member's record: encoded once per value and decoded once per
 * content. All decoders share one value, which must not be changed.
 */
export function recurring<Value extends object>(type: Type<Value>): Type<Value> {
  const decoded = new PartMemory<Value>(RECURRING_PARTS, RECURRING_BYTES_MAX);
  const encoded = new WeakMap<Value, Uint8Array>();
  return {
    wire: type.wire,
    shape: type.shape,
    write: (out, value) => {
      const known = encoded.get(value);
      if (known !== undefined) {
        out.raw(known);
        return;
      }
      const start = out.length;
      type.write(out, value);
      encoded.set(value, out.take(start));
    },
    read: (from) => {
      const known = from.recall(decoded);
      if (known !== undefined) return known;
      const mark = from.at;
      const value = type.read(from);
      from.remember(decoded, mark, value);
      return value;
    },
  };
}

interface Variant<Value> {
  readonly number: number;
  readonly fields: Fields<Omit<Value, "kind">>;
}

type Kinded = { readonly kind: string };
type Variants<Union extends Kinded> = {
  readonly [Kind in Union["kind"]]: Variant<Extract<Union, { readonly kind: Kind }>>;
};

/** A union discriminated by `kind`: length, variant number, then the variant's fields. */
export function union<Union extends Kinded>(name: string, variants: Variants<Union>): Type<Union> {
  const byKind = new Map<string, { number: number; slots: readonly Slot[] }>();
  const byNumber = new Map<number, { kind: string; title: string; slots: readonly Slot[] }>();
  const shapes: VariantShape[] = [];
  for (const [kind, variant] of Object.entries<Variant<Kinded>>(variants)) {
    const slots = slotsOf(variant.fields as Readonly<Record<string, Field<unknown>>>);
    shapes.push({ kind, number: variant.number, fields: shapesOf(slots) });
    byKind.set(kind, { number: variant.number, slots });
    byNumber.set(variant.number, { kind, title: `${name}.${kind}`, slots });
  }
  return {
    wire: PREFIXED,
    shape: { kind: "union", name, variants: shapes },
    write: (out, value) => {
      const variant = byKind.get(value.kind);
      const mark = out.begin();
      out.varint(variant?.number ?? 0);
      writeSlots(out, variant?.slots ?? [], value as Readonly<Record<string, unknown>>);
      out.end(mark);
    },
    read: (from) => {
      const outer = from.enter();
      const number = from.varint();
      const variant = byNumber.get(number);
      if (variant === undefined) from.fail(`${name}: unknown kind ${number}`);
      const value = readSlots(from, variant?.title ?? name, variant?.slots ?? [], variant?.kind);
      from.leave(outer);
      return value as Union;
    },
  };
}

/** The bytes of one value, without a length before them. */
export function encode<Value>(type: Type<Value>, value: Value, out = new ByteWriter()): Uint8Array {
  type.write(out, value);
  return out.take();
}

/** Exactly one value: bytes left over are a refusal. */
export function decode<Value>(type: Type<Value>, input: Uint8Array): Decoded<Value> {
  const from = new ByteReader(input);
  const value = type.read(from);
  if (from.remaining > 0) from.fail("bytes after the end of a message");
  return from.problem === null ? { ok: true, value } : { ok: false, problem: from.problem };
}

function slotsOf(fields: Readonly<Record<string, Field<unknown>>>): readonly Slot[] {
  return Object.entries(fields)
    .map(([name, { number, type, fallback }]) => ({
      name,
      tag: number * 4 + type.wire,
      type,
      fallback,
    }))
    .sort((a, b) => a.tag - b.tag);
}

function shapesOf(slots: readonly Slot[]): readonly FieldShape[] {
  return slots.map(({ name, tag, type, fallback }) => ({
    name,
    number: tag >> 2,
    shape: type.shape,
    fallback,
  }));
}

function writeSlots(
  out: ByteWriter,
  slots: readonly Slot[],
  value: Readonly<Record<string, unknown>>,
): void {
  for (const slot of slots) {
    const held = value[slot.name];
    if (slot.fallback !== undefined && isDefault(held, slot.fallback.value)) continue;
    out.varint(slot.tag);
    slot.type.write(out, held);
  }
}

function isDefault(held: unknown, fallback: unknown): boolean {
  if (held === fallback || held === undefined) return true;
  if (Array.isArray(held)) return held.length === 0 && Array.isArray(fallback);
  if (held instanceof Uint8Array) return held.length === 0 && fallback instanceof Uint8Array;
  if (held instanceof Map) return held.size === 0 && fallback instanceof Map;
  return false;
}

/** Walks schema and bytes together; both rise by field number, so each is passed over once. */
function readSlots(
  from: ByteReader,
  title: string,
  slots: readonly Slot[],
  kind?: string,
): Record<string, unknown> {
  const value: Record<string, unknown> = kind === undefined ? {} : { kind };
  let last = -1;
  let tag = nextTag(from, last);
  for (const slot of slots) {
    // Compare numbers, not tags: a known field in a wrong wire kind must not pass as unknown.
    const number = slot.tag >> 2;
    while (tag >= 0 && tag >> 2 < number && !from.failed) {
      skipValue(from, tag);
      last = tag;
      tag = nextTag(from, last);
    }
    if (from.failed) return value;
    if (tag < 0 || tag >> 2 > number) {
      if (slot.fallback === undefined) from.fail(`${title}: field "${slot.name}" is missing`);
      value[slot.name] = slot.fallback?.value;
      continue;
    }
    if (tag !== slot.tag) from.fail(`${title}: field "${slot.name}" has the wrong kind`);
    value[slot.name] = slot.type.read(from);
    if (from.failed) return value;
    last = tag;
    tag = nextTag(from, last);
  }
  while (tag >= 0 && !from.failed) {
    skipValue(from, tag);
    last = tag;
    tag = nextTag(from, last);
  }
  return value;
}

/** The tag of the next field, or -1 at the end of the part. */
function nextTag(from: ByteReader, last: number): number {
  if (from.remaining === 0) return -1;
  const tag = from.varint();
  if (tag > TAG_MAX) from.fail("a field number is too large");
  if (last >= 0 && tag >> 2 <= last >> 2) from.fail("fields are out of order");
  return from.failed ? -1 : tag;
}

const TAG_MAX = 0xffff;

function skipValue(from: ByteReader, tag: number): void {
  const wire = tag & 3;
  if (wire === VARINT) from.varint();
  else if (wire === EIGHT_BYTES) from.skip(8);
  else if (wire === PREFIXED) from.bytes();
  else from.fail("an unknown wire kind");
}

/** Each item takes at least one byte, so a count beyond the bytes that are left is a lie. */
function boundedCount(from: ByteReader, countMax: number): number {
  const count = from.varint();
  if (count > countMax) from.fail(`${count} items where at most ${countMax} are allowed`);
  if (count > from.remaining) from.fail("truncated");
  return from.failed ? 0 : count;
}

/** Invalid sequences decode to U+FFFD; only then is it worth comparing with what U+FFFD would encode to. */
function decodeStrict(raw: Uint8Array): string | null {
  const value = decodeUtf8(raw);
  if (!value.includes("\ufffd")) return value;
  const again = encodeUtf8(value);
  return again.length === raw.length && again.every((byte, i) => byte === raw[i]) ? value : null;
}
