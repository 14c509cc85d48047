import { describe, expect, it } from "vitest";
import {
  BackpressureGauge,
  BackpressureSignals,
  backpressureLevel,
  delayMs,
} from "./backpressure.ts";

describe("the backpressure level of a receiver (AD-23.2, AD-37.2)", () => {
  it.each([
    [0, 0],
    [0.6999, 0],
    [0.7, 1],
    [0.8499, 1],
    [0.85, 2],
    [0.9499, 2],
    [0.95, 3],
    [1, 3],
    [Number.NaN, 3],
    [-1, 3],
    [7, 3],
  ])("filled to %s is %s", (fill, level) => {
    const gauge = new BackpressureGauge();
    gauge.measure(fill);
    expect(gauge.level).toBe(level);
  });

  it("drops only when the fill is five points below the threshold, however far it drops", () => {
    const gauge = new BackpressureGauge();
    const levels = [0.96, 0.91, 0.9, 0.86, 0.81, 0.8, 0.66, 0.65, 0.95, 0.1].map((fill) => {
      gauge.measure(fill);
      return gauge.level;
    });
    expect(levels).toEqual([3, 3, 2, 2, 2, 1, 1, 0, 3, 0]);
  });
});

describe("the backpressure level applied by a sender", () => {
  it("is the highest that any receiver has reported (AD-37.4)", () => {
    const signals = new BackpressureSignals();
    signals.heard("m1", 3, 0);
    signals.heard("m2", 1, 0);
    expect(signals.level(0)).toBe(3);
    signals.heard("m1", 0, 0);
    expect(signals.level(0)).toBe(1);
    signals.lost("m2");
    expect(signals.level(0)).toBe(0);
  });

  it("drops by one for every five seconds of silence, and is none after three times that (AD-37.9)", () => {
    const signals = new BackpressureSignals();
    signals.heard("m1", 3, 1_000);
    const levels = [1_000, 5_999, 6_000, 10_999, 11_000, 16_000, 99_000].map((now) =>
      signals.level(now),
    );
    expect(levels).toEqual([3, 3, 2, 2, 1, 0, 0]);
  });

  it("maps an unknown level of a later version to the nearest known one", () => {
    expect([-1, 0.5, 2, 9, Number.NaN].map(backpressureLevel)).toEqual([0, 0, 2, 3, 0]);
    expect([0, 1, 2, 3].map((level) => delayMs(backpressureLevel(level)))).toEqual([
      0, 100, 500, 1_000,
    ]);
  });
});
