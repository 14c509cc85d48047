/** Tests of the cluster simulator itself: fault-free runs and determinism. The full proof is `npm run sim:cluster`. */

import { describe, expect, it } from "vitest";
import { PRESSURE_MUTANTS, TIERS_MUTANTS, tiersRulesWithout } from "./mutants.ts";
import { runTiersSeed, type TiersRunOptions } from "./run.ts";

const options = (seed: number, more: Partial<TiersRunOptions> = {}): TiersRunOptions => ({
  seed,
  minutes: 0.25,
  gates: false,
  pressure: false,
  mutant: null,
  profile: null,
  faults: null,
  ...more,
});

describe("a whole datacenter", { timeout: 600_000 }, () => {
  it("runs every job to its end with every call counted when no node fails", () => {
    for (let seed = 1; seed <= 2; seed++) {
      expect(runTiersSeed(options(seed, { faults: [] })).violation).toBe(null);
    }
  });

  it("produces the same trace for the same seed, and another for another", () => {
    const first = runTiersSeed(options(3));
    expect(runTiersSeed(options(3)).hash).toBe(first.hash);
    expect(runTiersSeed(options(4)).hash).not.toBe(first.hash);
  });

  it("names its mutants after existing rules", () => {
    for (const mutant of [...TIERS_MUTANTS, ...PRESSURE_MUTANTS]) {
      expect(tiersRulesWithout(mutant)).not.toEqual(tiersRulesWithout(null));
    }
    expect(() => tiersRulesWithout("worker")).toThrow("unknown mutant");
  });
});
