import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HLC_WALL_MS_MAX } from "../../base/hlc.ts";
import { decodeEvent, EVENT_VERSION, encodeEvent } from "./event-codec.ts";
import { EVENT_KINDS, EVENT_TYPES, type EventId, type JobEvent, problemOf } from "./events.ts";
import { applyEvent } from "./fold.ts";
import {
  formatJobId,
  GATE_ID_CHARACTERS_MAX,
  type JobId,
  REGION_CODE_CHARACTERS_MAX,
} from "./job-id.ts";
import { initialState } from "./job-state.ts";
import { DC_ID_BYTES_MAX, EVENT_BYTES_MAX, JOB_DCS_MAX, JOB_SPEC_BYTES_MAX } from "./limits.ts";
import { decodeJobState, encodeJobState } from "./state-codec.ts";
import { anyEvent, DIGEST, event, stamp } from "./testing/events.ts";

describe("event codec", () => {
  it("keeps its encoding stable", () => {
    const cancel = event("JobCancellationRequested", {
      eventId: "e1" as EventId,
      fenceToken: 300,
      hlc: stamp(1_704_931_200_000, 2, "g1"),
      reason: "stop",
      requestor: "ops",
    });
    expect(Buffer.from(encodeEvent(cancel)).toString("hex")).toBe(
      "0104" +
        "1f757365312d313730343933313230303030302d6761746534322d3030303031" +
        "026531" +
        "ac02" +
        "8098c6aecf31" +
        "02" +
        "026731" +
        "0473746f70" +
        "036f7073",
    );
  });

  it("writes a condition before the fields, in its own version", () => {
    const plain = event("JobFailed");
    const bytes = encodeEvent({ ...plain, condition: { ifSeq: 300, ifFence: 7 } });
    const fields = encodeEvent(plain);
    const at = fields.length - "broke".length - "a".length - 2;
    expect([...bytes]).toEqual([2, ...fields.slice(1, at), 3, 0xac, 0x02, 7, ...fields.slice(at)]);
  });

  it("numbers the kinds in the order they came, without gaps", () => {
    expect(EVENT_KINDS.map((kind) => EVENT_TYPES[kind])).toEqual(
      EVENT_KINDS.map((_, at) => at + 1),
    );
  });

  it.each([
    ["JobQueued", "0d6e6f20636f7265732066726565"],
    ["JobDispatched", "01610401DIGEST"],
    ["JobSetUpValue", "036275790105"],
    ["JobStarted", "8098c6aecf31DIGEST01016104"],
    ["JobPaused", "05616c696365"],
    ["JobResumed", "05616c696365"],
    ["JobScaled", "dc0b05616c696365"],
    ["JobAborted", "036e6f7705616c696365"],
    ["JobDcResult", "016106706173736564DIGESTd2096401"],
  ] as const)("writes the fields of %s as it always has", (kind, fields) => {
    const hlc = stamp(0, 0, "g1");
    const one = event(kind, { eventId: "e1" as EventId, fenceToken: 1, hlc } as never);
    const head = `01${EVENT_TYPES[kind].toString(16).padStart(2, "0")}`;
    const job = "1f757365312d313730343933313230303030302d6761746534322d3030303031";
    const digest = Buffer.from(DIGEST).toString("hex");
    expect(Buffer.from(encodeEvent(one)).toString("hex")).toBe(
      `${head}${job}026531010000026731${fields.replace("DIGEST", digest)}`,
    );
  });

  it("gives back every event, and one event has one encoding", () => {
    fc.assert(
      fc.property(anyEvent, (one) => {
        const bytes = encodeEvent(one);
        const decoded = decodeEvent(bytes);
        expect(decoded).toEqual({ ok: true, value: one });
        if (decoded.ok) expect(encodeEvent(decoded.value)).toEqual(bytes);
      }),
      { numRuns: 500 },
    );
  });

  it("keeps an event at all its limits", () => {
    const assignedDcs = Array.from({ length: JOB_DCS_MAX }, (_, at) =>
      String(at).padStart(DC_ID_BYTES_MAX, "x"),
    );
    const largest = event("JobCreated", { spec: new Uint8Array(JOB_SPEC_BYTES_MAX), assignedDcs });
    const bytes = encodeEvent(largest);
    expect(bytes.length).toBeLessThanOrEqual(EVENT_BYTES_MAX);
    expect(decodeEvent(bytes).ok).toBe(true);
  });

  it("keeps the creation of a job of the node with the longest name", () => {
    const jobId = formatJobId({
      region: "r".repeat(REGION_CODE_CHARACTERS_MAX),
      gate: "n".repeat(GATE_ID_CHARACTERS_MAX),
      timestampMs: HLC_WALL_MS_MAX,
      sequence: 99_999,
    });
    const created = event("JobCreated", { jobId, eventId: `create/${jobId}` as EventId });
    expect(decodeEvent(encodeEvent(created))).toEqual({ ok: true, value: created });
  });

  it("answers any bytes with an event it can write again, or with a problem", () => {
    const mutated = fc
      .tuple(anyEvent, fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }), fc.nat(400))
      .map(([one, flips, cut]) => {
        const bytes = encodeEvent(one).slice();
        for (const [at, byte] of flips) if (at < bytes.length) bytes[at] = byte;
        return cut % 3 === 0 ? bytes.subarray(0, cut) : bytes;
      });
    const noise = fc.uint8Array({ maxLength: 64 }).map((bytes) => {
      if (bytes.length > 1) bytes.set([EVENT_VERSION, (bytes[1] ?? 0) % 18]);
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(mutated, noise), (bytes) => {
        const decoded = decodeEvent(bytes);
        if (!decoded.ok) expect(decoded.problem).not.toBe("");
        else expect(decodeEvent(encodeEvent(decoded.value)).ok).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it("rejects truncations, trailing bytes, other versions and unknown types with a message", () => {
    const bytes = encodeEvent(event("JobFailed"));
    for (let cut = 0; cut < bytes.length; cut++) {
      expect(decodeEvent(bytes.subarray(0, cut)).ok).toBe(false);
    }
    const changed = (at: number, byte: number): string => {
      const copy = bytes.slice();
      copy[at] = byte;
      const decoded = decodeEvent(copy);
      return decoded.ok ? "accepted" : decoded.problem;
    };
    expect(decodeEvent(new Uint8Array([...bytes, 0]))).toMatchObject({
      problem: "1 bytes too many",
    });
    expect(changed(0, 3)).toBe("event version 3; this build reads 1 and 2");
    expect(changed(1, 18)).toBe("unknown event type 18");
    expect(decodeEvent(new Uint8Array(EVENT_BYTES_MAX + 1)).ok).toBe(false);
  });
});

describe("an event with extreme values", () => {
  const extremes = [0, 1, 2 ** 31, 2 ** 32, 2 ** 48, 2 ** 53 - 1];

  it.each(EVENT_KINDS)("%s is taken as it is or refused by name, one number at a time", (kind) => {
    const one = event(kind) as unknown as Record<string, unknown>;
    const numbers = Object.keys(one).filter((field) => typeof one[field] === "number");
    for (const field of numbers) {
      for (const value of [...extremes, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        const changed = { ...one, [field]: value } as unknown as JobEvent;
        const problem = problemOf(changed);
        if (problem !== null) expect(problem).toMatch(new RegExp(`^${field}: `));
        else expect(decodeEvent(encodeEvent(changed))).toEqual({ ok: true, value: changed });
      }
    }
  });

  it.each(EVENT_KINDS)("%s folds in any state without harm", (kind) => {
    const largest = Number.MAX_SAFE_INTEGER;
    const one = event(kind) as unknown as Record<string, unknown>;
    const counts = ["workerCount", "cores", "attempt", "bytes", "completed", "failed"];
    const large = Object.fromEntries(
      counts.filter((name) => name in one).map((name) => [name, largest]),
    );
    let state = initialState(one["jobId"] as JobId);
    for (const first of EVENT_KINDS) {
      state = applyEvent(state, event(first), state.appliedSeq + 1).state;
      const next = { ...event(kind), ...large } as JobEvent;
      const { state: after } = applyEvent(state, next, state.appliedSeq + 1);
      expect(decodeJobState(encodeJobState(after))).toEqual({ ok: true, value: after });
    }
  });
});

describe("an event from outside", () => {
  it.each([
    [event("JobAccepted"), null],
    [event("JobAccepted", { eventId: "" as EventId }), "eventId: must not be empty"],
    [event("JobAccepted", { dcId: "ü".repeat(33) }), "dcId: 66 bytes where at most 64 are allowed"],
    [
      event("JobAccepted", { workerCount: -1 }),
      "workerCount: -1 is not a whole number from 0 to 9007199254740991",
    ],
    [
      event("JobCreated", { assignedDcs: [] }),
      "assignedDcs: at least one datacenter must be named",
    ],
    [event("JobCreated", { assignedDcs: ["a", "a"] }), "assignedDcs: a datacenter is named twice"],
    [
      event("JobCreated", { spec: new Uint8Array(JOB_SPEC_BYTES_MAX + 1) }),
      "spec: 1048577 bytes where at most 1048576 are allowed",
    ],
    [
      event("JobTimedOut", { lastProgressHlc: stamp(0.5) }),
      "lastProgressHlc.wallMs: 0.5 is not a whole number from 0 to 281474976710656",
    ],
  ] as const)("%# is told what is wrong with it", (one, problem) => {
    expect(problemOf(one)).toBe(problem);
  });
});
