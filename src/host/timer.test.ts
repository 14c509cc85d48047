import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startTimer, within } from "./timer.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

it("fires a timer once, and not after it was cancelled", () => {
  let fired = 0;
  startTimer(10, () => fired++);
  startTimer(10, () => fired++).cancel();
  vi.advanceTimersByTime(100);
  expect(fired).toBe(1);
});

it("passes a result or an error through a time limit and leaves no timer behind", async () => {
  const late = (): Error => new Error("late");
  expect(await within(Promise.resolve(1), 10, late)).toBe(1);
  await expect(within(Promise.reject(new Error("no")), 10, late)).rejects.toThrow("no");
  expect(vi.getTimerCount()).toBe(0);
  const stuck = expect(within(new Promise(() => undefined), 10, late)).rejects.toThrow("late");
  await vi.advanceTimersByTimeAsync(10);
  await stuck;
});
