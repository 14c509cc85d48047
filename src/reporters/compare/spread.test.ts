import { describe, expect, it } from "vitest";
import { Random } from "../../core/base/random.ts";
import { errorOfMean } from "./spread.ts";

/** Values that take over `memory` of the one before, with standard deviation 1. */
function walk(count: number, memory: number, random: Random): number[] {
  const gauss = () =>
    Math.sqrt(-2 * Math.log(1 - random.float())) * Math.cos(2 * Math.PI * random.float());
  let value = gauss();
  return Array.from({ length: count }, () => {
    value = memory * value + Math.sqrt(1 - memory ** 2) * gauss();
    return value;
  });
}

describe("the error of a mean of windows", () => {
  it.each([
    [0, 1],
    [0.5, 3],
    [0.8, 9],
  ])("with memory %f grows as if %f times fewer windows had been measured", (memory, factor) => {
    const random = new Random("spread").fork(String(memory));
    const count = 400;
    const errors = Array.from({ length: 60 }, () => errorOfMean(walk(count, memory, random)).error);
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    const expected = Math.sqrt(factor / count);
    expect(mean / expected).toBeGreaterThan(0.85);
    expect(mean / expected).toBeLessThan(1.25);
  });

  it("detects a slow drift under the noise of single windows", () => {
    const random = new Random("noise");
    const drift = walk(400, 0.95, random);
    const noisy = drift.map((value) => value + 3 * (random.float() - 0.5));
    const naive = errorOfMean(walk(400, 0, random)).error;
    expect(errorOfMean(noisy).error).toBeGreaterThan(2.5 * naive);
  });

  it("is zero for values that never change, and judged from few pieces when all are alike", () => {
    expect(errorOfMean([5, 5, 5, 5]).error).toBe(0);
    expect(errorOfMean(Array.from({ length: 100 }, (_, i) => i)).worth).toBeLessThan(3);
  });
});
