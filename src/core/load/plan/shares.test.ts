import fc from "fast-check";
import { expect, it } from "vitest";
import { Shares } from "./shares.ts";

it("gives each flow its share of any number of iterations, to within one", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 }),
      (weights) => {
        const shares = new Shares(weights);
        const sum = weights.reduce((all, weight) => all + weight, 0);
        const taken = weights.map(() => 0);
        for (let n = 1; n <= 500; n++) {
          const flow = shares.take();
          taken[flow] = (taken[flow] ?? 0) + 1;
          for (const [at, weight] of weights.entries())
            expect(Math.abs((taken[at] ?? 0) - (n * weight) / sum)).toBeLessThan(1);
        }
      },
    ),
    { numRuns: 100 },
  );
});

it("predicts what will be taken", () => {
  const [one, other] = [new Shares([70, 25, 5]), new Shares([70, 25, 5])];
  for (let i = 0; i < 7; i++) expect(one.take()).toBe(other.take());
  const ahead = one.ahead(333, 3);
  const taken = [0, 0, 0];
  for (let i = 0; i < 333; i++) {
    const flow = other.take();
    taken[flow] = (taken[flow] ?? 0) + 1;
  }
  expect(ahead).toEqual(taken);
});

it("accepts fractional weights", () => {
  const shares = new Shares([0.95, 0.05]);
  const taken = [0, 0];
  for (let i = 0; i < 1_000; i++) {
    const flow = shares.take();
    taken[flow] = (taken[flow] ?? 0) + 1;
  }
  expect(taken).toEqual([950, 50]);
});
