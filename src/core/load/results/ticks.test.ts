import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linearTicks, logTicks } from "./ticks.ts";

describe("ticks of an axis", () => {
  it.each([
    [1_420, 4, [0, 500, 1_000, 1_500]],
    [2_300, 4, [0, 1_000, 2_000, 3_000]],
    [480, 5, [0, 100, 200, 300, 400, 500]],
    [0, 4, [0, 0.25, 0.5, 0.75, 1]],
    [0.031, 2, [0, 0.02, 0.04]],
  ])("of %d in at most %d steps are round", (highest, most, ticks) => {
    expect(linearTicks(highest, most)).toEqual(ticks);
  });

  it("reach the highest value within the maximum number of steps", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-6, max: 1e12, noNaN: true }),
        fc.integer({ min: 1, max: 9 }),
        (value, most) => {
          const ticks = linearTicks(value, most);
          expect(ticks.length).toBeLessThanOrEqual(most + 2);
          expect(ticks.at(-1)).toBeGreaterThanOrEqual(value * (1 - 1e-9));
        },
      ),
    );
  });

  it("of a logarithmic axis are 1, 2, 5 while there is space", () => {
    expect(logTicks(3, 60, 6)).toEqual([5, 10, 20, 50]);
    expect(logTicks(0.5, 4_000, 6)).toEqual([1, 10, 100, 1_000]);
    expect(logTicks(15, 18, 6)).toEqual([15, 18]);
  });
});
