/**
 * Short seeds with gates and under overload, and planted defects that a few seeds find. All of them: `npm run
 * sim:cluster -- --mutants`.
 */

import { describe, expect, it } from "vitest";
import { runTiersSeed, type TiersRunOptions } from "./run.ts";

const options = (seed: number, more: Partial<TiersRunOptions> = {}): TiersRunOptions => ({
  seed,
  minutes: 0.5,
  gates: false,
  pressure: false,
  mutant: null,
  profile: null,
  faults: null,
  ...more,
});

describe("a datacenter with a planted defect", { timeout: 600_000 }, () => {
  it.each([
    ["manager.releasedAtEnd", ["T4"]],
    ["manager.grantsFreed", ["T3"]],
    ["manager.tokensUnique", ["T2"]],
  ])("is caught without %s in any world", (mutant, ids) => {
    const finds = (seed: number): boolean => {
      const { violation } = runTiersSeed(options(seed, { mutant, faults: [] }));
      return violation !== null && ids.includes(violation.id);
    };
    expect([1, 2, 3, 4].some(finds)).toBe(true);
  });

  it.each([
    ["manager.endToldAgain", "T3"],
    ["manager.lostReleased", "T1"],
    ["manager.ordersRepeated", "DEFECT"],
    ["manager.silenceNoticed", "T16"],
    ["worker.viewFenced", "T9"],
  ])("is caught without %s in seeds that need it, and is sound with it", (rule, id) => {
    const play = (seed: number, mutant: string | null): string | null =>
      runTiersSeed(options(seed, { minutes: 2, profile: rule, mutant })).violation?.id ?? null;
    const seed = [1, 2, 3, 4].find((one) => play(one, rule) === id);
    expect(seed).toBeDefined();
    expect(play(seed ?? 0, null)).toBe(null);
  });
});

describe("datacenters", { timeout: 600_000 }, () => {
  it("run every job to its end through gates", () => {
    expect(runTiersSeed(options(6, { faults: [], gates: true })).violation).toBe(null);
  });

  it("serve, reject and count under overload", () => {
    const { marks, violation } = runTiersSeed(options(2, { pressure: true }));
    expect(violation).toBe(null);
    expect(marks.some((mark) => mark.startsWith("refused."))).toBe(true);
  });
});
