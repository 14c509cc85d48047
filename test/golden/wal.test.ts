/**
 * The bytes on disk never change by accident: a whole segment, a sparse index and a checkpoint are kept in
 * `wal.golden`. A wanted change needs a new format version, `UPDATE_GOLDEN=1 npx vitest run test/golden`,
 * and a reader for the old one.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  type CheckpointHeader,
  encodeCheckpointHeader,
  encodeSlice,
  readCheckpoint,
} from "../../src/core/ledger/log/checkpoint.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { RECORD_TYPES } from "../../src/core/ledger/log/record-types.ts";
import { encodeSegmentHeader, identityOf } from "../../src/core/ledger/log/segment.ts";
import { decodeSparseIndex, SparseIndex } from "../../src/core/ledger/log/sparse-index.ts";
import { WriterBench } from "../../src/core/ledger/log/testing/bench.ts";
import { encodeWalRecord } from "../../src/core/ledger/log/testing/encode-record.ts";
import { MemoryFiles } from "../../src/core/ledger/log/testing/memory-files.ts";
import { recoverSegments } from "../../src/core/ledger/log/testing/recover-segments.ts";

const file = fileURLToPath(new URL("wal.golden", import.meta.url));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** An entry, an empty payload and a checkpoint's mark in two batches, and a clean close. */
function segment(): Uint8Array {
  const bench = new WriterBench({ segmentBytes: 1_024 });
  bench.tick();
  bench.settle();
  const stamp = { wall: 1_704_931_200_000, logical: 3 };
  bench.append({ type: RECORD_TYPES.VSR_ENTRY, payload: utf8("hello"), ...stamp });
  bench.append({ type: RECORD_TYPES.VSR_VIEW_PROMISE, payload: utf8(""), ...stamp });
  bench.tick();
  bench.settle();
  bench.append({ type: RECORD_TYPES.CHECKPOINT_MARK, payload: utf8(""), ...stamp });
  bench.step({ kind: "close" });
  bench.settle();
  const { offset } = bench.writer.snapshot();
  return bench.disk.segments()[0]?.bytes.slice(0, offset) ?? new Uint8Array(0);
}

function parts(): Readonly<Record<string, Uint8Array>> {
  const identity = identityOf("prod", "gate-1");
  const index = new SparseIndex(7, 4_711);
  index.note(4_711, 32);
  index.note(5_000, 70_000);
  index.coveredBytes = 80_000;
  const slices = [
    encodeSlice({ lsn: 1_000, payload: utf8("snapshot") }),
    encodeSlice({ lsn: 1_020, payload: utf8("rest") }),
  ];
  const header = encodeCheckpointHeader({
    id: "00112233445566778899aabbccddeeff",
    identity,
    createdAt: 1_704_931_200_000,
    localLsn: 1_000,
    throughLsn: 1_020,
    slices: slices.length,
    bytes: slices.reduce((sum, { length }) => sum + length, 0),
  });
  const record = { lsn: 1, wall: 1_704_931_200_000, logical: 0, type: RECORD_TYPES.VSR_ENTRY };
  return {
    record: encodeWalRecord({ ...record, payload: utf8("hello") }),
    "segment header": encodeSegmentHeader({ segmentId: 7, identity, firstLsn: 4_711 }),
    segment: segment(),
    index: index.encode(),
    checkpoint: new Uint8Array([header, ...slices].flatMap((bytes) => [...bytes])),
  };
}

/** A text says what is wrong with it. */
function checkpointOf(
  bytes: Uint8Array,
  onSlice: (text: string) => void = () => {},
): CheckpointHeader | string {
  const files = new MemoryFiles();
  files.files.set("checkpoint", bytes);
  const work = readCheckpoint("checkpoint", bytes.length, {
    onSlice: ({ lsn, payload }) => onSlice(`${lsn} ${Buffer.from(payload)}`),
  });
  return files.carryOut(work);
}

describe("the bytes of the log", () => {
  it("equal wal.golden", () => {
    const types = Object.entries(RECORD_TYPES).map(([name, number]) => `  ${number} ${name}\n`);
    const text = [
      ...Object.entries(parts()).map(([name, bytes]) => `${name}\n  ${hex(bytes)}\n`),
      "types\n",
      ...types,
    ].join("");
    if (process.env["UPDATE_GOLDEN"] !== undefined || !existsSync(file)) writeFileSync(file, text);
    expect(text).toBe(readFileSync(file, "utf8"));
  });

  it("of wal.golden are read as what they are", () => {
    const lines = readFileSync(file, "utf8").split("\n");
    const golden = (name: string): Uint8Array =>
      Buffer.from(lines[lines.indexOf(name) + 1]?.trim() ?? "", "hex");
    const found: string[] = [];
    const outcome = recoverSegments([{ segmentId: 1, bytes: golden("segment") }], {
      config: walConfig(),
      identity: "0000000000000000",
      onEntry: ({ lsn, type, payload }) => found.push(`${lsn} ${type} ${Buffer.from(payload)}`),
    });
    expect(found).toEqual(["1 64 hello", "2 65 ", "4 72 "]);
    expect(outcome.ok && outcome.maxLsn).toBe(6);
    expect(decodeSparseIndex(golden("index"))?.seek(4_999)).toEqual({ lsn: 4_711, offset: 32 });
    const slices: string[] = [];
    const header = checkpointOf(golden("checkpoint"), (slice) => slices.push(slice));
    expect(header).toMatchObject({ localLsn: 1_000, throughLsn: 1_020 });
    expect(slices).toEqual(["1000 snapshot", "1020 rest"]);
  });

  it("of an index or a checkpoint with any bit flipped are rejected", () => {
    const { index = new Uint8Array(0), checkpoint = new Uint8Array(0) } = parts();
    for (const [bytes, sound] of [
      [index, (image: Uint8Array) => decodeSparseIndex(image) !== null],
      [checkpoint, (image: Uint8Array) => typeof checkpointOf(image) === "object"],
    ] as const) {
      expect(sound(bytes)).toBe(true);
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = bytes.slice();
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(sound(flipped), `bit ${bit}`).toBe(false);
      }
    }
  });
});
