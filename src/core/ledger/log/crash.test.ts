/**
 * Crashes of the writer in virtual time: whatever was acknowledged comes back byte for byte, from any
 * subset of the unsynced pages; and each rule, broken on purpose, is noticed.
 */

import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import type { WalRules } from "./rules.ts";
import { WriterBench } from "./testing/bench.ts";
import { MemoryDisk } from "./testing/memory-disk.ts";
import type { WalEntry } from "./writer-types.ts";

/** More of them: `WAL_SEEDS=5000 npx vitest run src/core/ledger/log/crash.test.ts`. */
const SEEDS = Number(process.env["WAL_SEEDS"] ?? 400);

function anyEntry(random: Random, number: number): WalEntry {
  const payload = new Uint8Array(random.below(random.chance(0.05) ? 900 : 90));
  for (let i = 0; i < payload.length; i++) payload[i] = random.below(256);
  return { type: random.pick([64, 65, 68, 72]), payload, wall: number, logical: 7 };
}

/** One random history of a log: appends, I/O in any order, faults, crashes. Returns the problem found, or null. */
function randomHistory(seed: number, rules: Partial<WalRules> = {}): string | null {
  const random = new Random(seed);
  const disk = new MemoryDisk(random.pick([512, 4_096]));
  const config = {
    segmentBytes: random.pick([2_048, 8_192, 32_768]),
    batchEntriesMax: random.pick([3, 100]),
    unsyncedEntriesMax: 200,
    chunkBytes: 1_024,
    fullDisk: random.pick(["reject", "wait"] as const),
  };
  const bench = new WriterBench(config, rules, disk);
  let number = 0;
  for (let round = 0; round < 12; round++) {
    for (let step = random.below(60); step > 0; step--) act(bench, random, () => number++);
    const before = new Map([...bench.placed].filter(([lsn]) => lsn <= bench.durableLsn));
    bench.crash(random);
    const outcome = bench.recover();
    if (!outcome.ok) return `seed ${seed}: recovery refused: ${JSON.stringify(outcome.refusal)}`;
    for (const [lsn, entry] of before) {
      const found = outcome.found.get(lsn);
      if (found === undefined) return `seed ${seed}: acknowledged LSN ${lsn} was lost`;
      if (Buffer.compare(found.payload, entry.payload) !== 0 || found.wall !== entry.wall) {
        return `seed ${seed}: acknowledged LSN ${lsn} came back changed`;
      }
    }
    // Every recovered entry equals what was written, even if it was never acknowledged.
    for (const [lsn, found] of outcome.found) {
      const entry = bench.placed.get(lsn);
      if (entry !== undefined && Buffer.compare(found.payload, entry.payload) !== 0) {
        return `seed ${seed}: LSN ${lsn} came back with bytes nobody wrote`;
      }
    }
    bench.restart();
    const again = bench.recover();
    if (!again.ok || again.found.size !== outcome.found.size || again.tornTail !== null) {
      return `seed ${seed}: recovering twice differs`;
    }
  }
  return null;
}

function act(bench: WriterBench, random: Random, next: () => number): void {
  const writing = bench.pending.some(({ effect }) => effect.kind === "write");
  const creating = bench.pending.some(({ effect }) => effect.kind === "createSegment");
  const syncing = bench.pending.some(({ effect }) => effect.kind === "sync");
  const draw = random.below(100);
  if (draw < 40) {
    for (let count = random.below(6); count >= 0; count--) bench.append(anyEntry(random, next()));
    bench.tick();
  } else if (draw < 80) bench.complete(random.pick(["write", "sync", "createSegment", "truncate"]));
  else if (draw < 90) bench.tick(bench.now + random.below(20));
  else if (draw < 94 && writing) bench.shorten(1 + random.below(30));
  else if (draw < 97 && writing) bench.fail("write", "ENOSPC", random.below(60));
  else if (draw < 98 && creating) bench.fail("createSegment", "ENOSPC");
  else if (draw < 99) bench.step({ kind: "flush", id: 1 });
  else if (random.chance(0.3) && syncing) bench.fail("sync", "EIO");
}

describe("a log that crashes", () => {
  it("never loses or changes what it acknowledged (W1, W2, W3)", () => {
    for (let seed = 1; seed <= SEEDS; seed++) expect(randomHistory(seed)).toBe(null);
  });

  const MUTANTS: readonly (keyof WalRules)[] = [
    "ackAfterSync",
    "syncErrorFinal",
    "oldSegmentSyncedFirst",
    "tailCutAfterFull",
    "shortWritesCompleted",
    "verifyCrc",
  ];
  it.each(MUTANTS)("is caught without the rule %s", (rule) => {
    const found = (seed: number) => {
      try {
        return randomHistory(seed, { [rule]: false });
      } catch (error) {
        return String(error);
      }
    };
    const caught = Array.from({ length: 400 }, (_, seed) => seed).find(
      (seed) => found(seed) !== null,
    );
    expect(caught).toBeDefined();
  });
});
