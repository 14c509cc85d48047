import { describe, expect, it } from "vitest";
import { PeerHealth } from "./peer-health.ts";

function answered(...latencies: readonly number[]): PeerHealth {
  const health = new PeerHealth();
  for (const ms of latencies) health.succeeded(ms, 0);
  return health;
}

describe("how a peer does", () => {
  it("has the first latency, then four fifths of the old and one of the new (AD-28.18)", () => {
    expect(new PeerHealth().latencyMs).toBeNull();
    expect(answered(100).latencyMs).toBe(100);
    expect(answered(100, 200).latencyMs).toBeCloseTo(120);
    expect(answered(100, 200, 20).latencyMs).toBeCloseTo(100);
  });

  it("has no other latency for a failure (AD-28.18)", () => {
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
  ])("at %i ms where 100 are usual weighs %d (AD-28.16)", (ms, weight) => {
    expect(answered(ms).weight(100, 0)).toBeCloseTo(weight);
  });

  it("weighs as any other while nothing is known of it or of the others (AD-28.16)", () => {
    expect(new PeerHealth().weight(100, 0)).toBe(1);
    expect(answered(9_000).weight(null, 0)).toBe(1);
  });

  it("never weighs nothing, however many fail", () => {
    const health = new PeerHealth();
    for (let one = 0; one < 100; one++) health.failed(one);
    expect(health.weight(null, 100)).toBeCloseTo(0.1);
  });
});
