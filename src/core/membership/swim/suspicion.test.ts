import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Suspicion, suspicionBounds, suspicionMinMs, suspicionTimeout } from "./suspicion.ts";

const bounds = (confirmationsWanted: number, minMs: number, maxMs: number) => ({
  confirmationsWanted,
  minMs,
  maxMs,
});
const names = ["a", "b", "c", "d", "e", "f"].map(nodeId);

describe("suspicion", () => {
  it.each([
    [0, 0, 30],
    [1, 2, 14],
    [2, 3, 4.81],
    [3, 4, -2],
    [4, 5, -3],
    [5, 10, -8],
  ])("B-1: with %d confirmations after %d s, %d s remain", (confirmations, elapsed, remaining) => {
    const timeout = suspicionTimeout(confirmations, bounds(3, 2_000, 30_000)) / 1_000;
    expect(timeout - elapsed).toBeCloseTo(remaining, 2);
  });

  it.each([
    [0, 2_000],
    [1, 1_250],
    [2, 810],
    [3, 500],
  ])("B-2: fires with %d confirmations after %d ms", (confirmations, fires) => {
    const suspicion = new Suspicion(bounds(3, 500, 2_000), nodeId("first"), 0);
    for (const name of names.slice(0, confirmations)) suspicion.confirm(name);
    expect(suspicion.deadline).toBeCloseTo(fires, -1);
  });

  it("B-3: repeats, the first accuser again, and confirmations beyond k change nothing", () => {
    const suspicion = new Suspicion(bounds(2, 500, 2_000), nodeId("first"), 0);
    expect(suspicion.confirm(nodeId("first"))).toBe(false);
    expect(suspicion.confirm(nodeId("a"))).toBe(true);
    expect(suspicion.confirm(nodeId("a"))).toBe(false);
    expect(suspicion.confirm(nodeId("b"))).toBe(true);
    const { deadline } = suspicion;
    expect(suspicion.confirm(nodeId("c"))).toBe(false);
    expect(suspicion.deadline).toBe(deadline);
  });

  it("B-4: without anyone to confirm it runs at its minimum from the start", () => {
    expect(new Suspicion(bounds(0, 500, 2_000), nodeId("x"), 100).deadline).toBe(600);
  });

  it("B-5: a confirmation that makes the remainder negative is due at once", () => {
    const suspicion = new Suspicion(bounds(1, 500, 10_000), nodeId("x"), 0);
    const now = 4_000;
    expect(suspicion.deadline).toBeGreaterThan(now);
    suspicion.confirm(nodeId("y"));
    expect(suspicion.deadline).toBeLessThan(now);
  });

  it.each([
    [2, 0, 500],
    [3, 0, 500],
    [4, 0, 500],
    [5, 0, 1_000],
    [6, 0, 1_000],
    [6, 1, 750],
    [6, 2, 604],
    [6, 3, 500],
    [6, 4, 500],
  ])("B-6: mult 5, max mult 2, probe 100 ms: %d members, %d confirmations: %d ms", (n, c, ms) => {
    const config = { suspicionMult: 5, suspicionMaxTimeoutMult: 2, probeIntervalMs: 100 };
    expect(suspicionTimeout(c, suspicionBounds(config, n))).toBeCloseTo(ms, 0);
  });

  it.each([
    [5, 1_000],
    [10, 1_000],
    [50, 1_698],
    [100, 2_000],
    [500, 2_698],
    [1_000, 3_000],
  ])("B-7: a third of the minimum for %d members is %d ms", (n, ms) => {
    expect(Math.floor(suspicionMinMs(3, n, 1_000) / 3)).toBe(ms);
  });

  // HFD-3, HFD-12
  it("never lengthens by a confirmation, in any order of confirmers", () => {
    const suspicion = new Suspicion(bounds(3, 500, 9_000), nodeId("x"), 0);
    let last = suspicion.deadline;
    for (const name of [...names, ...names]) {
      suspicion.confirm(name);
      expect(suspicion.deadline).toBeLessThanOrEqual(last);
      last = suspicion.deadline;
    }
  });
});
