import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { provision } from "./provision.ts";

describe("virtual users over threads", () => {
  it.each([
    [2_000, 6, [333, 333, 333, 333, 333, 335]],
    [333, 2, [166, 167]],
    [10_000, 4, [2_500, 2_500, 2_500, 2_500]],
    [50_000, 6, [8_333, 8_333, 8_333, 8_333, 8_333, 8_335]],
    [1, 8, [1]],
    [3, 8, [1, 1, 1]],
  ])("%i over %i", (vus, threads, list) => {
    expect(provision(vus, threads)).toEqual(list);
  });

  // PROV-1, PROV-4
  it("loses no user, leaves no thread idle and uses no more threads than given", () => {
    const size = fc.integer({ min: 1, max: 100_000 });
    fc.assert(
      fc.property(size, fc.integer({ min: 1, max: 256 }), (vus, threads) => {
        const list = provision(vus, threads);
        expect(list.reduce((sum, n) => sum + n, 0)).toBe(vus);
        expect(list.length).toBe(Math.min(vus, threads));
        expect(Math.min(...list)).toBeGreaterThanOrEqual(1);
      }),
    );
  });
});
