import { expect, it } from "vitest";
import { Awareness } from "./awareness.ts";

it("gives others a quarter more time for each point of the score (LHM-1)", () => {
  const awareness = new Awareness(8);
  const multipliers = Array.from({ length: 8 }, () => {
    const { load } = awareness;
    awareness.apply(1);
    return load;
  });
  expect(multipliers).toEqual([1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75]);
});

it("B-9: the score follows its deltas between 0 and 7, and scales by score + 1", () => {
  const awareness = new Awareness(8);
  const deltas = [0, -1, -10, 1, -1, 10, -1, -1, -1, -1, -1, -1, -1, -1];
  const scores = [0, 0, 0, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0, 0];
  deltas.forEach((delta, index) => {
    awareness.apply(delta);
    const score = scores[index] ?? 0;
    expect(awareness.score).toBe(score);
    expect(awareness.scale(1_000)).toBe((score + 1) * 1_000);
  });
});
