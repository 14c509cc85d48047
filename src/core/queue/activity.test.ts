import { describe, expect, it } from "vitest";
import { ACTIVITY_TICK_MS, ACTIVITY_WINDOWS_MAX, Activity } from "./activity.ts";

const NOON = Date.UTC(2030, 0, 1, 12);

describe("activity of a queue over time", () => {
  it("counts tasks by outcome, and attempts that were retried", () => {
    const activity = new Activity();
    activity.begin(NOON);
    activity.moved("created", "QUEUED");
    activity.moved("created", "QUEUED");
    activity.moved("assigned", "RUNNING");
    activity.moved("failed", "QUEUED");
    activity.moved("assigned", "RUNNING");
    activity.moved("completed", "SUCCEEDED");
    activity.moved("failed", "FAILED");
    activity.moved("requeued", "QUEUED");
    activity.moved("cancelled", "CANCELLED");
    activity.tick(NOON + ACTIVITY_TICK_MS, { queued: 3, running: 1 });
    expect(activity.windows("hour")).toEqual([
      {
        from_ms: NOON,
        to_ms: NOON + ACTIVITY_TICK_MS,
        submitted: 2,
        assigned: 2,
        succeeded: 1,
        failed: 1,
        cancelled: 1,
        retried: 1,
        wait_p50_ms: null,
        wait_p95_ms: null,
        wait_max_ms: null,
        queued: 3,
        running: 1,
      },
    ]);
  });

  it("reports waiting times of a window, and of a long one from all its values", () => {
    const activity = new Activity();
    activity.begin(NOON);
    for (let tick = 1; tick <= 24; tick++) {
      for (let i = 0; i < 10; i++) activity.waited(tick);
      activity.moved("completed", "SUCCEEDED");
      activity.tick(NOON + tick * ACTIVITY_TICK_MS, null);
    }
    expect(activity.windows("hour")).toHaveLength(24);
    expect(activity.windows("hour")[2]?.wait_p95_ms).toBeCloseTo(3, 2);
    const [day, ...more] = activity.windows("day");
    expect(more).toEqual([]);
    expect(day?.succeeded).toBe(24);
    expect(day?.from_ms).toBe(NOON);
    expect(day?.wait_p50_ms).toBeCloseTo(12, 1);
    expect(day?.wait_max_ms).toBe(24);
    expect(day?.queued).toBeNull();
  });

  it("keeps a bounded number, and nothing from a time in which another node led", () => {
    const activity = new Activity();
    activity.begin(NOON);
    const ticks = ACTIVITY_WINDOWS_MAX + 40;
    for (let tick = 1; tick <= ticks; tick++) activity.tick(NOON + tick * ACTIVITY_TICK_MS, null);
    expect(activity.windows("hour")).toHaveLength(ACTIVITY_WINDOWS_MAX);
    const later = NOON + ticks * ACTIVITY_TICK_MS + 3_600_000;
    activity.begin(later);
    activity.tick(later + ACTIVITY_TICK_MS, null);
    const last = activity.windows("hour").slice(-2);
    expect(last.map(({ from_ms }) => from_ms)).toEqual([
      NOON + (ticks - 1) * ACTIVITY_TICK_MS,
      later,
    ]);
  });

  it("makes no overlapping windows when the clock is set back", () => {
    const activity = new Activity();
    activity.begin(NOON);
    activity.tick(NOON + ACTIVITY_TICK_MS, null);
    activity.moved("created", "QUEUED");
    activity.tick(NOON - 5_000, null);
    activity.tick(NOON - 5_000 + ACTIVITY_TICK_MS, null);
    const windows = activity.windows("hour");
    expect(windows).toHaveLength(2);
    expect(windows[1]?.submitted).toBe(0);
  });
});
