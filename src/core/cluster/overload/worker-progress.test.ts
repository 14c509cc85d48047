import { describe, expect, it } from "vitest";
import { WorkerProgress } from "./worker-progress.ts";

/** A worker that reports every half second; `perSecond`: progress of each execution. */
function watch(
  worker: WorkerProgress,
  from: number,
  to: number,
  { advance = 0, perSecond = 10, running = 1 }: Partial<Record<string, number>> = {},
): { readonly bands: Set<string>; readonly advance: number } {
  const bands = new Set<string>();
  let done = advance;
  for (let at = from; at <= to; at += 500) {
    done += (perSecond * running) / 2;
    worker.record({ running, advance: done }, at);
    bands.add(worker.band);
  }
  return { bands, advance: done };
}

describe("the progress of a worker (AD-19)", () => {
  it("is normal throughout ten minutes of one load at a constant rate (AD-19.13)", () => {
    const worker = new WorkerProgress(0);
    const { bands } = watch(worker, 0, 600_000);
    expect([...bands]).toEqual(["normal"]);
    expect(worker.extensions.evictAt()).toBe(null);
  });

  it("drains a worker whose load stands still within an interval, and gives it up after the deadline (AD-19.7)", () => {
    const worker = new WorkerProgress(0);
    const { advance } = watch(worker, 0, 30_000);
    const { bands } = watch(worker, 30_500, 40_000, { advance, perSecond: 0 });
    expect([...bands].at(-1)).toBe("stuck");
    watch(worker, 40_500, 69_500, { advance, perSecond: 0 });
    expect(worker.isOverdue(69_999)).toBe(false);
    // 30 s after the last advance, and 10 s of grace.
    expect(worker.isOverdue(70_000)).toBe(true);
  });

  it("is never stuck before it has done anything, or while idle (C10-4)", () => {
    const worker = new WorkerProgress(0);
    expect([...watch(worker, 0, 60_000, { perSecond: 0 }).bands]).toEqual(["normal"]);
    const { advance } = watch(worker, 60_500, 90_000);
    expect([...watch(worker, 90_500, 200_000, { advance, running: 0 }).bands]).toEqual(["idle"]);
  });

  it.each([
    [9, "normal"],
    [5, "slow"],
    [1, "degraded"],
  ])(
    "compares with its own past: %i instead of 10 a second is %s (AD-19.12, C10-4)",
    (perSecond, band) => {
      const worker = new WorkerProgress(0);
      const { advance } = watch(worker, 0, 60_000);
      const { bands } = watch(worker, 60_500, 80_000, { advance, perSecond });
      expect([...bands].at(-1)).toBe(band);
    },
  );

  it("does not mistake another number of executions for another speed", () => {
    const worker = new WorkerProgress(0);
    const { advance } = watch(worker, 0, 33_000, { running: 1 });
    expect([...watch(worker, 33_500, 90_000, { advance, running: 4 }).bands]).toEqual(["normal"]);
  });

  it("ends the wait with the first advance, and forgets grants after recovery (AD-26.10)", () => {
    const worker = new WorkerProgress(0);
    const { advance } = watch(worker, 0, 30_000);
    watch(worker, 30_500, 50_000, { advance, perSecond: 0 });
    const request = { number: 1, reason: "long_workflow", progress: 0.5 } as const;
    worker.extensions.request({ ...request, estimatedMs: 0, running: 1 }, 50_000, false);
    expect(worker.extensions.evictAt()).toBe(30_000 + 45_000 + 10_000);
    expect(worker.record({ running: 1, advance: advance + 1 }, 50_500)).toBe(true);
    expect([worker.band, worker.extensions.evictAt()]).toEqual(["degraded", null]);
    expect(worker.extensions.count).toBe(1);
    watch(worker, 51_000, 75_000, { advance: advance + 1 });
    expect([worker.band, worker.extensions.count]).toEqual(["normal", 0]);
  });

  it("waits for a worker after a pause of its own", () => {
    const worker = new WorkerProgress(0);
    const { advance } = watch(worker, 0, 30_000);
    worker.record({ running: 1, advance }, 100_000);
    expect(worker.isOverdue(100_000)).toBe(false);
    expect(worker.extensions.evictAt()).toBe(130_000);
    worker.record({ running: 1, advance: advance + 700 }, 100_001);
    expect(worker.isStuck).toBe(false);
  });
});
