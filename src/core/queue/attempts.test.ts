import { describe, expect, it } from "vitest";
import { type AttemptEvent, attemptsOf } from "./attempts.ts";

const at = (second: number): string => `2030-01-01T00:00:0${second}.000Z`;

function event(
  event_type: AttemptEvent["event_type"],
  attempt_id: number,
  second: number,
  details: unknown = null,
): AttemptEvent {
  return { event_type, attempt_id, node_id: "a", timestamp: at(second), details };
}

describe("attempts of a task", () => {
  it("reports the error of every attempt, whichever statement recorded it", () => {
    const attempts = attemptsOf([
      event("created", 1, 0),
      event("assigned", 1, 1),
      event("started", 1, 2),
      event("failed", 1, 3, { reason: "failed", retry: true, error: { message: "first" } }),
      event("assigned", 2, 4),
      event("reassigned", 2, 5, { reason: "released", retry: true, error: null }),
      event("assigned", 3, 6),
      event("late_result", 2, 6, { lease_token: "x" }),
      event("started", 3, 7),
      event("failed", 3, 8, { message: "last", name: "NotRetryable" }),
    ]);
    expect(attempts).toEqual([
      {
        ...{ attempt_id: 1, node_id: "a", assigned_at: at(1), started_at: at(2), ended_at: at(3) },
        ...{ outcome: "failed", error: { message: "first" } },
      },
      {
        ...{ attempt_id: 2, node_id: "a", assigned_at: at(4), started_at: null, ended_at: at(5) },
        ...{ outcome: "returned", error: { message: "its node handed it back unfinished" } },
      },
      {
        ...{ attempt_id: 3, node_id: "a", assigned_at: at(6), started_at: at(7), ended_at: at(8) },
        ...{ outcome: "failed", error: { message: "last", name: "NotRetryable" } },
      },
    ]);
  });

  it("skips an attempt that was never assigned, and ends one with its cancellation", () => {
    expect(attemptsOf([event("created", 1, 0), event("cancelled", 1, 1)])).toEqual([]);
    const [running] = attemptsOf([event("created", 1, 0), event("assigned", 1, 1)]);
    expect(running).toMatchObject({ outcome: "running", ended_at: null, error: null });
    const [cancelled] = attemptsOf([
      event("assigned", 1, 1),
      event("cancelled", 1, 2, { reason: "not needed" }),
    ]);
    expect(cancelled).toMatchObject({ outcome: "cancelled", error: { message: "not needed" } });
    const [done] = attemptsOf([event("assigned", 1, 1), event("completed", 1, 2)]);
    expect(done).toMatchObject({ outcome: "completed", ended_at: at(2), error: null });
  });
});
