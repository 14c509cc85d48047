import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ReplayWindow } from "./replay-window.ts";

describe("the replay window", () => {
  it("agrees with a model that remembers everything (R1, R2)", () => {
    const counters = fc.array(fc.oneof(fc.nat(300), fc.nat(5_000), fc.nat(2 ** 40)), {
      maxLength: 400,
    });
    fc.assert(
      fc.property(counters, (sequence) => {
        const size = 128;
        const window = new ReplayWindow(-1, size);
        const seen = new Set<number>();
        let highest = -1;
        for (const counter of sequence) {
          const expected = !seen.has(counter) && counter > highest - size;
          expect(window.accept(counter)).toBe(expected);
          if (expected) {
            seen.add(counter);
            highest = Math.max(highest, counter);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("moves over word and ring borders without forgetting or remembering too much", () => {
    for (const step of [1, 31, 32, 33, 63, 64, 127, 128, 129]) {
      const window = new ReplayWindow(-1, 128);
      for (let counter = 0; counter < 2_000; counter += step) {
        expect(window.accept(counter)).toBe(true);
        expect(window.accept(counter)).toBe(false);
        if (step > 1 && counter > 0) expect(window.isFresh(counter - 1)).toBe(true);
      }
    }
  });

  it("continued from a highest counter accepts only higher ones", () => {
    const window = new ReplayWindow(1_000, 128);
    expect(window.isFresh(1_000)).toBe(false);
    expect(window.isFresh(950)).toBe(false);
    expect(window.accept(1_001)).toBe(true);
  });
});
