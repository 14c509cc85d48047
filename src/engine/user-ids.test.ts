import { expect, it } from "vitest";
import { Random } from "../core/base/random.ts";
import { planVusMax } from "../core/load/plan/load.ts";
import { splitPlan } from "../core/load/plan/split.ts";
import { UserIds } from "./user-ids.ts";

const load = { kind: "perUser", vus: 13, iterations: 1, durationMsMax: 1 } as const;

it("numbers users uniquely over all cores of all places, also of a load that was scaled up", () => {
  const random = new Random("numbers");
  const weights = [60, 40, 10];
  const numbers = weights.flatMap((_, place) => {
    const own = splitPlan(load, weights, place);
    if (own === null) return [];
    const users = [planVusMax(own.load) - 1, 1];
    return users.flatMap((of, index) => {
      const ids = new UserIds({ index, count: 2, users, part: { ...own.part, load: own.load } });
      return Array.from({ length: of + 1 + random.below(20) }, () => ids.take());
    });
  });
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.toSorted((a, b) => a - b).slice(0, 13)).toEqual([...Array(13).keys()]);
});
