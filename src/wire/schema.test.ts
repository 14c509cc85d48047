import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteWriter } from "../core/base/bytes.ts";
import {
  bool,
  bytes,
  decode,
  dictionary,
  encode,
  float,
  int,
  list,
  nullable,
  oneOf,
  optional,
  required,
  struct,
  type Type,
  text,
  uint,
  union,
} from "./schema.ts";

interface Inner {
  readonly name: string;
  readonly weights: readonly number[];
}
interface Sample {
  readonly count: number;
  readonly delta: number;
  readonly on: boolean;
  readonly ratio: number;
  readonly label: string;
  readonly blob: Uint8Array;
  readonly color: "red" | "green" | "blue";
  readonly inner: Inner | null;
  readonly many: readonly Inner[];
  readonly table: ReadonlyMap<string, number>;
}

const inner = struct<Inner>("inner", {
  name: required(1, text(64)),
  weights: optional(2, list(float, 16), []),
});
const sample = struct<Sample>("sample", {
  count: required(1, uint),
  delta: required(2, int),
  on: optional(3, bool, false),
  ratio: required(4, float),
  label: required(5, text(200)),
  blob: optional(6, bytes(300), new Uint8Array(0)),
  color: required(7, oneOf(["red", "green", "blue"])),
  inner: optional(8, nullable(inner), null),
  many: optional(9, list(inner, 8), []),
  table: optional(10, dictionary(uint, 8), new Map()),
});

const safe = fc.maxSafeNat();
const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const innerValue = fc.record({
  name: fc.string({ maxLength: 16 }),
  weights: fc.array(finite, { maxLength: 16 }),
});
const sampleValue: fc.Arbitrary<Sample> = fc.record({
  count: safe,
  delta: fc.integer({ min: -(2 ** 52) + 1, max: 2 ** 52 - 1 }),
  on: fc.boolean(),
  ratio: finite,
  label: fc.string({ unit: "binary", maxLength: 50 }),
  blob: fc.uint8Array({ maxLength: 300 }),
  color: fc.constantFrom("red", "green", "blue"),
  inner: fc.option(innerValue, { nil: null }),
  many: fc.array(innerValue, { maxLength: 8 }),
  table: fc
    .uniqueArray(fc.tuple(fc.string({ maxLength: 10 }), safe), {
      maxLength: 8,
      selector: ([key]) => key,
    })
    .map((entries) => new Map(entries)),
});

/** A struct written field by field, in any order and with any content. */
function rawStruct(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter();
  const mark = out.begin();
  write(out);
  out.end(mark);
  return out.take();
}

const problemOf = <Value>(type: Type<Value>, input: Uint8Array): string => {
  const result = decode(type, input);
  return result.ok ? "" : result.problem;
};

describe("the schema codec", () => {
  it("gives back every value it wrote", () => {
    fc.assert(
      fc.property(sampleValue, (value) => {
        expect(decode(sample, encode(sample, value))).toEqual({ ok: true, value });
      }),
    );
  });

  it("refuses or reads, and never throws, whatever byte is changed", () => {
    fc.assert(
      fc.property(sampleValue, fc.nat(), fc.nat(255), (value, place, byte) => {
        const changed = encode(sample, value);
        changed[place % changed.length] = byte;
        const result = decode(sample, changed);
        if (result.ok) expect(decode(sample, encode(sample, result.value)).ok).toBe(true);
      }),
    );
  });

  it("refuses every proper prefix (B-46)", () => {
    const whole = encode(inner, { name: "some name", weights: [1, 2] });
    for (let length = 0; length < whole.length; length++) {
      expect(decode(inner, whole.subarray(0, length)).ok).toBe(false);
    }
  });

  it("skips unknown fields of every wire kind, before, between and after known ones (CODEC-2, AD-25.6)", () => {
    const wide = struct("wide", {
      name: required(2, text(64)),
      size: required(5, uint),
    });
    const input = rawStruct((out) => {
      out.varint(1 * 4 + 0);
      out.varint(77);
      out.varint(2 * 4 + 2);
      out.text("kept");
      out.varint(3 * 4 + 1);
      out.float64(1.5);
      out.varint(4 * 4 + 2);
      out.text("unknown");
      out.varint(5 * 4 + 0);
      out.varint(9);
      out.varint(200 * 4 + 2);
      out.bytes(Uint8Array.of(1, 2, 3));
    });
    expect(decode(wide, input)).toEqual({ ok: true, value: { name: "kept", size: 9 } });
  });

  it("names message and field when a required field is missing, and fills optional ones", () => {
    const input = rawStruct((out) => {
      out.varint(2 * 4 + 2);
      out.bytes(Uint8Array.of(0));
    });
    expect(problemOf(inner, input)).toBe('inner: field "name" is missing');
    const named = rawStruct((out) => {
      out.varint(1 * 4 + 2);
      out.text("n");
    });
    expect(decode(inner, named)).toEqual({ ok: true, value: { name: "n", weights: [] } });
  });

  it("refuses a known field of the wrong wire kind, a repeated field and fields out of order", () => {
    const wrongKind = rawStruct((out) => {
      out.varint(1 * 4 + 0);
      out.varint(5);
    });
    expect(problemOf(inner, wrongKind)).toBe('inner: field "name" has the wrong kind');
    const twice = rawStruct((out) => {
      for (const name of ["a", "b"]) {
        out.varint(1 * 4 + 2);
        out.text(name);
      }
    });
    expect(problemOf(inner, twice)).toBe("fields are out of order");
  });

  it("refuses counts and lengths beyond their bound or beyond the bytes, before allocating (B-46, B-47)", () => {
    const giant = rawStruct((out) => {
      out.varint(1 * 4 + 2);
      out.text("n");
      out.varint(2 * 4 + 2);
      const mark = out.begin();
      out.varint(2 ** 40);
      out.end(mark);
    });
    expect(problemOf(inner, giant)).toBe("1099511627776 items where at most 16 are allowed");
    const lying = rawStruct((out) => {
      out.varint(1 * 4 + 2);
      out.text("n");
      out.varint(2 * 4 + 2);
      const mark = out.begin();
      out.varint(16);
      out.end(mark);
    });
    expect(problemOf(inner, lying)).toBe("truncated");
    expect(problemOf(text(3), encode(text(9), "four"))).toBe("4 bytes where at most 3 are allowed");
  });

  it("rejects invalid UTF-8, a third truth value, NaN and unknown words", () => {
    expect(problemOf(text(9), Uint8Array.of(2, 0xc0, 0x80))).toBe("a text is not UTF-8");
    expect(decode(text(9), encode(text(9), "\ufffd")).ok).toBe(true);
    expect(problemOf(bool, Uint8Array.of(2))).toBe("a yes/no value is neither 0 nor 1");
    expect(problemOf(float, encode(float, Number.NaN))).toBe("a number is not finite");
    expect(problemOf(oneOf(["a"]), Uint8Array.of(1))).toBe("an unknown word of a fixed list");
  });

  it("reads keys named like prototype members as plain map keys (CODEC-3)", () => {
    const type = dictionary(uint, 4);
    const value = new Map([
      ["__proto__", 1],
      ["constructor", 2],
    ]);
    const result = decode(type, encode(type, value));
    expect(result).toEqual({ ok: true, value });
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("distinguishes the variants of a union and rejects unknown ones", () => {
    type Shape = { readonly kind: "dot" } | { readonly kind: "circle"; readonly radius: number };
    const shape = union<Shape>("shape", {
      dot: { number: 1, fields: {} },
      circle: { number: 2, fields: { radius: required(1, uint) } },
    });
    for (const value of [{ kind: "dot" }, { kind: "circle", radius: 4 }] as const) {
      expect(decode(shape, encode(shape, value))).toEqual({ ok: true, value });
    }
    expect(problemOf(shape, Uint8Array.of(1, 9))).toBe("shape: unknown kind 9");
  });

  it("prefixes parts of every size, through the borders of the length's length", () => {
    for (const length of [0, 1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 16_385, 70_000]) {
      const type = list(bytes(100_000), 3);
      const value = [new Uint8Array(length).fill(7), Uint8Array.of(1)];
      expect(decode(type, encode(type, value))).toEqual({ ok: true, value });
    }
  });
});
