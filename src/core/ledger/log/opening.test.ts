import { describe, expect, it } from "vitest";
import { FILE_DONE, type FileOperation } from "./files.ts";
import { scanSegments } from "./opening.ts";
import { WAL_RULES } from "./rules.ts";
import { ANY_IDENTITY, segmentName } from "./segment.ts";
import { WriterBench } from "./testing/bench.ts";
import { MemoryFiles } from "./testing/memory-files.ts";

const ENTRIES = 12_345;

describe("opening a long log", () => {
  it("lets others go between slices of at most 1,000 records (IO-5)", () => {
    const bench = new WriterBench({ segmentBytes: 1_048_576 });
    bench.tick();
    for (let at = 0; at < ENTRIES; at++) {
      bench.append({ type: 64, payload: Uint8Array.of(1), wall: 5, logical: at });
      if (at % 50 === 0) {
        bench.tick();
        bench.settle();
      }
    }
    bench.tick();
    bench.settle();
    const files = new MemoryFiles();
    const segments = bench.disk.segments().map(({ bytes, segmentId }) => {
      const name = segmentName(segmentId);
      files.files.set(`wal/${name}`, bytes);
      return { segmentId, name, bytes: bytes.length };
    });
    let [found, inSlice, longest, turns] = [0, 0, 0, 0];
    const work = scanSegments("wal", segments, {
      ...{ config: bench.config, identity: ANY_IDENTITY, rules: WAL_RULES },
      onEntry: () => {
        found++;
        longest = Math.max(longest, ++inSlice);
      },
    });
    let next = work.next(FILE_DONE);
    while (next.done !== true) {
      const request = next.value;
      if (request.kind === "turn") turns++;
      inSlice = 0;
      const waits = request.kind === "turn" || request.kind === "until";
      next = work.next(waits ? FILE_DONE : files.perform(request as FileOperation));
    }
    expect(next.value).toMatchObject({ ok: true });
    expect(found).toBe(ENTRIES);
    expect(longest).toBeLessThanOrEqual(1_000);
    expect(turns).toBeGreaterThanOrEqual(Math.floor(ENTRIES / 1_000) - segments.length);
  });
});
