import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchesOf, batchLength, textBytesBound } from "./batches.ts";

const size = (bytes: number): number => bytes;

describe("batches between nodes", () => {
  it("ends a batch by count or by bytes, whichever comes first", () => {
    expect(batchLength([1, 1, 1, 1], { countMax: 3, bytesMax: 100 }, size)).toBe(3);
    expect(batchLength([40, 40, 40], { countMax: 10, bytesMax: 100 }, size)).toBe(2);
  });

  it("sends an item above the bound alone, and nothing for an empty list", () => {
    expect(batchLength([500, 1], { countMax: 10, bytesMax: 100 }, size)).toBe(1);
    expect(batchLength([], { countMax: 10, bytesMax: 100 }, size)).toBe(0);
  });

  it("keeps all items in their order", () => {
    expect(batchesOf([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
    expect(batchesOf([], 2)).toEqual([]);
  });

  it("never estimates a payload below its size inside a message", () => {
    fc.assert(
      fc.property(fc.json(), (payload) => {
        const message = JSON.stringify(payload).slice(1, -1);
        expect(Buffer.byteLength(message)).toBeLessThanOrEqual(textBytesBound(payload));
      }),
    );
  });
});
