import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { provision } from "../job/provision.ts";
import { ArrivalClock } from "./arrivals.ts";
import {
  describePlan,
  type LoadPlan,
  planDurationMs,
  plannedArrivals,
  planVusMax,
  type Share,
  type Stage,
  shareOfUsers,
  targetRate,
  targetUsers,
} from "./load.ts";

const constant = (to: number, durationMs: number): Stage => ({ durationMs, from: to, to });
const alone: Share = { index: 0, count: 1, users: [1] };
const shares = (users: readonly number[]): Share[] =>
  users.map((_, index) => ({ index, count: users.length, users }));

function drain(clock: ArrivalClock, max = 100_000): number[] {
  const times: number[] = [];
  for (let at = clock.peek(); at !== null && times.length < max; at = clock.peek()) {
    times.push(at);
    clock.advance();
  }
  return times;
}

describe("a plan", () => {
  const ramp: LoadPlan = {
    kind: "vus",
    stages: [
      { durationMs: 10_000, from: 0, to: 100 },
      constant(100, 20_000),
      { durationMs: 10_000, from: 100, to: 0 },
    ],
  };

  it("requires whole users along its stages", () => {
    const at = [0, 50, 5_000, 10_000, 29_999, 35_000, 40_000, 99_999];
    expect(at.map((ms) => targetUsers(ramp, ms))).toEqual([0, 1, 50, 100, 100, 50, 0, 0]);
    expect(planDurationMs(ramp)).toBe(40_000);
    expect(planVusMax(ramp)).toBe(100);
  });

  it("requires a rate only when it has one", () => {
    const open: LoadPlan = {
      kind: "rate",
      stages: [{ durationMs: 1_000, from: 0, to: 50 }, constant(50, 1_000)],
      vusMax: 200,
    };
    expect([0, 500, 1_500, 9_000].map((ms) => targetRate(open, ms))).toEqual([0, 25, 50, 50]);
    expect(targetRate(ramp, 5_000)).toBe(0);
    expect(targetUsers(open, 0)).toBe(200);
  });

  it("has the exact area under its rate at any time of any steps and ramps", () => {
    const steps: LoadPlan = {
      kind: "rate",
      stages: [0, 20, 60, 100]
        .flatMap((rate) => [constant(rate, 0), constant(rate, 1_000)])
        .slice(2),
      vusMax: 1,
    };
    expect([0, 500, 1_000, 3_000, 9_000].map((ms) => plannedArrivals(steps, ms))).toEqual([
      0, 10, 20, 180, 180,
    ]);
    const up: LoadPlan = { ...steps, stages: [{ durationMs: 2_000, from: 0, to: 50 }] };
    expect([1_000, 2_000].map((ms) => plannedArrivals(up, ms))).toEqual([12.5, 50]);
    expect(plannedArrivals(ramp, 10_000)).toBe(0);
  });

  it("has no length when iterations end it", () => {
    const shared: LoadPlan = { kind: "shared", vus: 4, iterations: 100, durationMsMax: 60_000 };
    expect(planDurationMs(shared)).toBeNull();
    expect(planVusMax(shared)).toBe(4);
    expect(planVusMax({ kind: "once", durationMsMax: 1 })).toBe(1);
  });

  it.each<[LoadPlan, number, string]>([
    [{ kind: "vus", stages: [constant(64, 30_000)] }, 0, "64 virtual users for 30s"],
    [{ kind: "vus", stages: [constant(1, 60_000)] }, 0, "1 virtual user for 1m"],
    [
      { kind: "rate", stages: [constant(1_000, 10_000)], vusMax: 2_000 },
      5_000,
      "1000/s for 10s, at most 2000 virtual users, warm-up 5s",
    ],
    [ramp, 0, "0 to 100 virtual users in 10s, then 100 for 20s, then 100 to 0 in 10s"],
    [
      { kind: "rate", stages: [{ durationMs: 90_000, from: 0.5, to: 20 }], vusMax: 1 },
      0,
      "0.5/s to 20/s in 1m30s, at most 1 virtual user",
    ],
    [
      { kind: "shared", vus: 8, iterations: 1_000, durationMsMax: 600_000 },
      0,
      "1000 iterations shared by 8 virtual users, at most 10m",
    ],
    [
      { kind: "perUser", vus: 8, iterations: 1, durationMsMax: 3_600_000 },
      0,
      "8 virtual users with 1 iteration each, at most 1h",
    ],
    [{ kind: "once", durationMsMax: 30_000 }, 0, "one pass, at most 30s"],
  ])("describes itself %#", (plan, warmupMs, text) => {
    expect(describePlan(plan, warmupMs)).toBe(text);
    expect(describePlan(plan, warmupMs, 20_000)).toBe(`${text}, beginning after 20s`);
  });
});

describe("the split of users over cores", () => {
  const pools = fc.record({
    vus: fc.integer({ min: 1, max: 3_000 }),
    threads: fc.integer({ min: 1, max: 32 }),
  });

  it("sums to the total, equals the provisioned users at the full total, and only grows with it", () => {
    fc.assert(
      fc.property(pools, fc.integer({ min: 0, max: 6_000 }), ({ vus, threads }, total) => {
        const users = provision(vus, threads);
        const at = (n: number) => shares(users).map((share) => shareOfUsers(n, share));
        expect(at(total).reduce((sum, n) => sum + n, 0)).toBe(total);
        expect(at(vus)).toEqual(users);
        const next = at(total + 1);
        for (const [core, now] of at(total).entries())
          expect(next[core]).toBeGreaterThanOrEqual(now);
      }),
    );
  });

  it("holds for uneven cores, and gives an idle core nothing", () => {
    const users = [5, 0, 1];
    const at = (n: number) => shares(users).map((share) => shareOfUsers(n, share));
    expect(at(0)).toEqual([0, 0, 0]);
    expect(at(2)).toEqual([1, 0, 1]);
    expect(at(6)).toEqual([5, 0, 1]);
    expect(at(13)).toEqual([11, 0, 2]);
  });
});

describe("the arrival clock", () => {
  const stage: fc.Arbitrary<Stage> = fc.record({
    durationMs: fc.integer({ min: 0, max: 20_000 }),
    from: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: 60 }),
      fc.double({ min: 0, max: 60, noNaN: true }),
    ),
    to: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })),
  });
  const stages = fc.array(stage, { maxLength: 5 });
  const area = (list: readonly Stage[]) =>
    list.reduce((sum, s) => sum + ((s.from + s.to) / 2) * (s.durationMs / 1_000), 0);

  /** N(t) by plain summation, the definition the clock inverts. */
  function areaUpTo(list: readonly Stage[], ms: number): number {
    let sum = 0;
    let start = 0;
    for (const { durationMs, from, to } of list) {
      const inside = Math.min(Math.max(ms - start, 0), durationMs);
      const end = durationMs === 0 ? to : from + ((to - from) * inside) / durationMs;
      sum += ((from + end) / 2) * (inside / 1_000);
      start += durationMs;
    }
    return sum;
  }

  it("spaces a constant rate evenly from time zero", () => {
    const times = drain(new ArrivalClock([constant(1_000, 10_000)], alone));
    expect(times).toHaveLength(10_000);
    expect(times[0]).toBe(0);
    expect(times[1]).toBeCloseTo(1, 9);
    expect(times[9_999]).toBeCloseTo(9_999, 6);
  });

  it("follows the square root inside a ramp", () => {
    const times = drain(new ArrivalClock([{ durationMs: 10_000, from: 0, to: 20 }], alone));
    expect(times).toHaveLength(100);
    for (const [j, at] of times.entries()) expect(at).toBeCloseTo(1_000 * Math.sqrt(j), 6);
  });

  it("waits while the rate is zero", () => {
    const times = drain(
      new ArrivalClock(
        [constant(0, 5_000), constant(2, 1_000), constant(0, 4_000), constant(1, 2_000)],
        alone,
      ),
    );
    expect(times).toEqual([5_000, 5_500, 10_000, 11_000]);
  });

  it("makes as many arrivals as the area under the rate, in order, each where the area passes it", () => {
    fc.assert(
      fc.property(stages, (list) => {
        const times = drain(new ArrivalClock(list, alone));
        expect(Math.abs(times.length - area(list))).toBeLessThan(1.001);
        expect(times.length).toBe(Math.max(0, Math.ceil(area(list) - 1e-6)));
        for (const [j, at] of times.entries()) {
          expect(areaUpTo(list, at)).toBeCloseTo(j, 4);
          if (j > 0) expect(at).toBeGreaterThanOrEqual(times[j - 1] ?? 0);
        }
      }),
    );
  });

  it("gives n cores together exactly the schedule of one", () => {
    fc.assert(
      fc.property(stages, fc.integer({ min: 1, max: 9 }), (list, count) => {
        const whole = drain(new ArrivalClock(list, alone));
        const parts = shares(new Array<number>(count).fill(1)).map((share) =>
          drain(new ArrivalClock(list, share)),
        );
        expect(parts.flat().sort((a, b) => a - b)).toEqual(whole);
      }),
    );
  });

  it("counts overdue arrivals as draining up to that time would", () => {
    fc.assert(
      fc.property(
        stages,
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 0, max: 110_000 }),
        (list, count, taken, atMs) => {
          const share = { index: count - 1, count, users: new Array<number>(count).fill(1) };
          const clock = new ArrivalClock(list, share);
          for (let i = 0; i < taken; i++) clock.advance();
          const due = drain(new ArrivalClock(list, share)).slice(taken);
          const expected = due.filter((at) => at <= atMs).length;
          // A time within a rounding error of an arrival may count either way.
          const near = due.some((at) => Math.abs(at - atMs) < 1e-3);
          expect(Math.abs(clock.overdue(atMs) - expected)).toBeLessThanOrEqual(near ? 1 : 0);
        },
      ),
    );
  });

  it("changes its rate from a time on, and n cores still agree with one", () => {
    const clock = new ArrivalClock([constant(10, 10_000)], alone);
    clock.scale(2, 5_000);
    const times = drain(clock);
    expect(times).toHaveLength(150);
    expect(times[49]).toBeCloseTo(4_900, 6);
    expect(times[51]).toBeCloseTo(5_050, 6);
    fc.assert(
      fc.property(
        stages,
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 0, max: 60_000 }),
        (list, count, atMs) => {
          const scaled = (share: Share): number[] => {
            const one = new ArrivalClock(list, share);
            one.scale(1.5, atMs);
            return drain(one);
          };
          const whole = scaled(alone);
          const parts = shares(new Array<number>(count).fill(1)).map(scaled);
          expect(parts.flat().sort((a, b) => a - b)).toEqual(whole);
          const before = areaUpTo(list, atMs);
          expect(Math.abs(whole.length - (before + 1.5 * (area(list) - before)))).toBeLessThan(
            1.001,
          );
        },
      ),
    );
  });
});
