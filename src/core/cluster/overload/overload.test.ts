import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Millis } from "../../base/brand.ts";
import { Random } from "../../base/random.ts";
import { OVERLOAD_STATES, type OverloadState } from "../views.ts";
import {
  LITERAL_OVERLOAD,
  OVERLOAD_DEFAULTS,
  type OverloadConfig,
  OverloadDetector,
} from "./overload.ts";

const RUNS = 100;

/** Feeds samples 10 ms apart and returns the state after each. */
function feed(
  detector: OverloadDetector,
  samples: readonly number[],
  startAt = 0,
): readonly OverloadState[] {
  return samples.map((ms, at) => {
    const now = (startAt + at * 10) as Millis;
    detector.record(ms, now);
    return detector.state(now);
  });
}

const levelOf = (state: OverloadState): number => OVERLOAD_STATES.indexOf(state);

/** 200 samples of 45 to 55 ms, then 100 of a multiple of it: the highest state seen after the step. */
function highestAfter(step: number, config: OverloadConfig, seed: string): OverloadState {
  const random = new Random(seed);
  const sample = () => 45 + random.float() * 10;
  const detector = new OverloadDetector({ ...config, latencyMs: [1e9, 1e9, 1e9] });
  feed(detector, Array.from({ length: 200 }, sample));
  const states = feed(
    detector,
    Array.from({ length: 100 }, () => sample() * step),
    2_000,
  );
  return states.reduce((worst, one) => (levelOf(one) > levelOf(worst) ? one : worst));
}

/** 5 ms and an exponential part of 20 ms on average. */
function noise(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => 5 - 20 * Math.log(1 - random.float()));
}

/** By the normal equations: n sum(xy) - sum(x) sum(y) over n sum(xx) - sum(x) sum(x). */
function slopeOf(values: readonly number[]): number {
  const of = (term: (x: number, y: number) => number): number =>
    values.reduce((sum, y, x) => sum + term(x, y), 0);
  const [n, x, y] = [values.length, of((at) => at), of((_, value) => value)];
  return (n * of((at, value) => at * value) - x * y) / (n * of((at) => at * at) - x * x);
}

describe("the overload detector (AD-18)", () => {
  it.each<[number, OverloadState]>([
    [1.3, "busy"],
    [1.5, "busy"],
    [2, "stressed"],
    [2.2, "overloaded"],
    [3, "overloaded"],
    [5, "overloaded"],
  ])("rates a step of %s x over its own past as C10-10 requires: %s", (step, expected) => {
    const seen = Array.from({ length: RUNS }, (_, run) =>
      highestAfter(step, OVERLOAD_DEFAULTS, `step ${run}`),
    );
    // A step of 2 lies on a threshold: a few runs fall on its other side.
    expect(seen.filter((state) => state === expected).length / RUNS).toBeGreaterThan(0.9);
  });

  it("stays healthy under steady noise for 98 % of the samples", () => {
    const random = new Random("noise");
    let healthy = 0;
    for (let run = 0; run < RUNS; run++) {
      const states = feed(new OverloadDetector(), noise(random, 1_000));
      healthy += states.filter((state) => state === "healthy").length;
    }
    expect(healthy / (RUNS * 1_000)).toBeGreaterThan(0.98);
  });

  it("never reports overload in its first 20 samples, which the literal rule does", () => {
    const random = new Random("fresh");
    const early = (config: OverloadConfig): number =>
      Array.from({ length: RUNS }, () =>
        feed(new OverloadDetector(config), noise(random, 20)),
      ).filter((states) => states.includes("overloaded")).length;
    expect(early(OVERLOAD_DEFAULTS)).toBe(0);
    expect(early(LITERAL_OVERLOAD)).toBeGreaterThan(RUNS / 5);
  });

  it("shows why the literal rule was corrected: it never detects a step of 5 as overload", () => {
    expect(highestAfter(5, LITERAL_OVERLOAD, "literal")).not.toBe("overloaded");
  });

  it.each<["latency" | "cpu" | "memory" | "queue", readonly [number, number, number]]>([
    ["latency", OVERLOAD_DEFAULTS.latencyMs],
    ["cpu", OVERLOAD_DEFAULTS.cpu],
    ["memory", OVERLOAD_DEFAULTS.memory],
    ["queue", OVERLOAD_DEFAULTS.queue],
  ])("judges %s above a bound, not on it (AD-18.5..7, C10-11)", (signal, bounds) => {
    const stateAt = (value: number): OverloadState => {
      const detector = new OverloadDetector();
      if (signal === "latency") detector.record(value, 0 as Millis);
      else detector.use({ cpu: 0, memory: 0, queue: 0, [signal]: value });
      return detector.state(0 as Millis);
    };
    for (const [at, bound] of bounds.entries()) {
      expect(stateAt(bound)).toBe(OVERLOAD_STATES[at]);
      expect(stateAt(bound * 1.000_001)).toBe(OVERLOAD_STATES[at + 1]);
    }
  });

  it("uses the least-squares slope of the last rises as its trend (AD-18.4)", () => {
    const { alpha, baselineMsMin, windowSamples } = OVERLOAD_DEFAULTS;
    const latencies = fc.array(fc.double({ min: 0, max: 400, noNaN: true }), { maxLength: 80 });
    fc.assert(
      fc.property(latencies, (samples) => {
        const detector = new OverloadDetector();
        const rises: number[] = [];
        for (const [at, ms] of samples.entries()) {
          detector.record(ms, at as Millis);
          // The baseline consists of samples that left the window, the newest with a weight of 1/50 at least.
          const past = samples.slice(0, Math.max(0, at + 1 - windowSamples));
          const mean = past.reduce((sum, one, index) => {
            const weight = Math.max(alpha, 1 / (index + 1));
            return sum + weight * (one - sum);
          }, 0);
          if (past.length < 10) continue;
          const present = samples.slice(at + 1 - windowSamples, at + 1);
          const floor = Math.max(mean, baselineMsMin);
          rises.push(present.reduce((sum, one) => sum + one, 0) / present.length / floor - 1);
        }
        const last = rises.slice(-20);
        const expected = last.length < windowSamples ? 0 : slopeOf(last);
        expect(Math.abs(detector.view().trend - expected)).toBeLessThan(1e-6);
      }),
    );
  });

  it("never improves when a resource rises", () => {
    const random = new Random("monotone");
    for (let run = 0; run < 1_000; run++) {
      const detector = new OverloadDetector();
      feed(detector, noise(random, random.below(60)));
      const less = { cpu: random.float(), memory: random.float(), queue: random.float() };
      const more = { ...less };
      const which = (["cpu", "memory", "queue"] as const)[random.below(3)] ?? "cpu";
      more[which] = less[which] + (1 - less[which]) * random.float();
      detector.use(less);
      const before = levelOf(detector.state(600 as Millis));
      detector.use(more);
      expect(levelOf(detector.state(600 as Millis))).toBeGreaterThanOrEqual(before);
    }
  });

  it("is healthy without data, ignores invalid samples, and forgets old ones (AD-18.1, AD-18.10)", () => {
    const detector = new OverloadDetector();
    expect(detector.state(0 as Millis)).toBe("healthy");
    for (const rubbish of [Number.NaN, -1, Number.POSITIVE_INFINITY])
      detector.record(rubbish, 0 as Millis);
    expect(detector.state(0 as Millis)).toBe("healthy");
    detector.record(5_000, 0 as Millis);
    expect(detector.state(0 as Millis)).toBe("overloaded");
    expect(detector.state(OVERLOAD_DEFAULTS.sampleMsMax as Millis)).toBe("overloaded");
    expect(detector.state((OVERLOAD_DEFAULTS.sampleMsMax + 1) as Millis)).toBe("healthy");
  });

  it("accepts a first sample of 0 ms", () => {
    const detector = new OverloadDetector();
    feed(detector, new Array(50).fill(0));
    expect(detector.view().baselineMs).toBe(0);
  });

  it("counts an invalid resource as full", () => {
    const detector = new OverloadDetector();
    detector.use({ cpu: Number.NaN, memory: 0, queue: 0 });
    expect(detector.state(0 as Millis)).toBe("overloaded");
  });
});
