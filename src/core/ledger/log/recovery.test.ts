/** Recovery from damage: truncation at every byte, every bit flipped, foreign files. */

import { describe, expect, it } from "vitest";
import { crc32 } from "../../base/crc32.ts";
import { recordBytes, viewOf } from "./record.ts";
import { WAL_RULES, type WalRules } from "./rules.ts";
import { ANY_IDENTITY, encodeSegmentHeader, identityOf, SEGMENT_HEADER_BYTES } from "./segment.ts";
import { WriterBench } from "./testing/bench.ts";
import { encodeWalRecord } from "./testing/encode-record.ts";
import { MemoryDisk } from "./testing/memory-disk.ts";
import { recoverSegments } from "./testing/recover-segments.ts";

const SEGMENT_BYTES = 1_024;
const RECORD_PAYLOAD_AT = 35;

/** Three entries, each in its own batch; all acknowledged. */
function threeEntries(rules: Partial<WalRules> = {}): { bytes: Uint8Array; ends: number[] } {
  const bench = new WriterBench({ segmentBytes: SEGMENT_BYTES }, rules);
  const ends: number[] = [];
  bench.tick();
  for (const text of ["one", "two", "three"]) {
    bench.append({ type: 64, payload: new TextEncoder().encode(text), wall: 5, logical: 1 });
    bench.tick();
    bench.settle();
    ends.push(bench.writer.snapshot().offset);
  }
  return { bytes: bench.disk.segments()[0]?.bytes ?? new Uint8Array(0), ends };
}

function recover(
  files: readonly Uint8Array[],
  rules: Partial<WalRules> = {},
  identity = ANY_IDENTITY,
) {
  const texts: string[] = [];
  const outcome = recoverSegments(
    files.map((bytes, index) => ({ segmentId: index + 1, bytes })),
    {
      config: new WriterBench({ segmentBytes: SEGMENT_BYTES }).config,
      identity,
      rules: { ...WAL_RULES, ...rules },
      onEntry: ({ payload }) => texts.push(new TextDecoder().decode(payload)),
    },
  );
  const verdict = outcome.ok
    ? outcome.tornTail === null
      ? "clean"
      : "torn"
    : outcome.refusal.code;
  return { texts, outcome, verdict };
}

const flip = (bytes: Uint8Array, bit: number): Uint8Array => {
  const flipped = bytes.slice();
  flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return flipped;
};

describe("recovery", () => {
  it("finds everything in an undamaged log", () => {
    const { texts, verdict, outcome } = recover([threeEntries().bytes]);
    expect([texts, verdict]).toEqual([["one", "two", "three"], "clean"]);
    expect(outcome).toMatchObject({ entries: 3, records: 6, firstLsn: 1, maxLsn: 6 });
    expect(outcome).toMatchObject({ maxHlc: { wall: 5, logical: 1 }, repairs: [] });
  });

  it("cut at any byte of the last batch, gives every entry before it and calls the rest torn", () => {
    const { bytes, ends } = threeEntries();
    const [, second = 0, third = 0] = ends;
    for (let cut = second; cut <= third; cut++) {
      const short = recover([bytes.slice(0, cut)]);
      const zeroed = recover([bytes.slice().fill(0, cut)]);
      for (const { texts, verdict } of [short, zeroed]) {
        expect(texts.slice(0, 2), `cut at ${cut}`).toEqual(["one", "two"]);
        expect(["clean", "torn"]).toContain(verdict);
        if (verdict === "clean")
          expect([second, third].includes(cut) || texts.length === 3).toBe(true);
      }
    }
  });

  it("sees every flipped bit, and calls it torn only in the last batch", () => {
    const { bytes, ends } = threeEntries();
    const [, second = 0] = ends;
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const { texts, verdict } = recover([flip(bytes, bit)]);
      const byte = bit >> 3;
      if (byte < 4) expect(verdict, `bit ${bit}`).toBe("WAL_FOREIGN");
      else if (byte < second) expect(verdict, `bit ${bit}`).toBe("WAL_CORRUPT");
      else {
        expect(verdict, `bit ${bit}`).toBe("torn");
        expect(texts.slice(0, 2)).toEqual(["one", "two"]);
      }
    }
  });

  it("after a clean close, sees damage to the last entry as corruption too", () => {
    const bench = new WriterBench({ segmentBytes: SEGMENT_BYTES });
    bench.tick();
    bench.append({ type: 64, payload: new Uint8Array([1, 2, 3]), wall: 1, logical: 0 });
    bench.step({ kind: "close" });
    bench.settle();
    const bytes = bench.disk.segments()[0]?.bytes ?? new Uint8Array(0);
    expect(recover([bytes]).verdict).toBe("clean");
    expect(recover([flip(bytes, (SEGMENT_HEADER_BYTES + 10) * 8)]).verdict).toBe("WAL_CORRUPT");
  });

  it("a lost page below something acknowledged is corruption", () => {
    const { bytes, ends } = threeEntries();
    const holed = bytes.slice().fill(0, SEGMENT_HEADER_BYTES, ends[0]);
    expect(recover([holed]).verdict).toBe("WAL_CORRUPT");
    expect(recover([bytes.slice().fill(0, 0, SEGMENT_HEADER_BYTES)]).verdict).toBe("WAL_CORRUPT");
  });

  it("damage, a gap or a hole before a later segment is corruption", () => {
    const bench = new WriterBench({ segmentBytes: SEGMENT_BYTES });
    bench.tick();
    for (let i = 0; i < 60; i++) {
      bench.append({ type: 64, payload: new Uint8Array(20), wall: 1, logical: i });
      bench.tick();
      bench.settle();
    }
    const files = bench.disk.segments().map(({ bytes }) => bytes);
    expect(files.length).toBeGreaterThan(3);
    expect(recover(files).verdict).toBe("clean");
    const [first, second, third] = files as [Uint8Array, Uint8Array, Uint8Array];
    expect(recover([first, flip(second, 4_000), third]).verdict).toBe("WAL_CORRUPT");
    expect(recover([first.slice().fill(0, 600), second]).verdict).toBe("WAL_CORRUPT");
    expect(recover([flip(first, SEGMENT_BYTES * 8 - 1), second]).verdict).toBe("WAL_CORRUPT");
    expect(recover([first, new Uint8Array(SEGMENT_BYTES), third]).verdict).toBe("WAL_CORRUPT");
    const config = bench.config;
    const gap = [
      { segmentId: 1, bytes: first },
      { segmentId: 3, bytes: third },
    ];
    const outcome = recoverSegments(gap, { config, identity: ANY_IDENTITY });
    expect(outcome).toMatchObject({ ok: false, refusal: { code: "WAL_CORRUPT" } });
  });

  it("ignores a prepared segment and one whose creation was cut short", () => {
    const { bytes } = threeEntries();
    for (const next of [new Uint8Array(SEGMENT_BYTES), new Uint8Array(7), new Uint8Array(0)]) {
      const { verdict, outcome } = recover([bytes, next]);
      expect(verdict).toBe("clean");
      expect(outcome).toMatchObject({ repairs: [{ kind: "remove", segmentId: 2 }] });
    }
  });

  it("refuses foreign bytes, other versions, other nodes and unknown types (G-17)", () => {
    expect(recover([new TextEncoder().encode("GIF89a".repeat(50))]).verdict).toBe("WAL_FOREIGN");
    const identity = identityOf("prod", "gate-1");
    const header = encodeSegmentHeader({ segmentId: 1, identity, firstLsn: 1 });
    const later = header.slice();
    later[4] = 2;
    expect(recover([later]).outcome).toMatchObject({
      refusal: { code: "WAL_VERSION", version: 2 },
    });
    const other = recover([header], {}, identityOf("prod", "gate-2"));
    expect(other.outcome).toMatchObject({ refusal: { code: "WAL_IDENTITY", found: identity } });
    expect(recover([header], {}, identity).verdict).toBe("clean");
    const record = { lsn: 1, wall: 0, logical: 0, payload: new Uint8Array(3) };
    // 99 was never given out; 1 and 240 were, in earlier builds.
    for (const type of [99, 1, 240]) {
      const unknown = new Uint8Array([...header, ...encodeWalRecord({ ...record, type })]);
      expect(recover([unknown]).outcome).toMatchObject({
        refusal: { code: "WAL_UNKNOWN_TYPE", type },
      });
    }
  });

  it("rejects a record whose reserved byte is set, though its checksum matches", () => {
    const { bytes } = threeEntries();
    const [at, after] = [SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + recordBytes("one".length)];
    bytes[at + 32] = 1;
    viewOf(bytes).setUint32(at, crc32(bytes, at + 4, after), true);
    expect(recover([bytes]).outcome).toMatchObject({
      refusal: { code: "WAL_CORRUPT", damage: { offset: at, reason: "reserved-not-zero" } },
    });
  });

  it("does not take log bytes inside a payload for records or proofs", () => {
    const inner = threeEntries().bytes.slice(SEGMENT_HEADER_BYTES, 500);
    const bench = new WriterBench({ segmentBytes: 4_096 }, {}, new MemoryDisk());
    bench.tick();
    bench.append({ type: 64, payload: inner, wall: 1, logical: 0 });
    bench.tick();
    bench.settle();
    const bytes = bench.disk.segments()[0]?.bytes ?? new Uint8Array(0);
    const torn = recover([flip(bytes, SEGMENT_HEADER_BYTES * 8)]);
    expect([torn.verdict, torn.texts]).toEqual(["torn", []]);
  });
});

describe("recovery without a rule", () => {
  const { bytes } = threeEntries();
  const damaged = flip(bytes, (SEGMENT_HEADER_BYTES + RECORD_PAYLOAD_AT) * 8);

  it.each([
    ["truncateOnlyTornTail", damaged, "torn"],
    ["verifyCrc", damaged, "clean"],
  ] as const)("%s: the damage above would pass as %s", (rule, image, verdict) => {
    expect(recover([image]).verdict).toBe("WAL_CORRUPT");
    expect(recover([image], { [rule]: false }).verdict).toBe(verdict);
  });

  it("lsnContiguous: a repeated record passes", () => {
    const end = threeEntries().ends[2] ?? 0;
    const twice = bytes.slice();
    twice.set(bytes.subarray(SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + 37), end);
    expect(recover([twice]).texts).toEqual(["one", "two", "three"]);
    expect(recover([twice], { lsnContiguous: false }).texts).toHaveLength(4);
  });

  it("batchProof: corruption looks like a torn tail", () => {
    const plain = threeEntries({ batchProof: false }).bytes;
    expect(recover([plain]).verdict).toBe("clean");
    expect(recover([flip(plain, (SEGMENT_HEADER_BYTES + 8) * 8)]).verdict).toBe("torn");
  });

  it("unknownTypeRefused: a later version's record is skipped over", () => {
    const header = encodeSegmentHeader({ segmentId: 1, identity: ANY_IDENTITY, firstLsn: 1 });
    const record = { lsn: 1, wall: 0, logical: 0, type: 99, payload: new Uint8Array(3) };
    const unknown = new Uint8Array([...header, ...encodeWalRecord(record)]);
    expect(recover([unknown], { unknownTypeRefused: false }).verdict).toBe("clean");
  });
});
