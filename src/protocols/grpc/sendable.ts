/**
 * Converts user-written messages for protobufjs, which checks numbers only. Also accepts the form of responses: 64-bit
 * numbers as text and enums by name.
 */

import type { Enum, Field, MapField, Type } from "protobufjs";

/** Returns the same value when nothing changes. */
type Convert = (value: unknown) => unknown;

/** Cached by message type, because a message may contain itself. */
const converters = new WeakMap<Type, Convert>();

const WHOLE_NUMBER = /^-?\d{1,20}$/;

/** Leaves invalid values unchanged; the verification that follows names them. */
export function sendable(type: Type, message: object): object {
  return messageConverter(type)(message) as object;
}

function messageConverter(type: Type): Convert {
  const known = converters.get(type);
  if (known !== undefined) return known;
  const fields: (readonly [string, Convert])[] = [];
  const convert: Convert = (value) => (isObject(value) ? converted(value, fields) : value);
  converters.set(type, convert);
  for (const field of type.fieldsArray) {
    const one = valueConverter(field.resolve());
    if (one === null) continue;
    const { map, name, repeated } = field;
    fields.push([name, map ? ofEntries(one) : repeated ? ofList(one) : one]);
  }
  return convert;
}

/** Null where values need no conversion. */
function valueConverter({ resolvedType, type }: Field | MapField): Convert | null {
  if (resolvedType === null) return type.endsWith("64") ? longConverter(type) : null;
  if (isEnum(resolvedType)) {
    const { values } = resolvedType;
    return (value) =>
      typeof value === "string" && Object.hasOwn(values, value) ? values[value] : value;
  }
  return messageConverter(resolvedType);
}

function longConverter(type: string): Convert {
  const unsigned = type === "uint64" || type === "fixed64";
  const fits = (value: bigint): boolean =>
    value === (unsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value));
  return (value) => {
    const isText = typeof value === "string" && WHOLE_NUMBER.test(value);
    if (!isText && typeof value !== "bigint") return value;
    const whole = BigInt(value);
    if (!fits(whole)) return value;
    const [low, high] = [BigInt.asIntN(32, whole), BigInt.asIntN(32, whole >> 32n)];
    return { low: Number(low), high: Number(high), unsigned };
  };
}

function ofList(convert: Convert): Convert {
  return (values) => (Array.isArray(values) ? values.map(convert) : values);
}

function ofEntries(convert: Convert): Convert {
  return (values) =>
    isObject(values)
      ? Object.fromEntries(Object.entries(values).map(([key, value]) => [key, convert(value)]))
      : values;
}

function converted(
  message: Readonly<Record<string, unknown>>,
  fields: readonly (readonly [string, Convert])[],
): object {
  let changed: Record<string, unknown> | null = null;
  for (const [name, convert] of fields) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const fit = convert(value);
    if (fit === value) continue;
    changed ??= { ...message };
    changed[name] = fit;
  }
  return changed ?? message;
}

function isEnum(type: Type | Enum): type is Enum {
  return "valuesById" in type;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
