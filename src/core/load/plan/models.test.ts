/** Random arrivals, the throttle, stairs and the search for the breakpoint, each against a model of its own. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArrivalClock } from "./arrivals.ts";
import { BreakpointSearch, type SearchPlan } from "./breakpoint.ts";
import { isOpenEnded, type LoadPlan, type Stage, targetRate } from "./load.ts";
import { stairs } from "./stairs.ts";
import { shareOfRate, Throttle } from "./throttle.ts";

const alone = { index: 0, count: 1, users: [1] };

/** All times of a clock. */
function moments(clock: ArrivalClock): number[] {
  const list: number[] = [];
  for (let at = clock.peek(); at !== null; at = clock.peek()) {
    list.push(at);
    clock.advance();
  }
  return list;
}

const ramp: readonly Stage[] = [
  { durationMs: 10_000, from: 0, to: 400 },
  { durationMs: 5_000, from: 0, to: 0 },
  { durationMs: 20_000, from: 400, to: 100 },
];

/** The area under the rate by adding up a millisecond at a time: knows nothing of square roots. */
function areas(stages: readonly Stage[]): (ms: number) => number {
  const plan: LoadPlan = { kind: "rate", stages, vusMax: 1 };
  const length = stages.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const upTo = [0];
  for (let ms = 0; ms <= length; ms++)
    upTo.push((upTo[ms] ?? 0) + targetRate(plan, ms + 0.5) / 1_000);
  return (ms) => {
    const whole = Math.floor(ms);
    const [before = 0, after = 0] = [upTo[whole], upTo[whole + 1]];
    return before + (after - before) * (ms - whole);
  };
}

describe("random arrivals", () => {
  it("are a Poisson process of the plan's rate: distances in area are exponential", () => {
    const list = moments(new ArrivalClock(ramp, alone, "seed"));
    const places = list.map(areas(ramp));
    const gaps = places.map((place, at) => place - (places[at - 1] ?? 0)).sort((a, b) => a - b);
    // Kolmogorov-Smirnov: the largest distance to 1 - e^-x; 1.63/√n is the 1 % point.
    const distance = Math.max(
      ...gaps.map((gap, at) => Math.abs((at + 0.5) / gaps.length - (1 - Math.exp(-gap)))),
    );
    expect(distance).toBeLessThan(1.63 / Math.sqrt(gaps.length));
    // 2,000 + 0 + 5,000 expected; five standard deviations of a Poisson number are 418.
    expect(Math.abs(list.length - 7_000)).toBeLessThan(418);
    expect(list.some((at) => at > 10_000 && at < 15_000)).toBe(false);
  });

  it("are the same for the same seed, others for another, and not evenly spaced", () => {
    const stages = [{ durationMs: 1_000, from: 100, to: 100 }];
    const of = (seed: string | null) => moments(new ArrivalClock(stages, alone, seed));
    expect(of("a")).toEqual(of("a"));
    expect(of("a")).not.toEqual(of("b"));
    expect(of(null).map((at) => Math.round(at))).toEqual(
      Array.from({ length: 100 }, (_, at) => at * 10),
    );
  });

  it("of several cores together are the schedule of one", () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 7 }), (seed, count) => {
        const stages = ramp.map((stage) => ({
          ...stage,
          from: stage.from / 20,
          to: stage.to / 20,
        }));
        const one = moments(new ArrivalClock(stages, alone, seed));
        const users = new Array<number>(count).fill(1);
        const parts = Array.from({ length: count }, (_, index) =>
          moments(new ArrivalClock(stages, { index, count, users }, seed)),
        );
        expect(parts.flat().sort((a, b) => a - b)).toEqual(one);
      }),
    );
  });

  it.each([null, "seed"])("skip what was due before a time, and nothing else (seed %s)", (seed) => {
    for (const atMs of [0, 1, 4_321.5, 10_000, 12_500, 15_000, 29_999, 40_000]) {
      const share = { index: 1, count: 3, users: [1, 1, 1] };
      const all = moments(new ArrivalClock(ramp, share, seed));
      const clock = new ArrivalClock(ramp, share, seed);
      clock.skipTo(atMs);
      expect([atMs, moments(clock)]).toEqual([atMs, all.filter((one) => one >= atMs)]);
    }
  });

  it("count overdue arrivals as a list would, whatever was taken and however the rate changed", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(
          fc.record({ at: fc.nat(1_000), take: fc.nat(30), factor: fc.constantFrom(1, 0.5, 3) }),
        ),
        (seed, steps) => {
          const stages = [{ durationMs: 1_000, from: 20, to: 200 }];
          const clock = new ArrivalClock(stages, { index: 1, count: 2, users: [1, 1] }, seed);
          for (const { at, factor, take } of [...steps].sort((a, b) => a.at - b.at)) {
            for (let i = 0; i < take && (clock.peek() ?? 2_000) <= at; i++) clock.advance();
            if (factor !== 1) clock.scale(factor, at);
            const before = clock.overdue(at);
            let listed = 0;
            const seen: number[] = [];
            for (let next = clock.peek(); next !== null && next <= at; next = clock.peek()) {
              listed++;
              seen.push(next);
              clock.advance();
            }
            expect(before).toBe(listed);
            expect(seen).toEqual(seen.toSorted((a, b) => a - b));
          }
        },
      ),
    );
  });
});

describe("a throttle", () => {
  it("lets through as many as a brute-force bucket would, and never a burst", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.nat(300), { minLength: 1, maxLength: 200 }),
        (rate, gaps) => {
          const throttle = new Throttle(rate);
          let now = 0;
          const begun = gaps.map((gap) => {
            now += gap;
            return now + throttle.admit(now);
          });
          // The bucket: each start delays the next by at least one interval.
          let free = 0;
          let asked = 0;
          const model = gaps.map((gap) => {
            asked += gap;
            const at = Math.max(asked, free);
            free = at + 1_000 / rate;
            return at;
          });
          for (const [at, moment] of begun.entries()) {
            expect(moment).toBeGreaterThanOrEqual((model[at] ?? 0) - 1 - 1e-6);
            expect(moment).toBeLessThanOrEqual((model[at] ?? 0) + 1e-6);
          }
          for (const [at, moment] of begun.entries()) {
            const inSecond = begun.filter((other, i) => i >= at && other < moment + 1_000).length;
            expect(inSecond).toBeLessThanOrEqual(rate * 1.001 + 2);
          }
        },
      ),
    );
  });

  it("is shared out by users, exactly", () => {
    const users = [3, 3, 4];
    const parts = users.map((_, index) => shareOfRate(50, { index, count: 3, users }));
    expect(parts).toEqual([15, 15, 20]);
  });
});

describe("stairs", () => {
  it("jump to each level and hold it", () => {
    expect(stairs.vus({ from: 10, to: 30, steps: 3, hold: "1m" })).toEqual([
      { duration: 0, vus: 10 },
      { duration: "1m", vus: 10 },
      { duration: 0, vus: 20 },
      { duration: "1m", vus: 20 },
      { duration: 0, vus: 30 },
      { duration: "1m", vus: 30 },
    ]);
    expect(stairs.rate({ from: 1, to: 0.5, steps: 2, hold: 100 }).map(({ rate }) => rate)).toEqual([
      1, 1, 0.5, 0.5,
    ]);
    expect(() => stairs.vus({ from: 1, to: 2, steps: 1, hold: "1s" })).toThrow("steps is 1");
  });
});

describe("the search for the breakpoint", () => {
  const plan = (over: Partial<SearchPlan> = {}): SearchPlan => ({
    of: "rate",
    from: 100,
    to: 5_000,
    settleMs: 50,
    holdMs: 200,
    drainMs: 30_000,
    precision: 0.05,
    ...over,
  });

  /** Runs a search against a system; ticks come every 10 ms. */
  function run(search: BreakpointSearch, holds: (load: number) => boolean) {
    const loads = [search.load];
    let marks = 0;
    let done = false;
    let progress = 0;
    for (let now = 0; !done && now < 1e7; now += 10) {
      const effects = [...search.step({ kind: "tick", isDrained: true }, now)];
      expect(search.progress(now)).toBeGreaterThanOrEqual(progress);
      progress = search.progress(now);
      for (let effect = effects.shift(); effect !== undefined; effect = effects.shift()) {
        if (effect.kind === "mark") marks++;
        if (effect.kind === "level" && effect.load > 0) loads.push(effect.load);
        if (effect.kind === "done") done = true;
        if (effect.kind === "judge") {
          const held = holds(search.load);
          const reason = held ? null : "slow";
          effects.push(...search.step({ kind: "judged", held, reason }, now));
        }
      }
    }
    expect(done).toBe(true);
    expect(search.progress(1e7)).toBe(1);
    expect(marks).toBe(search.probes.length);
    return loads;
  }

  it("doubles until it breaks, then halves the gap", () => {
    const search = new BreakpointSearch(plan());
    expect(run(search, (load) => load <= 730)).toEqual([100, 200, 400, 800, 600, 700, 750, 725]);
    expect([search.held, search.broke, search.decided]).toEqual([725, 750, true]);
    expect(search.probes[0]).toEqual({
      load: 100,
      held: true,
      reason: null,
      fromMs: 50,
      toMs: 250,
    });
  });

  it("blames no load for the backlog of the one before", () => {
    fc.assert(
      fc.property(fc.integer({ min: 25, max: 390 }), (capacity) => {
        const probing = { from: 20, to: 400, settleMs: 700, holdMs: 2_500, precision: 0.1 };
        const search = new BreakpointSearch(plan(probing));
        // A queue that serves `capacity` calls per second: its length is the waiting time.
        let [queued, slowestMs, done] = [0, 0, false];
        for (let now = 0; !done && now < 1e6; now += 10) {
          queued = Math.max(0, queued + (search.level - capacity) / 100);
          slowestMs = Math.max(slowestMs, (queued / capacity) * 1_000);
          for (const { kind } of search.step({ kind: "tick", isDrained: queued === 0 }, now)) {
            if (kind === "mark") slowestMs = 0;
            if (kind !== "judge") continue;
            const held = slowestMs < 300;
            const [next] = search.step({ kind: "judged", held, reason: held ? null : "slow" }, now);
            done = next?.kind === "done";
          }
        }
        const { broke, held, probes } = search;
        // A queue that grows by less than 300 ms in a probe is not detected in it.
        const most = capacity * (1 + 300 / (700 + 2_500));
        expect(probes.filter(({ load }) => load <= capacity).every((probe) => probe.held)).toBe(
          true,
        );
        expect(broke ?? 401).toBeGreaterThan(capacity);
        expect(held ?? 0).toBeLessThanOrEqual(most);
      }),
    );
  });

  it("begins nothing while calls of a broken load are in flight, and waits no longer than its limit", () => {
    const broken = (of: SearchPlan["of"]) => {
      const search = new BreakpointSearch(plan({ of, settleMs: 0, holdMs: 100, drainMs: 1_000 }));
      const judged = (held: boolean, at: number) => {
        search.step({ kind: "tick", isDrained: false }, at - 100);
        search.step({ kind: "tick", isDrained: false }, at);
        return search.step({ kind: "judged", held, reason: null }, at);
      };
      expect(judged(true, 100)).toEqual([{ kind: "level", load: 200 }]);
      return [search, judged(false, 300)] as const;
    };
    const tick = { kind: "tick", isDrained: false } as const;
    const [rate, stop] = broken("rate");
    expect([stop, rate.level, rate.isDraining]).toEqual([[{ kind: "level", load: 0 }], 0, true]);
    expect(rate.step(tick, 1_299)).toEqual([]);
    expect(rate.step(tick, 1_300)).toEqual([{ kind: "level", load: 150 }]);
    const [drained] = broken("rate");
    expect(drained.step({ ...tick, isDrained: true }, 310)).toEqual([{ kind: "level", load: 150 }]);
    // Users leave one by one: the lower load is generated at once, and judged once the others have left.
    const [users, fewer] = broken("vus");
    expect(fewer).toEqual([{ kind: "level", load: 150 }]);
    expect(users.step({ ...tick, isDrained: true }, 310)).toEqual([]);
    expect(users.isDraining).toBe(false);
  });

  it("continues where a previous leader was: draining, or at the next load", () => {
    const probes = [
      { load: 100, held: true, reason: null, fromMs: 50, toMs: 250 },
      { load: 200, held: false, reason: "slow", fromMs: 300, toMs: 500 },
    ] as const;
    const successor = new BreakpointSearch(plan());
    successor.adopt(probes[0], 200);
    successor.adopt(probes[1], 0);
    expect([successor.level, successor.isDraining]).toEqual([0, true]);
    successor.adopt(probes[1], 150);
    expect([successor.level, successor.isDraining]).toEqual([150, false]);
  });

  it("finds the limit of any system that has one, within its precision and range", () => {
    const systems = fc.record({
      of: fc.constantFrom("rate" as const, "vus" as const),
      from: fc.integer({ min: 1, max: 500 }),
      span: fc.integer({ min: 0, max: 20_000 }),
      limit: fc.integer({ min: 0, max: 30_000 }),
      precision: fc.constantFrom(0.01, 0.05, 0.2, 1),
    });
    fc.assert(
      fc.property(systems, ({ from, limit, of, precision, span }) => {
        const to = from + span;
        const search = new BreakpointSearch(plan({ of, from, to, precision }));
        const loads = run(search, (load) => load <= limit);
        expect(new Set(loads).size).toBe(loads.length);
        expect(loads.every((load) => load >= from && load <= to)).toBe(true);
        if (of === "vus") expect(loads.every(Number.isInteger)).toBe(true);
        const { broke, held } = search;
        expect(search.decided).toBe(true);
        if (limit < from) expect([held, broke]).toEqual([null, from]);
        else if (limit >= to) expect([held, broke]).toEqual([to, null]);
        else {
          expect(held ?? limit + 1).toBeLessThanOrEqual(limit);
          expect(broke ?? 0).toBeGreaterThan(limit);
          const gap = (broke ?? 0) - (held ?? 0);
          expect(gap <= precision * (broke ?? 0) || (of === "vus" && gap <= 1)).toBe(true);
        }
        // Doublings to the top, then halvings of at most the last doubling.
        const most = Math.ceil(Math.log2(to / from)) + 1 + Math.ceil(Math.log2(1 / precision)) + 1;
        expect(loads.length).toBeLessThanOrEqual(most);
      }),
    );
  });

  it("ends for a system that answers at random, with an interval it has seen", () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.boolean()), (coins) => {
        const search = new BreakpointSearch(plan({ precision: 0.01 }));
        run(search, () => coins.next().value === true);
        const { broke, held, probes } = search;
        if (held !== null && broke !== null) expect(held).toBeLessThan(broke);
        const below = probes.filter(({ load }) => broke === null || load < broke);
        expect(below.every((probe) => probe.held)).toBe(true);
      }),
    );
  });

  it("ignores unrequested judgements, and makes no progress while time stands still", () => {
    const search = new BreakpointSearch(plan());
    expect(search.step({ kind: "judged", held: true, reason: null }, 10)).toEqual([]);
    expect(search.step({ kind: "tick", isDrained: false }, 49)).toEqual([]);
    expect(search.step({ kind: "tick", isDrained: false }, 49)).toEqual([]);
    expect(search.step({ kind: "tick", isDrained: false }, 50)).toEqual([{ kind: "mark" }]);
  });

  it("continues however few users there are", () => {
    const load: LoadPlan = { kind: "search", ...plan(), vusMax: 1, durationMsMax: 1 };
    expect(isOpenEnded(load)).toBe(true);
  });
});
