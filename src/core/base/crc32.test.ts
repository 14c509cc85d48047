import { crc32 as zlibCrc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32 } from "./crc32.ts";

describe("crc32", () => {
  it("knows the check value of the catalogue", () => {
    expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
    expect(crc32(new Uint8Array(30))).toBe(0x0004_3eb5);
    expect(crc32(new Uint8Array(0))).toBe(0);
  });

  it("equals zlib's on any bytes, any part of them, and continues from an earlier part", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), fc.nat(300), (bytes, a, b) => {
        const [start, end] = [Math.min(a, b, bytes.length), Math.min(Math.max(a, b), bytes.length)];
        expect(crc32(bytes, start, end)).toBe(zlibCrc32(bytes.subarray(start, end)));
        const seed = crc32(bytes, 0, start);
        expect(crc32(bytes, start, end, seed)).toBe(zlibCrc32(bytes.subarray(0, end)));
      }),
    );
  });
});
