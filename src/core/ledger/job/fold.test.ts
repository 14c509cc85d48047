import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EventId, JobEvent, JobEventKind } from "./events.ts";
import { advanceSeq, applyEvent } from "./fold.ts";
import { initialState, isTerminal, type JobState } from "./job-state.ts";
import { FORGOTTEN_EVENTS_MAX, JOB_DCS_MAX, TRAIL_EVENTS_MAX } from "./limits.ts";
import { decodeJobState, encodeJobState } from "./state-codec.ts";
import { anyStream, event, JOB, stamp } from "./testing/events.ts";
import { trailEntries } from "./trail.ts";

function fold(events: readonly JobEvent[], start: JobState = initialState(JOB)): JobState {
  let state = start;
  for (const one of events) state = applyEvent(state, one, state.appliedSeq + 1).state;
  return state;
}

/** Job state as a reader sees it: without log indexes and hash. */
function seen({ appliedSeq, changedSeq, chain, trail, ...rest }: JobState): unknown {
  return rest;
}

const created = event("JobCreated");
const accepted = event("JobAccepted");
const cancel = event("JobCancellationRequested");
const roads: Readonly<Record<string, readonly JobEvent[]>> = {
  CREATED: [created],
  ACCEPTED: [created, accepted],
  CANCELLING: [created, cancel],
  COMPLETED: [created, accepted, event("JobCompleted")],
  FAILED: [created, event("JobFailed")],
  TIMED_OUT: [created, event("JobTimedOut")],
  CANCELLED: [created, cancel, event("JobCompleted")],
};

describe("the table of states and events", () => {
  const columns: readonly JobEventKind[] = [
    "JobAccepted",
    "JobCancellationRequested",
    "JobCancellationAcked",
    "JobTimedOut",
    "JobFailed",
    "JobCompleted",
  ];
  const ended = ["noop", "alreadyTerminal", "noop", "noop", "noop", "noop"];
  const table: readonly (readonly [string, readonly string[]])[] = [
    [
      "CREATED",
      ["→ACCEPTED", "→CANCELLING", "NOT_CANCELLING", "→TIMED_OUT", "→FAILED", "NOT_ACCEPTED"],
    ],
    [
      "ACCEPTED",
      ["→ACCEPTED", "→CANCELLING", "NOT_CANCELLING", "→TIMED_OUT", "→FAILED", "→COMPLETED"],
    ],
    [
      "CANCELLING",
      ["→CANCELLING", "noop", "→CANCELLING", "→CANCELLED", "→CANCELLING", "→CANCELLED"],
    ],
    ["COMPLETED", ended],
    ["FAILED", ended],
    ["TIMED_OUT", ended],
    ["CANCELLED", ended],
  ];
  const cells = table.flatMap(([status, row]) =>
    row.map((cell, at) => [status, columns[at] as JobEventKind, cell] as const),
  );

  it.each(cells)("%s + %s is %s", (status, kind, cell) => {
    const before = fold(roads[status] ?? []);
    expect(before.status).toBe(status);
    // Another datacenter than the road used, so that "stay" cells have something to note.
    const body = kind === "JobAccepted" || kind === "JobCancellationAcked" ? { dcId: "b" } : {};
    const { state, outcome } = applyEvent(before, event(kind, body), before.appliedSeq + 1);
    if (cell.startsWith("→")) {
      expect([outcome.kind, state.status]).toEqual(["applied", cell.slice(1)]);
      return;
    }
    expect(outcome.kind === "rejected" ? outcome.reason : outcome.kind).toBe(cell);
    const { fenceToken, hlc } = state;
    expect(seen(state)).toEqual({ ...(seen(before) as object), fenceToken, hlc });
  });

  it.each(columns)("before its creation %s is rejected", (kind) => {
    const { outcome, state } = applyEvent(initialState(JOB), event(kind), 0);
    expect(outcome).toEqual({ kind: "rejected", reason: "JOB_ABSENT" });
    expect(state.status).toBe("ABSENT");
  });

  it("rejects a second creation, another job's event, and progress in every state (EVT-3)", () => {
    for (const road of Object.values(roads)) {
      const state = fold(road);
      const reasonOf = (one: JobEvent): unknown => applyEvent(state, one, 99).outcome;
      expect(reasonOf(event("JobCreated"))).toMatchObject({ reason: "ALREADY_CREATED" });
      expect(reasonOf(event("JobProgressReported"))).toMatchObject({ reason: "DATA_PLANE_EVENT" });
      const other = event("JobAccepted", { jobId: "use1-1-g-00002" as typeof JOB });
      expect(reasonOf(other)).toMatchObject({ reason: "OTHER_JOB" });
    }
  });
});

describe("golden folds", () => {
  it("created, accepted by both, completed", () => {
    // Later than every stamp that other tests of this process have made.
    const end = event("JobCompleted", { hlc: stamp(7_000_000_000) });
    const state = fold([
      created,
      accepted,
      event("JobAccepted", { dcId: "b", workerCount: 5 }),
      end,
    ]);
    expect(state).toMatchObject({
      status: "COMPLETED",
      accepted: [
        { dcId: "a", workerCount: 3 },
        { dcId: "b", workerCount: 5 },
      ],
      end: {
        kind: "completed",
        finalStatus: "passed",
        aggregateMetrics: end.aggregateMetrics,
      },
      endedAt: end.hlc,
      hlc: end.hlc,
      appliedSeq: 3,
    });
  });

  it("cancelled when every assigned datacenter acked, a failed one counting as acked", () => {
    const one = fold([created, accepted, cancel, event("JobCancellationAcked", { dcId: "b" })]);
    expect(one).toMatchObject({ status: "CANCELLING", cancellation: { ackedDcs: ["b"] } });
    const both = fold([event("JobFailed", { failedDc: "a" })], one);
    expect(both).toMatchObject({
      status: "CANCELLED",
      cancellation: {
        eventId: cancel.eventId,
        requestor: "alice",
        ackedDcs: ["b", "a"],
        workflowsCancelled: 2,
      },
      end: { kind: "cancelled", unackedDcs: [] },
    });
  });

  it("a timeout while cancelling ends as CANCELLED and lists the datacenters that had not acked", () => {
    const state = fold([created, cancel, event("JobCancellationAcked"), event("JobTimedOut")]);
    expect(state).toMatchObject({
      status: "CANCELLED",
      end: { kind: "cancelled", unackedDcs: ["b"] },
    });
  });

  it("a datacenter that was not assigned but accepted is waited for when cancelling", () => {
    const late = event("JobAccepted", { dcId: "c" });
    const acks = ["a", "b"].map((dcId) => event("JobCancellationAcked", { dcId }));
    const waiting = fold([created, late, cancel, ...acks]);
    expect(waiting.status).toBe("CANCELLING");
    expect(fold([event("JobCancellationAcked", { dcId: "c" })], waiting).status).toBe("CANCELLED");
  });

  it("of two acceptances of one datacenter the higher fence wins, in either order", () => {
    const low = event("JobAccepted", { fenceToken: 4, workerCount: 1 });
    const high = event("JobAccepted", { fenceToken: 5, workerCount: 9, hlc: stamp(1) });
    for (const order of [
      [low, high],
      [high, low],
    ]) {
      expect(fold([created, ...order]).accepted).toMatchObject([{ dcId: "a", workerCount: 9 }]);
    }
  });

  it("bounds the datacenters that may join", () => {
    const assignedDcs = Array.from({ length: JOB_DCS_MAX }, (_, at) => `dc${at}`);
    const full = fold([event("JobCreated", { assignedDcs })]);
    expect(applyEvent(full, event("JobAccepted", { dcId: "more" }), 1).outcome).toEqual({
      kind: "rejected",
      reason: "TOO_MANY_DCS",
    });
  });
});

describe("any stream of events", () => {
  it("never leaves a terminal state, and each event has one outcome", () => {
    fc.assert(
      fc.property(anyStream, (events) => {
        let state = initialState(JOB);
        for (const [seq, one] of events.entries()) {
          const before = state;
          state = applyEvent(state, one, seq).state;
          if (!isTerminal(before.status)) continue;
          expect(state.status).toBe(before.status);
          expect(state.end).toBe(before.end);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("folds to the same job with duplicates put in anywhere later (EVT-2)", () => {
    const again = fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(anyStream, again, (stream, repeats) => {
        // Conditions on a log index depend on the entries inserted before them.
        const events = stream.map(({ condition, ...one }) => one as JobEvent);
        const doubled = [...events];
        for (const [what, where] of repeats) {
          if (events.length === 0) return;
          const one = events[what % events.length] as JobEvent;
          const first = doubled.indexOf(one);
          const at = first + 1 + (where % (doubled.length - first));
          doubled.splice(at, 0, one);
        }
        expect(seen(fold(doubled))).toEqual(seen(fold(events)));
      }),
      { numRuns: 500 },
    );
  });

  it("folds alike from any snapshot taken on the way (EVT-1, EVT-4)", () => {
    fc.assert(
      fc.property(anyStream, fc.nat(), (events, cut) => {
        const at = cut % (events.length + 1);
        const decoded = decodeJobState(encodeJobState(fold(events.slice(0, at))));
        if (!decoded.ok) throw new Error(decoded.problem);
        expect(decoded.value).toEqual(fold(events.slice(0, at)));
        expect(fold(events.slice(at), decoded.value)).toEqual(fold(events));
      }),
      { numRuns: 300 },
    );
  });

  it("once a cancel is committed ends CANCELLED or not at all (LEDG-7)", () => {
    fc.assert(
      fc.property(anyStream, (events) => {
        const { status } = fold(events, fold([created, cancel]));
        expect(["CANCELLING", "CANCELLED"]).toContain(status);
      }),
    );
  });
});

describe("trail and chain", () => {
  it("answers a repetition with what the event did the first time", () => {
    const state = fold([created, event("JobCompleted", { eventId: "x" as EventId })]);
    const { outcome } = applyEvent(state, event("JobAccepted", { eventId: "x" as EventId }), 2);
    expect(outcome).toMatchObject({
      kind: "duplicate",
      first: { seq: 1, kind: "JobCompleted", outcome: "rejected", reason: "NOT_ACCEPTED" },
    });
  });

  it("stays bounded, keeps the newest, and survives a snapshot when full", () => {
    const many = Array.from({ length: 3 * TRAIL_EVENTS_MAX }, () => event("JobCancellationAcked"));
    const state = fold([created, accepted, ...many]);
    const ids = [...trailEntries(state.trail)].map(({ eventId }) => eventId);
    expect(ids.length).toBeLessThanOrEqual(TRAIL_EVENTS_MAX);
    expect(ids.length).toBeGreaterThan(TRAIL_EVENTS_MAX - 64);
    expect(ids).toEqual(many.slice(-ids.length).map(({ eventId }) => eventId));
    expect(decodeJobState(encodeJobState(state))).toEqual({ ok: true, value: state });
    expect(seen(fold([accepted], state))).toEqual(seen(state));
  });

  it("knows an event again however many came since, and changes nothing (EVT-2)", () => {
    const eight = event("JobAccepted", { eventId: "eight" as EventId, workerCount: 8 });
    const four = event("JobAccepted", { eventId: "four" as EventId, workerCount: 4 });
    const others = Array.from({ length: 1_100 }, () => event("JobCancellationAcked"));
    const state = fold([created, eight, four, ...others]);
    const again = applyEvent(state, { ...eight, hlc: four.hlc }, state.appliedSeq + 1);
    expect(again.outcome).toEqual({ kind: "repeated" });
    expect(seen(again.state)).toEqual(seen(state));
  });

  it("takes nothing but its end after more events than it can know again", () => {
    const count = FORGOTTEN_EVENTS_MAX + TRAIL_EVENTS_MAX;
    let state = fold([created, accepted]);
    for (let at = 0; at < count; at++) {
      state = applyEvent(state, event("JobCancellationAcked"), state.appliedSeq + 1).state;
    }
    const next = event("JobAccepted", { workerCount: 9 });
    const full = applyEvent(state, next, state.appliedSeq + 1);
    expect(full.outcome).toEqual({ kind: "rejected", reason: "TOO_MANY_EVENTS" });
    expect(decodeJobState(encodeJobState(full.state))).toEqual({ ok: true, value: full.state });
    const end = applyEvent(full.state, event("JobCompleted"), full.state.appliedSeq + 1);
    expect(end.state.status).toBe("COMPLETED");
  });

  it("has equal chains exactly for equal histories", () => {
    fc.assert(
      fc.property(anyStream, anyStream, (one, other) => {
        const chains = [one, other].map((events) =>
          Buffer.from(fold(events).chain).toString("hex"),
        );
        const same = one.length === other.length && one.every((it, at) => it === other[at]);
        expect(chains[0] === chains[1]).toBe(same || (one.length === 0 && other.length === 0));
      }),
      { numRuns: 100 },
    );
  });

  it("passes over places of the log that hold no event, and never goes back", () => {
    const state = advanceSeq(fold([created]), 4);
    expect(applyEvent(state, accepted, 5).state.appliedSeq).toBe(5);
    expect(() => applyEvent(state, accepted, 4)).toThrow("folded once");
  });
});

describe("a state of the version before", () => {
  it("is read, and knows its last change from its trail", () => {
    const state = fold([created, accepted, event("JobCancellationAcked")]);
    const bytes = encodeJobState(state);
    expect(state).toMatchObject({ appliedSeq: 2, changedSeq: 1 });
    // seq + 1 is 3 and changed + 1 is 2, before 32 bytes of chain.
    const at = bytes.findIndex((_, i) => bytes[i] === 3 && sameAt(bytes, i + 2, state.chain));
    // The state ends with the number of forgotten events, in one byte, and a job that does not run, in seven.
    const before = Uint8Array.of(1, ...bytes.slice(1, at + 1), ...bytes.slice(at + 2, -8));
    expect(decodeJobState(before)).toEqual({ ok: true, value: state });
    const third = Uint8Array.of(3, ...bytes.slice(1, -7));
    expect(decodeJobState(third)).toEqual({ ok: true, value: state });
  });
});

function sameAt(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  return part.every((byte, i) => bytes[at + i] === byte);
}

describe("state codec", () => {
  it("answers any bytes with a state or a problem", () => {
    const base = encodeJobState(fold([created, accepted, cancel]));
    const flips = fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(flips, fc.nat(base.length), (changes, cut) => {
        const bytes = base.slice();
        for (const [at, byte] of changes) bytes[at] = byte;
        const decoded = decodeJobState(cut % 4 === 0 ? bytes.subarray(0, cut) : bytes);
        if (!decoded.ok) expect(decoded.problem).not.toBe("");
        else expect(() => encodeJobState(decoded.value)).not.toThrow();
      }),
      { numRuns: 3_000 },
    );
  });

  it("refuses truncations, other versions, and bytes too many", () => {
    const bytes = encodeJobState(fold([created]));
    for (let cut = 0; cut < bytes.length; cut++) {
      expect(decodeJobState(bytes.subarray(0, cut)).ok).toBe(false);
    }
    expect(decodeJobState(new Uint8Array([5]))).toMatchObject({
      problem: "state version 5; this build reads 1, 2, 3, 4",
    });
    expect(decodeJobState(new Uint8Array([...bytes, 1]))).toMatchObject({
      problem: "1 bytes too many",
    });
  });
});
