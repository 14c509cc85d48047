import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32 } from "../../base/crc32.ts";
import { CHECKPOINT_DEFAULTS, checkpointDue } from "./checkpoint.ts";
import { decodeBatchMark, encodeBatchMark, provenLsn } from "./control.ts";
import { decodeWalRecord, viewOf, type WalRecord } from "./record.ts";
import { RECORD_TYPES } from "./record-types.ts";
import { decodeSegmentHeader, encodeSegmentHeader, firstNonZero, identityOf } from "./segment.ts";
import { encodeWalRecord } from "./testing/encode-record.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const HELLO: WalRecord = {
  lsn: 1,
  wall: 1_704_931_200_000,
  logical: 0,
  type: 1,
  payload: new TextEncoder().encode("hello"),
};
const GOLDEN = "807925d9050000000100000000000000008cd1f58c0100000000000000000000000168656c6c6f";

const safe = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const anyRecord = fc.record({
  lsn: safe,
  wall: safe,
  logical: safe,
  type: fc.nat(255),
  payload: fc.uint8Array({ maxLength: 200 }),
});

describe("a record", () => {
  it("has the bytes of the documented format", () => {
    expect(hex(encodeWalRecord(HELLO))).toBe(GOLDEN);
    const decoded = decodeWalRecord(Buffer.from(GOLDEN, "hex"));
    expect(decoded.ok && { ...decoded.record, payload: hex(decoded.record.payload) }).toEqual({
      ...HELLO,
      payload: hex(HELLO.payload),
    });
  });

  it("comes back as it was written, wherever it lies (WAL-10)", () => {
    fc.assert(
      fc.property(anyRecord, fc.nat(50), (record, at) => {
        const bytes = new Uint8Array([...new Uint8Array(at), ...encodeWalRecord(record), 1, 2, 3]);
        const decoded = decodeWalRecord(bytes, at);
        expect(decoded.ok && hex(decoded.record.payload)).toBe(hex(record.payload));
        expect(decoded.ok && { ...decoded.record, payload: record.payload }).toEqual(record);
      }),
    );
  });

  it("does not check after any change of one bit (FRM-2)", () => {
    const bytes = encodeWalRecord(HELLO);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeWalRecord(flipped).ok, `bit ${bit}`).toBe(false);
    }
  });

  it("names its problem", () => {
    const bytes = encodeWalRecord(HELLO);
    const problem = (cut: Uint8Array) => {
      const decoded = decodeWalRecord(cut);
      return decoded.ok ? "none" : decoded.problem;
    };
    expect(problem(bytes.subarray(0, 33))).toBe("header-truncated");
    expect(problem(bytes.subarray(0, 38))).toBe("payload-truncated");
    expect(problem(new Uint8Array(34))).toBe("crc-mismatch");
    const long = bytes.slice();
    long[7] = 0xff;
    expect(problem(long)).toBe("payload-too-long");
    const reserved = bytes.slice();
    reserved[32] = 1;
    viewOf(reserved).setUint32(0, crc32(reserved, 4, reserved.length), true);
    expect(problem(reserved)).toBe("reserved-not-zero");
  });
});

describe("a segment header", () => {
  const header = { segmentId: 7, identity: identityOf("prod", "gate-1"), firstLsn: 4_711 };

  it("has fixed bytes", () => {
    expect(hex(encodeSegmentHeader(header))).toBe(
      `4853574c0100200007000000${header.identity}6712000000000000${hex(encodeSegmentHeader(header)).slice(56)}`,
    );
    expect(decodeSegmentHeader(encodeSegmentHeader(header))).toEqual({ kind: "header", header });
  });

  it("distinguishes unused, foreign, another version and damage (WAL-18)", () => {
    const bytes = encodeSegmentHeader(header);
    expect(decodeSegmentHeader(new Uint8Array(100)).kind).toBe("unused");
    expect(decodeSegmentHeader(bytes.subarray(0, 20)).kind).toBe("unused");
    expect(decodeSegmentHeader(new TextEncoder().encode("x".repeat(40))).kind).toBe("foreign");
    const later = bytes.slice();
    later[4] = 2;
    expect(decodeSegmentHeader(later)).toEqual({ kind: "version", version: 2 });
  });

  it("is never taken for whole after a change of one bit", () => {
    const bytes = encodeSegmentHeader(header);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(["damaged", "foreign"], `bit ${bit}`).toContain(decodeSegmentHeader(flipped).kind);
    }
  });
});

describe("firstNonZero", () => {
  it("finds any byte from any alignment", () => {
    fc.assert(
      fc.property(fc.nat(9), fc.nat(70), fc.integer({ min: 1, max: 255 }), (skew, at, value) => {
        const bytes = new Uint8Array(90).subarray(skew);
        bytes[at] = value;
        expect(firstNonZero(bytes, 0, bytes.length)).toBe(at);
        expect(firstNonZero(bytes, at + 1, bytes.length)).toBe(bytes.length);
        expect(firstNonZero(bytes, 0, at)).toBe(at);
      }),
    );
  });
});

describe("the log's own records", () => {
  it("a BATCH comes back, and proves only at its own place", () => {
    const mark = { syncedLsn: 99, firstLsn: 100, segmentId: 3, offset: 200 };
    expect(decodeBatchMark(encodeBatchMark(mark))).toEqual(mark);
    const record = encodeWalRecord({
      ...HELLO,
      type: RECORD_TYPES.BATCH,
      payload: encodeBatchMark(mark),
    });
    const bytes = new Uint8Array(4_096);
    bytes.set(record, 200);
    const whole = { start: 0, end: bytes.length };
    expect(provenLsn(bytes, { segmentId: 3, ...whole })).toBe(99);
    expect(provenLsn(bytes, { segmentId: 4, ...whole })).toBe(0);
    expect(provenLsn(bytes, { segmentId: 3, start: 201, end: 4_096 })).toBe(0);
    const moved = new Uint8Array(4_096);
    moved.set(record, 300);
    expect(provenLsn(moved, { segmentId: 3, ...whole })).toBe(0);
  });

  it("a BATCH is found at any offset, whatever lies around it", () => {
    fc.assert(
      fc.property(fc.nat(900), fc.uint8Array({ maxLength: 300 }), (offset, noise) => {
        const bytes = new Uint8Array(1_000);
        bytes.set(noise, 0);
        const mark = { syncedLsn: 5, firstLsn: 6, segmentId: 1, offset };
        const payload = encodeBatchMark(mark);
        bytes.set(encodeWalRecord({ ...HELLO, type: 241, payload }), offset);
        expect(provenLsn(bytes, { segmentId: 1, start: 0, end: 1_000 })).toBe(5);
      }),
    );
  });

  it("no bytes make a BATCH's decoder fail", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const mark = decodeBatchMark(bytes);
        expect(mark === null || hex(encodeBatchMark(mark)) === hex(bytes)).toBe(true);
      }),
    );
  });
});

describe("a checkpoint", () => {
  it("is due after 100,000 entries or five minutes, and never for nothing (CKPT-9)", () => {
    const due = (entries: number, ms: number): boolean =>
      checkpointDue({ entries, ms }, CHECKPOINT_DEFAULTS);
    expect(due(99_999, 299_999)).toBe(false);
    expect(due(100_000, 0)).toBe(true);
    expect(due(1, 300_000)).toBe(true);
    expect(due(0, 900_000)).toBe(false);
  });
});
