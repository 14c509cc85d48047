import { describe, expect, it } from "vitest";
import type { JobEvent, RunEvent } from "./events.ts";
import { applyEvent } from "./fold.ts";
import { initialState, type JobState } from "./job-state.ts";
import { SET_UP_VALUE_BYTES_MAX } from "./limits.ts";
import { event, JOB } from "./testing/events.ts";

function fold(events: readonly JobEvent[]): JobState {
  return events.reduce(
    (state, one) => applyEvent(state, one, state.appliedSeq + 1).state,
    initialState(JOB),
  );
}

const created = event("JobCreated");
const dispatched = event("JobDispatched");
const accepted = event("JobAccepted");
const started = event("JobStarted");
const running = [created, dispatched, accepted, started];
const roads: Readonly<Record<string, readonly JobEvent[]>> = {
  CREATED: [created],
  QUEUED: [created, event("JobQueued")],
  DISPATCHED: [created, dispatched],
  ACCEPTED: [created, dispatched, accepted],
  RUNNING: running,
  PAUSED: [...running, event("JobPaused")],
  CANCELLING: [...running, event("JobCancellationRequested")],
  COMPLETED: [...running, event("JobCompleted")],
};

describe("the table of a run", () => {
  const columns: readonly RunEvent["kind"][] = [
    "JobQueued",
    "JobDispatched",
    "JobSetUpValue",
    "JobStarted",
    "JobPaused",
    "JobResumed",
    "JobScaled",
    "JobAborted",
    "JobDcResult",
  ];
  const over = "ALREADY_STARTED";
  const still = "NOT_RUNNING";
  const stop = "BEING_CANCELLED";
  const late = "alreadyTerminal";
  const table: readonly (readonly [string, readonly string[]])[] = [
    [
      "CREATED",
      ["→QUEUED", "→DISPATCHED", "NOT_DISPATCHED", "NOT_ACCEPTED", still, still, still].concat([
        "→CANCELLING",
        "NOT_STARTED",
      ]),
    ],
    [
      "QUEUED",
      ["noop", "→DISPATCHED", "NOT_DISPATCHED", "NOT_ACCEPTED", still, still, still].concat([
        "→CANCELLING",
        "NOT_STARTED",
      ]),
    ],
    [
      "DISPATCHED",
      ["→QUEUED", "→DISPATCHED", "→DISPATCHED", "NOT_ACCEPTED", still, still, still].concat([
        "→CANCELLING",
        "NOT_STARTED",
      ]),
    ],
    [
      "ACCEPTED",
      ["→QUEUED", "→ACCEPTED", "→ACCEPTED", "→RUNNING", still, still, still].concat([
        "→CANCELLING",
        "NOT_STARTED",
      ]),
    ],
    [
      "RUNNING",
      [over, over, "→RUNNING", over, "→PAUSED", "noop", "→RUNNING", "→CANCELLING", "→RUNNING"],
    ],
    [
      "PAUSED",
      [over, over, "→PAUSED", over, "noop", "→RUNNING", "→PAUSED", "→CANCELLING", "→PAUSED"],
    ],
    ["CANCELLING", [stop, stop, stop, stop, stop, stop, stop, "→CANCELLING", "→CANCELLING"]],
    ["COMPLETED", ["noop", "noop", "noop", "noop", late, late, late, late, "noop"]],
  ];
  const cells = table.flatMap(([status, row]) =>
    row.map((cell, at) => [status, columns[at] as RunEvent["kind"], cell] as const),
  );

  it.each(cells)("%s + %s is %s", (status, kind, cell) => {
    const before = fold(roads[status] ?? []);
    expect(before.status).toBe(status);
    const { state, outcome } = applyEvent(before, event(kind), before.appliedSeq + 1);
    if (cell.startsWith("→"))
      expect([outcome.kind, state.status]).toEqual(["applied", cell.slice(1)]);
    else expect(outcome.kind === "rejected" ? outcome.reason : outcome.kind).toBe(cell);
  });

  it.each(columns)("before its creation %s is rejected", (kind) => {
    const { outcome } = applyEvent(initialState(JOB), event(kind), 0);
    expect(outcome).toEqual({ kind: "rejected", reason: "JOB_ABSENT" });
  });
});

describe("a run", () => {
  it("is queued again until it starts, and then asks accepted datacenters again", () => {
    const again = fold([created, dispatched, accepted, event("JobQueued")]);
    expect(again).toMatchObject({ status: "QUEUED", accepted: [], run: { dispatched: [] } });
    const once = applyEvent(again, event("JobStarted"), 9);
    expect(once.outcome).toEqual({ kind: "rejected", reason: "NOT_ACCEPTED" });
    const rest = [
      event("JobDispatched", { attempt: 2 }),
      event("JobAccepted"),
      event("JobStarted"),
    ];
    const on = rest.reduce(
      (state, one) => applyEvent(state, one, state.appliedSeq + 1).state,
      again,
    );
    expect(on).toMatchObject({ status: "RUNNING", run: { dispatched: [{ attempt: 2 }] } });
  });

  it("starts once, and only where every share was accepted", () => {
    const shares = [
      { dcId: "a", cores: 1 },
      { dcId: "b", cores: 1 },
    ];
    const ready = fold([created, dispatched, accepted]);
    const both = applyEvent(ready, event("JobStarted", { shares }), 9);
    expect(both.outcome).toMatchObject({ reason: "NOT_ACCEPTED" });
    const first = fold(running);
    const second = applyEvent(first, event("JobStarted", { startAtMs: 1 }), 9);
    expect(second.outcome).toMatchObject({ reason: "ALREADY_STARTED" });
    expect(second.state.run.started).toBe(first.run.started);
  });

  it("keeps one value per workflow, and so much in all", () => {
    const value = new Uint8Array(SET_UP_VALUE_BYTES_MAX);
    let state = fold(running);
    const outcomes = ["a", "a", "b", "c", "d", "e"].map((workflow) => {
      const applied = applyEvent(
        state,
        event("JobSetUpValue", { workflow, value }),
        state.appliedSeq + 1,
      );
      state = applied.state;
      return applied.outcome.kind === "rejected" ? applied.outcome.reason : applied.outcome.kind;
    });
    expect(outcomes).toEqual([
      "applied",
      "SET_UP_TWICE",
      "applied",
      "applied",
      "applied",
      "TOO_MUCH_SET_UP",
    ]);
  });

  it("takes the result of a datacenter that has a share, of two the one of the later owner", () => {
    const state = fold([...running, event("JobDcResult", { fenceToken: 3, completed: 7 })]);
    const older = applyEvent(state, event("JobDcResult", { fenceToken: 2, completed: 8 }), 9);
    expect(older.outcome.kind).toBe("noop");
    const newer = applyEvent(state, event("JobDcResult", { fenceToken: 4, completed: 9 }), 9);
    expect(newer.state.run.results).toMatchObject([{ dcId: "a", completed: 9 }]);
    const other = applyEvent(state, event("JobDcResult", { dcId: "z" }), 9);
    expect(other.outcome).toMatchObject({ reason: "NOT_DISPATCHED" });
  });

  it("is aborted once, also while it is being cancelled, and ends as cancelled", () => {
    const cancelling = fold([...running, event("JobCancellationRequested", { reason: "first" })]);
    const aborted = applyEvent(cancelling, event("JobAborted"), 9);
    expect(aborted.state).toMatchObject({
      run: { aborted: true },
      cancellation: { reason: "first" },
    });
    expect(applyEvent(aborted.state, event("JobAborted"), 10).outcome.kind).toBe("noop");
    const acks = ["a", "b"].map((dcId) => event("JobCancellationAcked", { dcId }));
    expect(fold([...running, event("JobAborted"), ...acks]).status).toBe("CANCELLED");
  });
});
