/** What a log reads from its disk: segments, indexes, checkpoints, its own records. */

import { decodeCheckpoint, encodeCheckpointHeader } from "../../src/core/ledger/log/checkpoint.ts";
import {
  decodeBatchMark,
  decodeStateAdvance,
  encodeStateAdvance,
} from "../../src/core/ledger/log/control.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { decodeWalRecord, encodeWalRecord } from "../../src/core/ledger/log/record.ts";
import { recoverSegments } from "../../src/core/ledger/log/recovery.ts";
import { WAL_RULES } from "../../src/core/ledger/log/rules.ts";
import { ANY_IDENTITY, identityOf } from "../../src/core/ledger/log/segment.ts";
import { decodeSparseIndex, SparseIndex } from "../../src/core/ledger/log/sparse-index.ts";
import { WriterBench } from "../../src/core/ledger/log/testing/bench.ts";
import type { Target } from "./decoders.ts";

const text = new TextEncoder();

function segmentSample(): Uint8Array {
  const bench = new WriterBench({ segmentBytes: 1_024 });
  bench.tick();
  const exact = [{ lsn: 1, state: 2 }];
  const advance = encodeStateAdvance({ regionalLsn: 1, globalLsn: 0, appliedLsn: 0, exact });
  for (const [type, payload] of [
    [1, text.encode("hello")],
    [64, text.encode("")],
    [240, advance],
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
    state: 0,
    type: 1,
    payload: text.encode("hello"),
  });
  const index = new SparseIndex(1, 1);
  index.note(1, 32);
  index.note(900, 70_000);
  const payload = text.encode("snapshot");
  const lsns = { localLsn: 9, regionalLsn: 8, globalLsn: 7 };
  const identity = identityOf("fuzz", "wal");
  const header = { id: "0".repeat(32), identity, createdAt: 1, ...lsns };
  const checkpoint = new Uint8Array([...encodeCheckpointHeader(header, payload), ...payload]);
  return [
    { name: "wal segment", samples: [segment], decode: (input) => recover(input, true) },
    // Without the checksum the rubbish gets further in.
    { name: "wal segment unchecked", samples: [segment], decode: (input) => recover(input, false) },
    { name: "wal record", samples: [record], decode: (input) => void decodeWalRecord(input) },
    {
      name: "wal control",
      samples: [segment.subarray(66, 200)],
      decode: (input) => {
        decodeBatchMark(input);
        decodeStateAdvance(input);
      },
    },
    {
      name: "wal index",
      samples: [index.encode()],
      decode: (input) => void decodeSparseIndex(input),
    },
    {
      name: "wal checkpoint",
      samples: [checkpoint],
      decode: (input) => void decodeCheckpoint(input),
    },
  ];
}
