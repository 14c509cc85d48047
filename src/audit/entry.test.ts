import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AuditEvent } from "../host/ports/audit.ts";
import { encode, required, struct, text, uint } from "../wire/schema.ts";
import { decodeEvent, ENTRY_BYTES_MAX, encodeEvent } from "./entry.ts";

const event: AuditEvent = {
  kind: "member.removed",
  subject: "worker-7",
  requester: {
    kind: "operator",
    name: "alice",
    credential: "token:1a2b3c4d",
    address: "127.0.0.1:5123",
  },
  detail: { incarnation: 4, forced: true, why: null },
};

describe("an entry of the audit log", () => {
  it("decodes as it was written, details as texts", () => {
    const decoded = decodeEvent(encodeEvent("gate-1", event));
    expect(decoded).toEqual({
      kind: "event",
      event: {
        format: 1,
        node: "gate-1",
        kind: "member.removed",
        subject: "worker-7",
        requester: event.requester,
        detail: [
          { name: "incarnation", value: "4" },
          { name: "forced", value: "true" },
          { name: "why", value: "null" },
        ],
      },
    });
  });

  it("fits its bound whatever the texts are, cut between characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 600 }),
        fc.array(fc.tuple(fc.string({ maxLength: 90 }), fc.string({ unit: "binary" })), {
          maxLength: 40,
        }),
        (name, details) => {
          const bytes = encodeEvent(name, {
            kind: "member.joined",
            subject: name.repeat(3),
            requester: { kind: "peer", name, credential: name, address: name },
            detail: Object.fromEntries(details.map(([key, value]) => [key, value.repeat(30)])),
          });
          expect(bytes.length).toBeLessThanOrEqual(ENTRY_BYTES_MAX);
          const decoded = decodeEvent(bytes);
          expect(decoded.kind).toBe("event");
          if (decoded.kind !== "event" || decoded.event.node === name) return;
          const { node } = decoded.event;
          expect(node.endsWith("…") || node.includes("\ufffd")).toBe(true);
        },
      ),
    );
  });

  it("is rejected without a throw when the bytes are anything else", () => {
    const whole = encodeEvent("gate-1", event);
    for (let length = 0; length < whole.length; length++) {
      expect(decodeEvent(whole.subarray(0, length)).kind).toBe("damaged");
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(["event", "newer", "damaged"]).toContain(decodeEvent(bytes).kind);
      }),
    );
    expect(decodeEvent(new Uint8Array(ENTRY_BYTES_MAX + 1)).kind).toBe("damaged");
  });

  it("of a later format says so, and a field of a later version is skipped", () => {
    const later = struct<{ readonly format: number; readonly new: string }>("later", {
      format: required(1, uint),
      new: required(9, text(10)),
    });
    expect(decodeEvent(encode(later, { format: 2, new: "?" }))).toEqual({
      kind: "newer",
      format: 2,
    });
    const one = encodeEvent("n", { ...event, detail: {} });
    const extra = encode(later, { format: 1, new: "later" });
    // Length prefix and the format field are two and one bytes; the rest is field 9.
    const body = new Uint8Array([...one.subarray(1), ...extra.subarray(3)]);
    const joined = new Uint8Array([body.length, ...body]);
    expect(decodeEvent(joined)).toEqual(decodeEvent(one));
  });
});
