import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { StallGate } from "./stall.ts";

let gate: StallGate;
beforeEach(() => {
  vi.useFakeTimers();
  gate = new StallGate();
});
afterEach(() => {
  gate.stop();
  vi.useRealTimers();
});

/** When, from now, an answer that arrives now is sent. */
function leavesAfter(limitMs: number): number | null {
  if (!gate.closed) return 0;
  let left: number | null = null;
  const startedAt = performance.now();
  gate.hold(() => {
    left = performance.now() - startedAt;
  });
  vi.advanceTimersByTime(limitMs);
  return left;
}

it("opens when the stall is over, not before", () => {
  gate.stallOnce(1_000);
  vi.advanceTimersByTime(400);
  expect(leavesAfter(599)).toBeNull();
  vi.advanceTimersByTime(1);
  expect(gate.closed).toBe(false);
});

it("keeps the longer of two stalls", () => {
  gate.stallOnce(1_000);
  gate.stallOnce(10);
  expect(leavesAfter(2_000)).toBe(1_000);
});

it("sends answers in order of arrival", () => {
  const left: number[] = [];
  gate.stallOnce(10);
  for (const id of [1, 2, 3]) gate.hold(() => left.push(id));
  vi.advanceTimersByTime(10);
  expect(left).toEqual([1, 2, 3]);
});

it("stalls once, later, on request", () => {
  gate.stallLater(50, 100);
  expect(leavesAfter(100)).toBe(0);
  vi.advanceTimersByTime(100);
  expect(leavesAfter(60)).toBe(50);
  vi.advanceTimersByTime(10_000);
  expect(gate.closed).toBe(false);
});

it("stalls repeatedly, and still opens between stalls that would overlap", () => {
  gate.stallRepeatedly(20, 5);
  vi.advanceTimersByTime(5);
  for (let round = 0; round < 3; round++) expect(leavesAfter(30)).toBeLessThanOrEqual(20);
});

it("sends everything when stopped", () => {
  gate.stallOnce(60_000);
  let left = false;
  gate.hold(() => {
    left = true;
  });
  gate.stop();
  expect([left, gate.closed]).toEqual([true, false]);
});
