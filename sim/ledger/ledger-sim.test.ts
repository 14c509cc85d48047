/**
 * The ledger simulator on itself: determinism, seeds under faults, a sample of planted mutants, the disk
 * it runs on. The full proof is `npm run sim:ledger`.
 */

import { describe, expect, it } from "vitest";
import { Random } from "../../src/core/base/random.ts";
import { LedgerDisk, type LedgerDiskFaults } from "./disk.ts";
import { ELSEWHERE, LEDGER_MUTANTS, ledgerRulesWithout } from "./mutants.ts";
import { type LedgerRunOptions, runLedgerSeed } from "./run.ts";

const options = (seed: number, more: Partial<LedgerRunOptions> = {}): LedgerRunOptions => ({
  seed,
  minutes: 2,
  mutant: null,
  faults: null,
  ...more,
});

describe("a whole ledger", { timeout: 120_000 }, () => {
  it("keeps all its promises under faults and works again when they end", () => {
    for (let seed = 1; seed <= 15; seed++) {
      expect(runLedgerSeed(options(seed)).violation).toBe(null);
    }
  });

  it("gives the same trace for the same seed, and another for another", () => {
    const first = runLedgerSeed(options(3));
    expect(runLedgerSeed(options(3)).hash).toBe(first.hash);
    expect(runLedgerSeed(options(4)).hash).not.toBe(first.hash);
  });

  it.each([
    ["vsr.viewChangeQuorum", ["I2", "I3", "I6"]],
    ["vsr.promiseDurable", ["I6"]],
    ["vsr.majorityQuorum", ["V3"]],
    ["wal.ackAfterSync", ["W1"]],
    ["idempotency.canonicalJob", ["K2"]],
    ["node.conditionsJudged", ["C1", "A1"]],
    ["node.watchKeepsPlace", ["O1"]],
    ["variant.A", ["V3", "I2", "I6"]],
  ])("is caught without %s", (mutant, ids) => {
    const finds = (seed: number): boolean => {
      const { violation } = runLedgerSeed(options(seed, { mutant }));
      return violation !== null && ids.includes(violation.id);
    };
    expect([1, 2, 3, 4, 5, 6].some(finds)).toBe(true);
  });

  it("names its mutants by rules that exist", () => {
    for (const mutant of [...LEDGER_MUTANTS, ...Object.keys(ELSEWHERE)]) {
      expect(ledgerRulesWithout(mutant)).not.toEqual(ledgerRulesWithout(null));
    }
    expect(() => ledgerRulesWithout("vsr")).toThrow("unknown mutant");
  });
});

const CALM: LedgerDiskFaults = {
  pageBytes: 512,
  writeMsMax: 0,
  syncMsMax: 0,
  slowSyncChance: 0,
  slowSyncMsMax: 0,
  syncErrorChance: 0,
  writeErrorChance: 0,
  shortWriteChance: 0,
};

function diskWith(bytes: number, seed = 1): LedgerDisk {
  const disk = new LedgerDisk(CALM, new Random(seed));
  disk.create("a", bytes);
  disk.beginSync("a")();
  disk.syncDirectory("");
  return disk;
}

describe("a simulated disk", () => {
  it("keeps what was synced and loses any of the rest when power fails", () => {
    const fates = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const disk = diskWith(1_536, seed);
      disk.write("a", 0, [Uint8Array.of(1)]);
      disk.beginSync("a")();
      disk.write("a", 512, [Uint8Array.of(2)]);
      disk.write("a", 1_024, [Uint8Array.of(3)]);
      disk.powerLoss();
      const bytes = disk.read("a");
      expect(bytes[0]).toBe(1);
      fates.add(`${bytes[512]}${bytes[1_024]}`);
    }
    expect([...fates].sort()).toEqual(["00", "03", "20", "23"]);
  });

  it("covers with a sync what was written before it began", () => {
    const disk = diskWith(1_024);
    disk.write("a", 0, [Uint8Array.of(1)]);
    const finish = disk.beginSync("a");
    disk.write("a", 600, [Uint8Array.of(2)]);
    finish();
    expect(disk.isDurable("a", 0, 512)).toBe(true);
    expect(disk.isDurable("a", 512, 1_024)).toBe(false);
  });

  it("preserves writes of a killed process", () => {
    const disk = diskWith(512);
    disk.write("a", 3, [Uint8Array.of(7)]);
    expect(disk.read("a")[3]).toBe(7);
  });

  it("drops pages whose sync failed, whatever a later sync reports", () => {
    for (let seed = 0; seed < 20; seed++) {
      const disk = diskWith(512, seed);
      disk.write("a", 0, [Uint8Array.of(9)]);
      disk.beginSync("a");
      disk.failSync("a");
      const survived = disk.isDurable("a", 0, 512);
      disk.beginSync("a")();
      expect(disk.isDurable("a", 0, 512)).toBe(survived);
    }
  });

  it("gives a file that grew any length between, unless it was synced", () => {
    const lengths = new Set<number>();
    for (let seed = 0; seed < 100; seed++) {
      const disk = diskWith(0, seed);
      disk.write("a", 0, [new Uint8Array(100).fill(1)]);
      disk.beginSync("a")();
      disk.write("a", 100, [new Uint8Array(100).fill(1)]);
      disk.powerLoss();
      const { length } = disk.read("a");
      expect(length).toBeGreaterThanOrEqual(100);
      lengths.add(length);
    }
    expect(lengths.has(100) && lengths.has(200) && lengths.size > 5).toBe(true);
  });

  it("writes the pages of a sync whose process was killed with the next one", () => {
    const disk = diskWith(512);
    disk.write("a", 0, [Uint8Array.of(5)]);
    disk.beginSync("a");
    disk.beginSync("a")();
    expect(disk.isDurable("a", 0, 512)).toBe(true);
  });

  it("keeps a name only once its directory is synced", () => {
    const kept = new Set<boolean>();
    for (let seed = 0; seed < 50; seed++) {
      const disk = diskWith(512, seed);
      disk.create("b", 512);
      disk.beginSync("b")();
      disk.powerLoss();
      kept.add(disk.names().includes("b"));
      expect(disk.names()).toContain("a");
    }
    expect(kept.size).toBe(2);
  });
});
