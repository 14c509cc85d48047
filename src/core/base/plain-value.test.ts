import { describe, expect, it } from "vitest";
import { ByteReader } from "./bytes.ts";
import { encodePlain, PLAIN_DEPTH_MAX, plainProblem, readPlain } from "./plain-value.ts";

function roundTrip(value: unknown): unknown {
  const from = new ByteReader(encodePlain(value));
  const read = readPlain(from);
  expect(from.problem).toBe(null);
  expect(from.remaining).toBe(0);
  return read;
}

describe("plain values", () => {
  it("come back as they were", () => {
    const value = {
      nothing: null,
      missing: undefined,
      flags: [true, false],
      numbers: [0, 1, -1, 1.5, -0, 2 ** 53 - 1, -(2 ** 53) + 1, 2 ** 60, Number.NaN, -Infinity],
      texts: ["", "straße", "\u{1f600}"],
      bytes: Uint8Array.of(1, 2, 255),
      nested: { list: [[[]]], record: { "a.b": { "": 1 } } },
    };
    expect(roundTrip(value)).toEqual(value);
    expect(Object.is(roundTrip(-0), -0)).toBe(true);
  });

  it("keep a key that names a prototype a key", () => {
    const hostile = JSON.parse('{"__proto__":{"admin":true}}') as Record<string, unknown>;
    const read = roundTrip(hostile) as Record<string, unknown>;
    expect(Object.keys(read)).toEqual(["__proto__"]);
    expect(read["admin"]).toBe(undefined);
  });

  it("are refused with the path to what is not plain (CODEC-6)", () => {
    expect(plainProblem({ a: [1, { at: new Date() }] })).toBe(".a[1].at is a Date");
    expect(plainProblem({ run: () => 1 })).toBe(".run is a function");
    expect(plainProblem(10n)).toBe("is a bigint");
    expect(plainProblem({ a: [1, "x", null, undefined, Uint8Array.of(1)] })).toBe(null);
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(plainProblem(circle)).toMatch(/^\.[a-z]+ is nested more than 64 deep, or holds itself$/);
  });

  it("are not read from anything but whole ones", () => {
    const bytes = encodePlain({ a: [1, "two", { three: 3.5 }], b: Uint8Array.of(1, 2) });
    for (let cut = 0; cut < bytes.length; cut++) {
      const from = new ByteReader(bytes.subarray(0, cut));
      readPlain(from);
      expect(from.failed).toBe(true);
    }
    const deep = new Uint8Array(2 * PLAIN_DEPTH_MAX + 10).map((_, at) => (at % 2 === 0 ? 8 : 1));
    const from = new ByteReader(deep);
    readPlain(from);
    expect(from.problem).toMatch(/too deep/);
  });
});
