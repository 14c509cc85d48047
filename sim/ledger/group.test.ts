import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";
import { REACHED } from "./explore-mutants.ts";
import { hunt, MUTANTS, VARIANTS } from "./group-mutants.ts";
import { walkAndHeal } from "./walk.ts";

/** Found by early seeds; the others take longer and belong to `npm run sim:group -- mutants`. */
const QUICK_SEEDS = 60;
const SLOW = new Set([
  ...["adoptByNormalView", "leaseFromQuorum", "readRound", "readAfterOwnCommit"],
  ...["ackOfThisView", "epochChecked"],
]);

function firstViolation(walks: number, members: number, clocks: "bounded" | "wild" | "noLeases") {
  for (let seed = 0; seed < walks; seed++) {
    const options = { seed, members, spares: 3, steps: 600, clocks };
    const { violation } = walkAndHeal(options);
    if (violation !== null) return `seed ${seed}: ${violation}`;
  }
  return null;
}

describe("walks of one group", () => {
  it("keep every invariant, and the group leads and commits after the heal", () => {
    expect(firstViolation(150, 3, "bounded")).toBeNull();
    expect(firstViolation(50, 5, "bounded")).toBeNull();
  });

  it("keep the log safe without leases (VSR-22)", () => {
    expect(firstViolation(80, 3, "noLeases")).toBeNull();
  });

  it("are the same for the same seed", () => {
    const options = { seed: 7, members: 3, spares: 3, steps: 600 };
    const ids = () => walkAndHeal(options).checks.committed.map(({ eventId }) => eventId);
    expect(ids()).toEqual(ids());
  });
});

describe("planted defects", () => {
  for (const mutant of MUTANTS.filter(({ name }) => !SLOW.has(name))) {
    it(`walks find ${mutant.name}`, () => {
      expect(hunt(mutant, QUICK_SEEDS, false)).not.toBeNull();
    });
  }

  for (const variant of VARIANTS.filter(({ name }) => /^[ABH]/.test(name))) {
    it(`walks find the damage of variant ${variant.name}`, () => {
      expect(hunt(variant, 2_000, true)).not.toBeNull();
    });
  }
});

describe("exhaustive exploration of small scopes", () => {
  it("finds no violation in every schedule of up to nine steps", () => {
    const scope = { members: 3, values: 2, views: 3, crashes: 1, statesMax: 25_000 };
    expect(explore(scope).violation).toBeNull();
  });

  it("holds in every schedule of one value and two views in rounds, seen whole", () => {
    const scope = { members: 3, values: 1, views: 2, crashes: 0, delays: 0, statesMax: 100_000 };
    expect(explore(scope)).toMatchObject({ complete: true, violation: null });
  });

  for (const { name, scope } of REACHED.filter((mutant) => mutant.quick)) {
    it(`finds ${name} by the shortest way`, () => {
      expect(explore({ ...scope, statesMax: 20_000 }).violation).not.toBeNull();
    });
  }
});
