import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter, encodeUtf8, familiarText } from "./bytes.ts";
import { PartMemory } from "./part-memory.ts";

describe("the memory of parts", () => {
  it("answers only for the very bytes it was given, whatever falls on the same place", () => {
    const part = fc.uint8Array({ maxLength: 6 });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const memory = new PartMemory<string>(8, 5);
        for (const bytes of parts) {
          const found = memory.find(bytes, 0, bytes.length);
          if (found !== undefined) expect(found).toBe(bytes.join(","));
          memory.keep(bytes, 0, bytes.length, bytes.join(","));
          const kept = memory.find(bytes, 0, bytes.length);
          expect(kept).toBe(bytes.length <= 5 ? bytes.join(",") : undefined);
        }
      }),
    );
  });

  it("lets a reader pass over a known part, and leaves it in place before an unknown one", () => {
    const out = new ByteWriter();
    out.bytes(Uint8Array.of(1, 2, 3));
    out.uint8(9);
    const memory = new PartMemory<string>(8, 64);
    const first = new ByteReader(out.take());
    expect(first.recall(memory)).toBeUndefined();
    const mark = first.at;
    first.bytes();
    first.remember(memory, mark, "one two three");
    const again = new ByteReader(out.take());
    expect(again.recall(memory)).toBe("one two three");
    expect(again.uint8()).toBe(9);
  });
});

describe("familiar texts", () => {
  it("are the same text for the same bytes, seen before or not", () => {
    const text = fc.string({ unit: "binary-ascii", maxLength: 70 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 30 }), (texts) => {
        for (const value of [...texts, ...texts]) {
          const bytes = encodeUtf8(value);
          expect(familiarText(bytes, 0, bytes.length)).toBe(value);
        }
      }),
    );
  });

  it("are read like any other: bounded, and refused when cut short", () => {
    const read = (bytes: Uint8Array, lengthMax: number) => {
      const from = new ByteReader(bytes);
      return { value: from.text(lengthMax), failed: from.failed };
    };
    const name = Uint8Array.of(2, 0x6e, 0x31);
    expect(read(name, 2)).toEqual({ value: "n1", failed: false });
    expect(read(name, 1).failed).toBe(true);
    expect(read(name.subarray(0, 2), 2).failed).toBe(true);
    expect(read(Uint8Array.of(2, 0xc3, 0xa9), 2)).toEqual({ value: "é", failed: false });
  });
});
