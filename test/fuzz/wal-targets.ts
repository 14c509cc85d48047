/** Fuzz targets for everything a log reads from its disk: segments, indexes, checkpoints, its own records. */

import {
  encodeCheckpointHeader,
  encodeSlice,
  readCheckpoint,
} from "../../src/core/ledger/log/checkpoint.ts";
import { decodeBatchMark, encodeBatchMark } from "../../src/core/ledger/log/control.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { decodeWalRecord } from "../../src/core/ledger/log/record.ts";
import { WAL_RULES } from "../../src/core/ledger/log/rules.ts";
import { ANY_IDENTITY, identityOf } from "../../src/core/ledger/log/segment.ts";
import { decodeSparseIndex, SparseIndex } from "../../src/core/ledger/log/sparse-index.ts";
import { WriterBench } from "../../src/core/ledger/log/testing/bench.ts";
import { encodeWalRecord } from "../../src/core/ledger/log/testing/encode-record.ts";
import { MemoryFiles } from "../../src/core/ledger/log/testing/memory-files.ts";
import { recoverSegments } from "../../src/core/ledger/log/testing/recover-segments.ts";
import type { Target } from "./decoders.ts";

const text = new TextEncoder();

function segmentSample(): Uint8Array {
  const bench = new WriterBench({ segmentBytes: 1_024 });
  bench.tick();
  for (const [type, payload] of [
    [64, text.encode("hello")],
    [65, text.encode("")],
    [72, text.encode("")],
  ] as const) {
    bench.append({ type, payload, wall: 1_000, logical: 1 });
    bench.tick();
    bench.settle();
  }
  return bench.disk.segments()[0]?.bytes ?? new Uint8Array(0);
}

function recover(bytes: Uint8Array, verifyCrc: boolean): void {
  const rules = { ...WAL_RULES, verifyCrc };
  recoverSegments([{ segmentId: 1, bytes }], {
    config: walConfig(),
    identity: ANY_IDENTITY,
    rules,
  });
}

export function walTargets(): readonly Target[] {
  const segment = segmentSample();
  const record = encodeWalRecord({
    lsn: 1,
    wall: 2,
    logical: 3,
    type: 64,
    payload: text.encode("hello"),
  });
  const index = new SparseIndex(1, 1);
  index.note(1, 32);
  index.note(900, 70_000);
  const slice = encodeSlice({ lsn: 9, payload: text.encode("snapshot") });
  const lsns = { localLsn: 9, throughLsn: 9, slices: 1, bytes: slice.length };
  const identity = identityOf("fuzz", "wal");
  const header = { id: "0".repeat(32), identity, createdAt: 1, ...lsns };
  const checkpoint = new Uint8Array([...encodeCheckpointHeader(header), ...slice]);
  return [
    { name: "wal segment", samples: [segment], decode: (input) => recover(input, true) },
    // Without the checksum the rubbish gets further in.
    { name: "wal segment unchecked", samples: [segment], decode: (input) => recover(input, false) },
    { name: "wal record", samples: [record], decode: (input) => void decodeWalRecord(input) },
    {
      name: "wal batch mark",
      samples: [encodeBatchMark({ syncedLsn: 1, firstLsn: 2, segmentId: 1, offset: 200 })],
      decode: (input) => void decodeBatchMark(input),
    },
    {
      name: "wal index",
      samples: [index.encode()],
      decode: (input) => void decodeSparseIndex(input),
    },
    {
      name: "wal checkpoint",
      samples: [checkpoint],
      decode: (input) => {
        const files = new MemoryFiles();
        files.files.set("checkpoint", input);
        files.carryOut(readCheckpoint("checkpoint", input.length));
      },
    },
  ];
}
