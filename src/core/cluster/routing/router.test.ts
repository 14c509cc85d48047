import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { type Distance, qualityOf, RoundTrips, UNKNOWN_DISTANCE } from "./round-trips.ts";
import { type Candidate, HEALTHS, loadOf, ROUTER_DEFAULTS, Router } from "./router.ts";

const known = (upperMs: number, quality = 1): Distance => ({ upperMs, quality, isKnown: true });

function candidate(name: string, more: Partial<Candidate> = {}): Candidate {
  return {
    ...{ name, health: "healthy", cores: 100, coresFree: 100, jobsQueued: 0 },
    ...{ managers: 3, managersAway: 0, distance: known(100) },
    ...more,
  };
}

describe("load of a datacenter", () => {
  it.each<[Partial<Candidate>, number]>([
    [{}, 1],
    [{ coresFree: 0 }, 3],
    [{ coresFree: 50, jobsQueued: 10 }, 2.5],
    [{ coresFree: 50, jobsQueued: 10, managersAway: 1 }, 3.5],
    [{ coresFree: 0, jobsQueued: 90, managersAway: 3 }, 5],
    [{ cores: 0, coresFree: 0 }, 3],
  ])("load of %o is %f", (more, load) => {
    expect(loadOf(candidate("a", more), ROUTER_DEFAULTS)).toBeCloseTo(load, 9);
  });
});

describe("quality of a distance", () => {
  it.each([
    [10, 20, 0, 1],
    [5, 20, 0, 0.5],
    [10, 40, 0, 0.5],
    [10, 20, 600_000, 0.5],
    [5, 40, 600_000, 0.125],
    [0, 20, 0, 0],
  ])(
    "quality of %i samples with deviation %i ms, %i ms old, is %f",
    (samples, deviation, age, quality) => {
      expect(qualityOf(samples, deviation, age)).toBeCloseTo(quality, 9);
    },
  );

  it("grows with samples and ignores invalid ones", () => {
    const trips = new RoundTrips();
    for (const rubbish of [Number.NaN, -1, Number.POSITIVE_INFINITY]) trips.record(rubbish, 0);
    expect(trips.distance(0)).toEqual(UNKNOWN_DISTANCE);
    expect(UNKNOWN_DISTANCE.upperMs).toBe(200);
    for (let i = 0; i < 9; i++) trips.record(80, i);
    expect(trips.distance(9).isKnown).toBe(false);
    for (let i = 0; i < 20; i++) trips.record(80, i);
    const { isKnown, quality, upperMs } = trips.distance(30);
    expect(isKnown).toBe(true);
    expect(quality).toBe(1);
    expect(upperMs).toBeGreaterThanOrEqual(82);
    expect(upperMs).toBeLessThan(85);
  });
});

describe("order of datacenters", () => {
  it("weighs distance against load, and preference against both (AD-36.7)", () => {
    const a = candidate("a", { coresFree: 20, jobsQueued: 20, distance: known(40) });
    const b = candidate("b", { coresFree: 90, distance: known(125) });
    expect(new Router().route([a, b], [], 0).names).toEqual(["a", "b"]);
    expect(new Router().route([a, b], ["b"], 0).names).toEqual(["b", "a"]);
  });

  it("never ranks worse health first, and is independent of the input order (AD-36.6)", () => {
    const one = fc.record({
      health: fc.constantFrom(...HEALTHS),
      coresFree: fc.nat(100),
      jobsQueued: fc.nat(50),
      managersAway: fc.nat(3),
      upperMs: fc.integer({ min: 1, max: 10_000 }),
      isKnown: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), (list) => {
        const all = list.map(({ isKnown, upperMs, ...more }, at) =>
          candidate(`dc${at}`, { ...more, distance: { upperMs, quality: 0.5, isKnown } }),
        );
        const { names } = new Router().route(all, [], 0);
        expect(new Router().route(all.toReversed(), [], 0).names).toEqual(names);
        const healths = names.map((name) =>
          HEALTHS.indexOf(all.find((each) => each.name === name)?.health ?? "degraded"),
        );
        expect(healths).toEqual(healths.toSorted((x, y) => x - y));
      }),
    );
  });

  it("never improves for a datacenter when its load grows", () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100), fc.nat(50), fc.nat(50), (free, less, queued, more) => {
        const others = [candidate("b", { coresFree: 60 }), candidate("c", { coresFree: 30 })];
        const rank = (coresFree: number, jobsQueued: number): number =>
          new Router()
            .route([candidate("a", { coresFree, jobsQueued }), ...others], [], 0)
            .names.indexOf("a");
        expect(rank(Math.max(0, free - less), queued + more)).toBeGreaterThanOrEqual(
          rank(free, queued),
        );
      }),
    );
  });

  it("is by free cores, then queue length, while no distance is known (AD-36.20)", () => {
    const distance = UNKNOWN_DISTANCE;
    const all = [
      candidate("full", { coresFree: 0, distance }),
      candidate("queue", { coresFree: 50, jobsQueued: 3, distance }),
      candidate("room", { coresFree: 50, distance }),
      candidate("most", { coresFree: 90, distance }),
    ];
    expect(new Router().route(all, [], 0).names).toEqual(["most", "room", "queue", "full"]);
    expect(new Router().route(all, ["full", "queue"], 0).names[0]).toBe("queue");
  });
});

describe("selected datacenter", () => {
  const near = (ms: number): Candidate[] => [
    candidate("a", { distance: known(100) }),
    candidate("b", { distance: known(ms) }),
  ];

  it("stays the same under noise for an hour", () => {
    const random = new Random("noise");
    const router = new Router();
    const first = new Set<string | undefined>();
    for (let now = 0; now < 3_600_000; now += 1_000) {
      const noisy = ["a", "b", "c"].map((name) =>
        candidate(name, { distance: known(100 * (0.95 + 0.1 * random.float())) }),
      );
      first.add(router.route(noisy, [], now).names[0]);
    }
    expect(first.size).toBe(1);
  });

  it("changes once when another is clearly better, after the hold-down time", () => {
    const router = new Router();
    router.route(near(120), [], 0);
    const seen = [1_000, 29_000, 30_000, 31_000].map((now) => router.route(near(70), [], now));
    expect(seen.map(({ names, reason }) => [names[0], reason])).toEqual([
      ["a", "held"],
      ["a", "held"],
      ["b", "better"],
      ["b", "best"],
    ]);
  });

  it("ignores small differences", () => {
    const router = new Router();
    router.route(near(120), [], 0);
    expect(router.route(near(85), [], 60_000).names[0]).toBe("a");
  });

  it("changes at once when it cannot accept jobs, its health drops, or it failed a job (AD-36.10)", () => {
    const [, b] = near(120);
    const firstAfter = (change: (router: Router) => readonly Candidate[]) => {
      const router = new Router();
      router.route(near(120), [], 0);
      return router.route(change(router), [], 1_000).names[0];
    };
    expect(firstAfter(() => (b === undefined ? [] : [b]))).toBe("b");
    const busy = near(120).map((one) =>
      one.name === "a" ? { ...one, health: "busy" as const } : one,
    );
    expect(firstAfter(() => busy)).toBe("b");
    const failed = (router: Router) => {
      router.failed("a", 1_000);
      return near(120);
    };
    expect(firstAfter(failed)).toBe("b");
  });

  it("loses its failure penalty after accepting a job, or after the cool-down (AD-36.11)", () => {
    const router = new Router();
    router.failed("a", 0);
    expect(router.route(near(120), [], 0).names[0]).toBe("b");
    router.succeeded("a");
    expect(new Router().route(near(120), [], 0).names[0]).toBe("a");
    expect(router.route(near(300), [], 40_000).names[0]).toBe("a");
    const later = new Router();
    later.failed("a", 0);
    expect(later.route(near(120), [], 120_000).names[0]).toBe("a");
  });

  it("changes after being much worse for a while, even during hold-down", () => {
    const router = new Router();
    const worse = [
      candidate("a", { distance: known(160) }),
      candidate("b", { distance: known(120) }),
    ];
    router.route(near(120), [], 0);
    expect(router.route(worse, [], 1_000).names[0]).toBe("a");
    expect(router.route(worse, [], 10_999).names[0]).toBe("a");
    expect(router.route(worse, [], 11_000)).toMatchObject({ names: ["b", "a"], reason: "forced" });
  });

  it("has at most half the round trip of a random choice at any load", () => {
    const random = new Random("near");
    let [routed, drawn] = [0, 0];
    for (let gate = 0; gate < 200; gate++) {
      const router = new Router();
      const trips = Array.from({ length: 5 }, () => 5 + random.float() * 195);
      const all = trips.map((ms, at) =>
        candidate(`dc${at}`, { coresFree: 40 + random.below(60), distance: known(ms) }),
      );
      const [name] = router.route(all, [], 0).names;
      routed += trips[all.findIndex((one) => one.name === name)] ?? 0;
      drawn += random.pick(trips);
    }
    expect(routed).toBeLessThan(drawn / 2);
  });

  /** A gate that samples its datacenters every second, each sample up to 30 % too slow. */
  function measuring(random: Random, tripsMs: readonly number[], untilMs: number): string[] {
    const router = new Router();
    const trips = tripsMs.map(() => new RoundTrips());
    const firsts: string[] = [];
    for (let now = 0; now < untilMs; now += 1_000) {
      trips.forEach((one, at) => {
        one.record((tripsMs[at] ?? 0) * (1 + 0.3 * random.float()), now);
      });
      const all = trips.map((one, at) => candidate(`dc${at}`, { distance: one.distance(now) }));
      firsts.push(router.route(all, [], now).names[0] ?? "");
    }
    return firsts;
  }

  it("AD-36: is within a tenth of the best of equals for 95 % of gates after 5 min", () => {
    const random = new Random("five minutes");
    const near = Array.from({ length: 400 }, () => {
      const tripsMs = Array.from({ length: 4 }, () => 5 + random.float() * 245);
      const chosen = measuring(random, tripsMs, 300_000).at(-1) ?? "";
      return (tripsMs[Number(chosen.slice(2))] ?? 0) <= 1.1 * Math.min(...tripsMs);
    });
    expect(near.filter((one) => one).length / near.length).toBeGreaterThanOrEqual(0.95);
  });

  it("AD-36: changes at most twice in an hour on a calm network", () => {
    const random = new Random("calm");
    for (let gate = 0; gate < 30; gate++) {
      const tripsMs = Array.from({ length: 4 }, () => 20 + random.float() * 30);
      const calm = measuring(random, tripsMs, 3_900_000).slice(300);
      const flips = calm.filter((name, at) => at > 0 && name !== calm[at - 1]).length;
      expect(flips).toBeLessThanOrEqual(2);
    }
  });
});
