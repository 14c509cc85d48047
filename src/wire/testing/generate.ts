/** Values drawn from a schema's own description, for round trips, golden files and fuzzing. */

import type { Random } from "../../core/base/random.ts";
import type { FieldShape, Shape, Type } from "../schema.ts";

const TEXTS = ["n1", "node-7", "10.0.0.1:7946", "dc1", "größe", "日本", "a".repeat(40), "x y"];
const NUMBERS = [0, 1, 127, 128, 300, 65_535, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER];
const FLOATS = [0, 1, -1, 0.5, 1e-9, 1.7e300, 12.25];

export function generate<Value>(type: Type<Value>, random: Random): Value {
  return draw(type.shape, random) as Value;
}

function draw(shape: Shape, random: Random): unknown {
  switch (shape.kind) {
    case "uint":
      return random.chance(0.5) ? random.pick(NUMBERS) : random.below(2 ** 32);
    case "counter":
      return random.pick([...NUMBERS.filter((number) => number < shape.max), shape.max]);
    case "int":
      return (random.chance(0.5) ? 1 : -1) * Math.floor(random.pick(NUMBERS) / 2);
    case "bool":
      return random.chance(0.5);
    case "float":
      return random.chance(0.5) ? random.pick(FLOATS) : random.between(-1e6, 1e6);
    case "text":
      return textOf(shape, random);
    case "bytes":
      return bytesOf(Math.min(shape.bytesMax, random.pick([0, 1, 7, 200])), random);
    case "json":
      return random.pick([null, true, 7, "größe", [1, "a"], { a: { b: [] } }]);
    case "oneOf":
      return random.pick(shape.words);
    case "list":
      return Array.from({ length: Math.min(shape.countMax, random.below(4)) }, () =>
        draw(shape.item, random),
      );
    case "dictionary":
      return new Map(
        Array.from({ length: Math.min(shape.countMax, random.below(3)) }, (_, i) => [
          `${random.pick(TEXTS)}${i}`,
          draw(shape.value, random),
        ]),
      );
    case "nullable":
      return random.chance(0.3) ? null : draw(shape.inner, random);
    case "struct":
      return Object.fromEntries(fieldsOf(shape.fields, random));
    case "union": {
      const { kind, fields } = random.pick(shape.variants);
      return { kind, ...Object.fromEntries(fieldsOf(fields, random)) };
    }
  }
}

function fieldsOf(fields: readonly FieldShape[], random: Random): readonly [string, unknown][] {
  return fields.map(({ name, shape, fallback }) => [
    name,
    fallback !== undefined && random.chance(0.3) ? fallback.value : draw(shape, random),
  ]);
}

function textOf({ bytesMin, bytesMax }: Extract<Shape, { kind: "text" }>, random: Random): string {
  const fitting = TEXTS.filter((text) => text.length * 3 <= bytesMax && text.length >= bytesMin);
  if (fitting.length === 0 && bytesMin > 0) return "f".repeat(bytesMin);
  if (bytesMin === 0 && (fitting.length === 0 || random.chance(0.1))) return "";
  return random.pick(fitting);
}

function bytesOf(length: number, random: Random): Uint8Array {
  return Uint8Array.from({ length }, () => random.below(256));
}
