import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEvent, EVENT_VERSION, encodeEvent } from "./event-codec.ts";
import { EVENT_KINDS, EVENT_TYPES, type EventId, problemOf } from "./events.ts";
import { DC_ID_BYTES_MAX, EVENT_BYTES_MAX, JOB_DCS_MAX, JOB_SPEC_BYTES_MAX } from "./limits.ts";
import { anyEvent, event, stamp } from "./testing/events.ts";

describe("event codec", () => {
  it("has the bytes it has always had", () => {
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

  it("writes a condition before the fields, in a version of its own", () => {
    const plain = event("JobFailed");
    const bytes = encodeEvent({ ...plain, condition: { ifSeq: 300, ifFence: 7 } });
    const fields = encodeEvent(plain);
    const at = fields.length - "broke".length - "a".length - 2;
    expect([...bytes]).toEqual([2, ...fields.slice(1, at), 3, 0xac, 0x02, 7, ...fields.slice(at)]);
  });

  it("numbers the kinds 1 to 8 in the order of the log's registry", () => {
    expect(EVENT_KINDS.map((kind) => EVENT_TYPES[kind])).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
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

  it("answers any bytes with an event it can write again, or with a problem", () => {
    const mutated = fc
      .tuple(anyEvent, fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }), fc.nat(400))
      .map(([one, flips, cut]) => {
        const bytes = encodeEvent(one).slice();
        for (const [at, byte] of flips) if (at < bytes.length) bytes[at] = byte;
        return cut % 3 === 0 ? bytes.subarray(0, cut) : bytes;
      });
    const noise = fc.uint8Array({ maxLength: 64 }).map((bytes) => {
      if (bytes.length > 1) bytes.set([EVENT_VERSION, (bytes[1] ?? 0) % 9]);
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

  it("refuses every truncation, bytes too many, other versions and unknown types, in words", () => {
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
    expect(changed(1, 9)).toBe("unknown event type 9");
    expect(decodeEvent(new Uint8Array(EVENT_BYTES_MAX + 1)).ok).toBe(false);
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
