import { expect, it } from "vitest";
import { NumberCounters } from "../job/shared-values.ts";
import { splitPlan } from "../plan/split.ts";
import { LeaseAllocator } from "./lease-allocator.ts";

const load = { kind: "shared", vus: 4, iterations: 101, durationMsMax: 1_000 } as const;
const WEIGHTS = [60, 40, 1];

/** All indices that the places of a plan assign from one lease, block by block. */
function given(name: string): readonly number[] {
  return WEIGHTS.flatMap((_, index) => {
    const own = splitPlan(load, WEIGHTS, index);
    if (own === null) return [];
    const leases = new LeaseAllocator(own);
    const indices: number[] = [];
    for (;;) {
      const { from, last, to } = leases.grant(name, 7);
      for (let at = from; at < to; at++) indices.push(at);
      if (last) return indices;
    }
  });
}

it("assigns each iteration and each row once over all places of a plan", () => {
  expect(given("iterations")).toEqual(Array.from({ length: 101 }, (_, at) => at));
  expect(given("feed:users:1000")).toEqual(Array.from({ length: 1_000 }, (_, at) => at));
});

it("starts endless feeds at another row in each place, and shared numbers behind those of others", () => {
  const firsts = WEIGHTS.map((_, index) => {
    const leases = new LeaseAllocator(splitPlan(load, WEIGHTS, index) ?? { load });
    return leases.grant("feed:users:0", 1).from % 1_024;
  });
  expect(new Set(firsts).size).toBe(3);
  const numbers = [0, 1].map((place) => new NumberCounters({}, place).take("orders", 5).from);
  expect(numbers).toEqual([0, 2 ** 40]);
});
