import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { didYouMean, editDistance, nearestName } from "./nearest.ts";

describe("the nearest name", () => {
  it.each([
    ["logn", "login"],
    ["Login", "login"],
    ["chekcout", "checkout"],
    ["zebra", null],
    ["x", null],
    ["", null],
  ])("of %s is %s", (name, near) => {
    expect(nearestName(name, ["browse", "login", "checkout", "a"])).toBe(near);
  });

  it("is offered as a question", () => {
    expect(didYouMean("hgih", ["low", "high"])).toBe('; did you mean "high"?');
    expect(didYouMean("zebra", ["low", "high"])).toBe("");
  });

  it("counts edits like a metric", () => {
    const word = fc.string({ maxLength: 12 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(editDistance("ab", "ba")).toBe(1);
  });
});
