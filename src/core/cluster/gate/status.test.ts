import { expect, it } from "vitest";
import type { EventId, JobEventKind } from "../../ledger/job/events.ts";
import { initialState, type JobState } from "../../ledger/job/job-state.ts";
import { TRAIL_EVENTS_MAX } from "../../ledger/job/limits.ts";
import { JOB, stamp } from "../../ledger/job/testing/events.ts";
import { addToTrail } from "../../ledger/job/trail.ts";
import { nextAttempt } from "./status.ts";

function after(state: JobState, kind: JobEventKind): JobState {
  const seq = state.appliedSeq + 1;
  const entry = { seq, eventId: `e${seq}` as EventId, kind, hlc: stamp(seq) };
  const trail = addToTrail(state.trail, { ...entry, outcome: "applied", reason: null });
  return { ...state, appliedSeq: seq, trail };
}

it("numbers parts of a job uniquely, even if its log has forgotten the first of them", () => {
  let state = initialState(JOB);
  const numbers: number[] = [];
  for (let times = 0; times < 2 * TRAIL_EVENTS_MAX; times++) {
    numbers.push(nextAttempt(state));
    state = after(after(state, "JobDispatched"), "JobQueued");
  }
  expect(numbers.slice(0, 3)).toEqual([1, 2, 3]);
  expect(new Set(numbers).size).toBe(numbers.length);
});
