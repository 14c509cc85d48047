import { describe, expect, it } from "vitest";
import { PeerHealth } from "./peer-health.ts";

function answered(...latencies: readonly number[]): PeerHealth {
  const health = new PeerHealth();
  for (const ms of latencies) health.succeeded(ms, 0);
  return health;
}

describe("peer health", () => {
  it("smooths latency with a weight of 0.2 for a new sample (AD-28.18)", () => {
    expect(new PeerHealth().latencyMs).toBeNull();
    expect(answered(100).latencyMs).toBe(100);
    expect(answered(100, 200).latencyMs).toBeCloseTo(120);
    expect(answered(100, 200, 20).latencyMs).toBeCloseTo(100);
  });

  it("ignores failures in the latency (AD-28.18)", () => {
    const health = answered(100);
    health.failed(1);
    expect(health.latencyMs).toBe(100);
  });

  it.each([
    [50, 1],
    [100, 1],
    [200, 0.75],
    [300, 0.5],
    [9_000, 0.5],
  ])("a latency of %i ms where 100 ms is usual gives a weight of %d (AD-28.16)", (ms, weight) => {
    expect(answered(ms).weight(100, 0)).toBeCloseTo(weight);
  });

  it("has full weight while no latency is known (AD-28.16)", () => {
    expect(new PeerHealth().weight(100, 0)).toBe(1);
    expect(answered(9_000).weight(null, 0)).toBe(1);
  });

  it("keeps a minimum weight however many requests fail", () => {
    const health = new PeerHealth();
    for (let one = 0; one < 100; one++) health.failed(one);
    expect(health.weight(null, 100)).toBeCloseTo(0.1);
  });

  it("drops failures from the error rate after a hundred later successes", () => {
    const health = new PeerHealth();
    health.failed(0);
    for (let one = 0; one < 99; one++) health.succeeded(1, 0);
    expect(health.errorRate(0)).toBe(0.01);
    health.succeeded(1, 0);
    expect(health.errorRate(0)).toBe(0);
  });

  it.each([
    ["1 of 49 others is as slow", [49], 1, null],
    ["all 50 others are faster", [50], 0, "latency"],
    ["1 of 50 others is as slow", [50], 1, null],
    ["1 of 100 others is as slow", [100], 1, "latency"],
    ["2 of 100 others are as slow", [100], 2, null],
    ["2 of 200 others are as slow", [100, 100], 2, "latency"],
    ["3 of 200 others are as slow", [100, 100], 3, null],
  ] as const)(
    "is compared with the p99 of the other peers: %s (AD-28.20)",
    (_, counts, slow, reason) => {
      let left: number = slow;
      const others = counts.map((count) =>
        answered(...Array.from({ length: count }, () => (left-- > 0 ? 100 : 99))),
      );
      expect(answered(300).eviction(others, true, 0)).toBe(reason);
    },
  );
});
