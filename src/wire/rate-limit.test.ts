import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BucketTable, TokenBucket } from "./rate-limit.ts";

describe("a token bucket (AD-24.3)", () => {
  it("admits at most its size and its refill in every span, also in the middle", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { minLength: 1, maxLength: 120 }), (gaps) => {
        const bucket = new TokenBucket(5, 10, 0);
        const admitted: number[] = [];
        let now = 0;
        for (const gap of gaps) {
          now += gap;
          if (bucket.take(now)) admitted.push(now);
        }
        for (const [from, first] of admitted.entries())
          for (const [at, last] of admitted.entries())
            if (at >= from)
              expect(at - from + 1).toBeLessThanOrEqual(5 + (last - first) / 100 + 1e-9);
      }),
    );
  });

  it("has a token after exactly the wait that it names, and none before (AD-24.4)", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 60 }), fc.nat(99), (gaps, early) => {
        const bucket = new TokenBucket(3, 7, 0);
        let now = 0;
        for (const gap of gaps) {
          now += gap;
          bucket.take(now);
        }
        const waitMs = bucket.waitMs(now);
        if (waitMs > 1) expect(bucket.take(now + (waitMs - 1) * (early / 100))).toBe(false);
        expect(bucket.take(now + waitMs)).toBe(true);
      }),
    );
  });

  it("admits at most its size plus its refill over any span", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(500), { maxLength: 300 }), (gaps) => {
        const bucket = new TokenBucket(20, 10, 0);
        let now = 0;
        let admitted = 0;
        for (const gap of gaps) {
          now += gap;
          if (bucket.take(now)) admitted++;
        }
        expect(admitted).toBeLessThanOrEqual(20 + now / 100);
      }),
    );
  });

  it("is not refilled by a clock that stalls or goes back", () => {
    const bucket = new TokenBucket(1, 1_000, 100);
    expect(bucket.take(100)).toBe(true);
    expect(bucket.take(50)).toBe(false);
    expect(bucket.take(101)).toBe(true);
  });
});

describe("a table of buckets", () => {
  it("keeps a greedy source from another's tokens and does not grow with spoofed ones", () => {
    const table = new BucketTable(5, 1, 100);
    for (let i = 0; i < 50; i++) table.take("greedy", 0);
    expect(table.take("greedy", 0)).toBe(false);
    expect(table.take("modest", 0)).toBe(true);
    for (let i = 0; i < 100_000; i++) table.take(`spoofed-${i}`, 0);
    expect(table.entries).toBe(100);
  });
});
