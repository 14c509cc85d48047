import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { sha256 } from "../../base/sha256.ts";
import { HashRing, ringHash } from "./hash-ring.ts";

const gates = [1, 2, 3, 4].map((octet) => `10.0.1.${octet}:9000`);
const octets = (nodes: readonly string[]): number[] =>
  nodes.map((node) => Number(node.split(":")[0]?.split(".")[3]));

describe("the ring's hash", () => {
  it("is SHA-256 as the host computes it (RING-4)", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const host = createHash("sha256").update(bytes).digest();
        expect(Buffer.from(sha256(bytes)).equals(host)).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(Buffer.from(sha256(encodeUtf8("abc"))).toString("hex")).toMatch(/^ba7816bf/);
  });

  it.each([
    ["job-abc", 1_275_131_354],
    ["job-xyz", 3_594_151_171],
    ["job-123", 3_812_728_592],
  ])("places %s at %d", (key, position) => {
    expect(ringHash(key)).toBe(position);
  });
});

describe("the hash ring", () => {
  it.each([
    ["job-abc", [3, 2, 1]],
    ["job-xyz", [2, 1, 4]],
    ["job-123", [2, 4, 1]],
  ])("gives %s its owner and successors in clockwise order (RING-1, RING-2)", (key, expected) => {
    expect(octets(new HashRing(gates).successors(key, 3))).toEqual(expected);
  });

  // RING-5
  it("shares ten thousand keys as the golden vectors say, and moves only the lost gate's keys", () => {
    const ring = new HashRing(gates);
    const before = Array.from({ length: 10_000 }, (_, i) => ring.owner(`job-${i}`));
    const shares = gates.map((gate) => before.filter((owner) => owner === gate).length);
    expect(shares).toEqual([2_414, 2_657, 2_289, 2_640]);
    ring.remove("10.0.1.3:9000");
    const moved = before.filter((owner, i) => owner !== ring.owner(`job-${i}`));
    expect(moved.length).toBe(2_289);
    expect(new Set(moved)).toEqual(new Set(["10.0.1.3:9000"]));
  });

  it("depends on the set of nodes only, not on the order they came (RING-6)", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(gates, { minLength: 4 }), (order) => {
        const ring = new HashRing();
        for (const gate of order) ring.add(gate);
        for (let i = 0; i < 50; i++) {
          expect(ring.successors(`k${i}`, 4)).toEqual(new HashRing(gates).successors(`k${i}`, 4));
        }
      }),
      { numRuns: 10 },
    );
  });

  // RING-2, RING-3
  it("returns each node once for a count above the size, and none when empty", () => {
    expect(new Set(new HashRing(gates).successors("x", 99))).toEqual(new Set(gates));
    expect(new HashRing().owner("x")).toBeNull();
    expect(new HashRing().successors("x", 3)).toEqual([]);
  });
});
