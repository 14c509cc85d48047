import { describe, expect, it } from "vitest";
import { fisherP, holm, studentP, studentQuantile } from "./tests-of-significance.ts";

describe("tests of significance", () => {
  // From the usual tables: two-sided 5 % and 1 % points of t.
  it.each([
    [12.706, 1, 0.05],
    [4.303, 2, 0.05],
    [2.228, 10, 0.05],
    [3.169, 10, 0.01],
    [2.042, 30, 0.05],
    [1.96, 1e6, 0.05],
    [3.2905, 1e6, 0.001],
  ])("t = %f with %f degrees has p = %f", (t, degrees, p) => {
    expect(studentP(t, degrees)).toBeCloseTo(p, 4);
    expect(studentP(-t, degrees)).toBeCloseTo(p, 4);
    expect(studentQuantile(p, degrees)).toBeCloseTo(t, 2);
  });

  it("gives Fisher's own tea tasting and a few exact tables", () => {
    expect(fisherP(3, 4, 1, 4)).toBeCloseTo(34 / 70, 10);
    expect(fisherP(4, 4, 0, 4)).toBeCloseTo(2 / 70, 10);
    expect(fisherP(0, 10_000, 0, 10_000)).toBeCloseTo(1, 10);
    // Five failures of ten thousand against none: two of the 2^5 ways, nearly.
    expect(fisherP(0, 10_000, 5, 10_000)).toBeCloseTo(2 / 32, 3);
  });

  it("corrects for the number of rows after Holm", () => {
    const adjusted = [0.03, 0.06, 0.06, 0.02].map((p) => expect.closeTo(p, 10));
    expect(holm([0.01, 0.04, 0.03, 0.005])).toEqual(adjusted);
    expect(holm([0.9, 0.8])).toEqual([1, 1]);
    expect(holm([])).toEqual([]);
  });
});
