import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LoadPlan, plannedArrivals, planVusMax, type Stage, targetUsers } from "./load.ts";
import { apportion, placesOf, rowsOf, splitPlan } from "./split.ts";

const weightsOf = fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 6 });
const usersOf = fc.integer({ min: 1, max: 5_000 });
const throttleOf = fc.option(fc.double({ min: 0.1, max: 1e4, noNaN: true }), { nil: undefined });

const stagesOf = (heights: fc.Arbitrary<number>): fc.Arbitrary<readonly Stage[]> =>
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: 60_000 }), heights), { minLength: 2, maxLength: 5 })
    .map((points) =>
      points.slice(1).map(([durationMs, to], at) => ({
        ...{ durationMs, to },
        from: points[at]?.[1] ?? 0,
      })),
    );

const plans: fc.Arbitrary<LoadPlan> = fc.oneof(
  fc.record({
    kind: fc.constant("vus" as const),
    stages: stagesOf(usersOf),
    rateMax: throttleOf,
  }) as fc.Arbitrary<LoadPlan>,
  fc.record({
    kind: fc.constant("rate" as const),
    stages: stagesOf(fc.double({ min: 0, max: 1e5, noNaN: true })),
    vusMax: usersOf,
  }),
  fc.record({
    ...{ kind: fc.constantFrom("shared" as const, "perUser" as const), vus: usersOf },
    iterations: usersOf,
    durationMsMax: fc.constant(60_000),
    rateMax: throttleOf,
  }) as fc.Arbitrary<LoadPlan>,
  fc.constant<LoadPlan>({ kind: "once", durationMsMax: 1_000 }),
);

function parts(load: LoadPlan, weights: readonly number[]) {
  return weights.flatMap((_, index) => splitPlan(load, weights, index) ?? []);
}

const total = (list: readonly number[]): number => list.reduce((sum, one) => sum + one, 0);
const corners = ({ kind, ...rest }: LoadPlan): readonly number[] => {
  const stages = (kind === "vus" || kind === "rate") && "stages" in rest ? rest.stages : [];
  const ends = stages.map((_, at) =>
    total(stages.slice(0, at + 1).map(({ durationMs }) => durationMs)),
  );
  return [0, ...ends];
};

describe("the parts of any plan together", () => {
  it("have its users at every corner, its arrivals, its iterations and its bound on rates", () => {
    fc.assert(
      fc.property(plans, weightsOf, (load, weights) => {
        const split = parts(load, weights);
        expect(split).toHaveLength(placesOf(load, weights.length));
        expect(total(split.map((one) => planVusMax(one.load)))).toBe(planVusMax(load));
        for (const atMs of corners(load)) {
          const users = split.map((one) => targetUsers(one.load, atMs));
          expect(total(users)).toBe(targetUsers(load, atMs));
          const arrivals = total(split.map((one) => plannedArrivals(one.load, atMs)));
          expect(arrivals).toBeCloseTo(plannedArrivals(load, atMs), 3);
        }
        if (load.kind === "shared")
          expect(
            total(split.map((one) => (one.load.kind === "shared" ? one.load.iterations : 0))),
          ).toBe(load.iterations);
        if ("rateMax" in load && load.rateMax !== undefined)
          expect(
            total(split.map((one) => ("rateMax" in one.load ? (one.load.rateMax ?? 0) : 0))),
          ).toBeCloseTo(load.rateMax, 6);
      }),
    );
  });

  it("number users and iterations consecutively, without a gap or an overlap", () => {
    fc.assert(
      fc.property(plans, weightsOf, (load, weights) => {
        let user = 0;
        let iteration = 0;
        for (const { load: own, part } of parts(load, weights)) {
          expect([part.firstUser, part.users]).toEqual([user, planVusMax(load)]);
          user += planVusMax(own);
          if (own.kind !== "shared") continue;
          expect(part.firstIteration).toBe(iteration);
          iteration += own.iterations;
        }
      }),
    );
  });

  it("never require more users of a place than it has, also in ramps", () => {
    const load: LoadPlan = {
      kind: "vus",
      stages: [
        { durationMs: 1_000, from: 0, to: 11 },
        { durationMs: 500, from: 11, to: 3 },
      ],
    };
    for (const { load: own } of parts(load, [60, 40]))
      for (let atMs = 0; atMs <= 1_500; atMs += 10)
        expect(targetUsers(own, atMs)).toBeLessThanOrEqual(planVusMax(own));
  });
});

describe("ranges of rows", () => {
  it("cover all of them once", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e9 }), weightsOf, (rows, weights) => {
        const ranges = weights.map((_, index) => rowsOf(rows, { index, weights }));
        let next = 0;
        for (const { from, to } of ranges) {
          expect(from).toBe(next);
          next = to;
        }
        expect(next).toBe(rows);
      }),
    );
  });

  it("give each place a row for each of its iterations, while there are rows", () => {
    fc.assert(
      fc.property(plans, weightsOf, fc.nat(200), (load, weights, spare) => {
        if (load.kind !== "shared" && load.kind !== "perUser") return;
        const split = parts(load, weights);
        const needed = total(split[0]?.part.iterations ?? []);
        expect(needed).toBe(load.iterations * (load.kind === "shared" ? 1 : load.vus));
        for (const rows of [needed + spare, Math.max(0, needed - spare)]) {
          const used = split.map(({ part }) => {
            const { from, to } = rowsOf(rows, part);
            return Math.min(to - from, part.iterations?.[part.index] ?? 0);
          });
          expect(total(used)).toBe(Math.min(rows, needed));
        }
      }),
    );
  });

  it("are in proportion to the weights", () => {
    expect(apportion(11, [1_000, 1], 1)).toEqual([10, 1]);
    expect(apportion(7, [1, 1, 1], 0)).toEqual([3, 2, 2]);
    expect(apportion(10, [60, 40], 0)).toEqual([6, 4]);
    expect(apportion(4, [25, 75], 1)).toEqual([1, 3]);
  });
});

describe("a plan that cannot be split over all places", () => {
  it("runs on as many of the first places as it has users or iterations", () => {
    const single: LoadPlan = { kind: "vus", stages: [{ durationMs: 1, from: 1, to: 1 }] };
    expect(splitPlan(single, [1, 5], 1)).toBeNull();
    expect(splitPlan(single, [1, 5], 0)).toMatchObject({ load: single, part: { count: 1 } });
    expect(placesOf({ kind: "shared", vus: 9, iterations: 2, durationMsMax: 1 }, 3)).toBe(2);
  });

  it("is rejected for a search", () => {
    const range = {
      from: 1,
      to: 9,
      settleMs: 1,
      holdMs: 1,
      drainMs: 1,
      precision: 0.1,
      vusMax: 9,
    } as const;
    expect(placesOf({ kind: "search", of: "vus", durationMsMax: 1, ...range }, 2)).toBe(0);
  });
});
