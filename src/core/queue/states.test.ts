import { describe, expect, it } from "vitest";
import {
  checkHistory,
  EVENT_TYPES,
  type EventType,
  type HistoryEvent,
  isLegalMove,
  TASK_STATES,
  type TaskState,
} from "./states.ts";

const LEGAL: readonly (readonly [TaskState | null, TaskState, EventType])[] = [
  [null, "QUEUED", "created"],
  ["QUEUED", "RUNNING", "assigned"],
  ["QUEUED", "CANCELLED", "cancelled"],
  ["RUNNING", "SUCCEEDED", "completed"],
  ["RUNNING", "FAILED", "failed"],
  ["RUNNING", "QUEUED", "failed"],
  ["RUNNING", "QUEUED", "reassigned"],
  ["RUNNING", "CANCELLED", "cancelled"],
  ["FAILED", "QUEUED", "requeued"],
  ["CANCELLED", "QUEUED", "requeued"],
];

describe("task transitions", () => {
  it("allows exactly the transitions of the table, out of all states and events (TQ-20)", () => {
    const allowed: unknown[] = [];
    for (const from of [null, ...TASK_STATES]) {
      for (const to of TASK_STATES) {
        for (const by of EVENT_TYPES) if (isLegalMove(from, to, by)) allowed.push([from, to, by]);
      }
    }
    expect(allowed).toHaveLength(LEGAL.length);
    expect(allowed).toEqual(expect.arrayContaining([...LEGAL]));
  });
});

describe("checkHistory", () => {
  const event = (
    event_type: EventType,
    old_state: TaskState | null,
    new_state: TaskState,
    attempt_id = 1,
    epoch = 1,
  ): HistoryEvent => ({ event_type, old_state, new_state, attempt_id, epoch });
  const created = event("created", null, "QUEUED");
  const assigned = event("assigned", "QUEUED", "RUNNING");

  it("accepts a retry, a late result and a requeued dead letter", () => {
    const path = [
      created,
      assigned,
      event("started", "RUNNING", "RUNNING"),
      event("reassigned", "RUNNING", "QUEUED", 1, 2),
      event("assigned", "QUEUED", "RUNNING", 2, 2),
      event("late_result", "RUNNING", "RUNNING", 1, 2),
      event("failed", "RUNNING", "FAILED", 2, 2),
      event("requeued", "FAILED", "QUEUED", 3, 2),
      event("assigned", "QUEUED", "RUNNING", 3, 2),
      event("completed", "RUNNING", "SUCCEEDED", 3, 3),
    ];
    expect(checkHistory(path)).toBeUndefined();
  });

  it.each([
    ["nothing at all", [], /no created event/],
    [
      "two endings",
      [
        created,
        assigned,
        event("completed", "RUNNING", "SUCCEEDED"),
        event("cancelled", "SUCCEEDED", "CANCELLED"),
      ],
      /not a legal move/,
    ],
    ["a jump", [created, event("completed", "RUNNING", "SUCCEEDED")], /the task is QUEUED/],
    [
      "an older epoch after a newer",
      [{ ...created, epoch: 2 }, assigned],
      /epoch 1 writes after epoch 2/,
    ],
    [
      "a result of the wrong attempt",
      [created, assigned, event("completed", "RUNNING", "SUCCEEDED", 2)],
      /attempt 2, not 1/,
    ],
    [
      "a start while queued",
      [created, event("started", "QUEUED", "RUNNING")],
      /starts while QUEUED/,
    ],
  ] as const)("rejects %s", (_, path, message) => {
    expect(checkHistory(path)).toMatch(message);
  });
});
