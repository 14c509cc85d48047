import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { AntiEntropy } from "./anti-entropy.ts";
import { ANTI_ENTROPY_DEFAULTS } from "./config.ts";
import { atLeast, DURABILITY_LEVELS, type Durability, durabilityOfEvent } from "./durability.ts";
import { EVENT_KINDS } from "./events.ts";
import { MerkleTree } from "./merkle.ts";
import { levelReached, type Placement, placeReplicas, quorumOf, type Site } from "./placement.ts";

const levels = Object.keys(DURABILITY_LEVELS) as Durability[];

describe("durability of events", () => {
  it("is GLOBAL for the start and end of a job, less for repeatable events (DUR-1, DUR-3)", () => {
    const lower = EVENT_KINDS.map((kind) => [kind, durabilityOfEvent(kind)]).filter(
      ([, level]) => level !== "GLOBAL",
    );
    expect(lower).toEqual([
      ["JobAccepted", "REGIONAL"],
      ["JobProgressReported", "LOCAL"],
      ["JobQueued", "REGIONAL"],
      ["JobDispatched", "REGIONAL"],
      ["JobSetUpValue", "REGIONAL"],
      ["JobPaused", "REGIONAL"],
      ["JobResumed", "REGIONAL"],
      ["JobScaled", "REGIONAL"],
    ]);
  });

  it("may be raised by callers and never lowered", () => {
    for (const kind of EVENT_KINDS) {
      for (const asked of levels) {
        const level = durabilityOfEvent(kind, asked);
        expect(atLeast(level, asked)).toBe(true);
        expect(atLeast(level, durabilityOfEvent(kind))).toBe(true);
        expect([asked, durabilityOfEvent(kind)]).toContain(level);
      }
    }
  });
});

describe("placement", () => {
  const sites = (...regions: string[]): Site[] =>
    regions.map((region, at) => ({ node: nodeId(`g${at}`), region }));
  const placed = (candidates: readonly Site[], replicas = 3): Placement => {
    const result = placeReplicas(candidates, { replicas, fewGates: "single" });
    if (!result.ok) throw new Error(result.refusal.code);
    return result.placement;
  };
  const names = ({ replicas }: Placement): string => replicas.map(({ node }) => node).join(" ");

  it("spreads over regions in ring order, the ring's first being the first primary", () => {
    expect(names(placed(sites("us", "us", "eu", "us", "ap")))).toBe("g0 g2 g4");
    expect(placed(sites("us", "us", "eu", "us", "ap")).everyCommitIsGlobal).toBe(true);
    expect(names(placed(sites("us", "us", "us", "eu", "us", "ap", "ap"), 5))).toBe(
      "g0 g1 g3 g5 g6",
    );
  });

  it("warns when one region can form a quorum alone", () => {
    const two = placed(sites("us", "us", "eu"));
    expect([names(two), two.everyCommitIsGlobal]).toEqual(["g0 g1 g2", false]);
    expect(placed(sites("us", "us", "us")).everyCommitIsGlobal).toBe(false);
  });

  it("with too few gates takes one replica or none, by configuration (VSR-28)", () => {
    expect(placed(sites("us", "eu"))).toMatchObject({ quorum: 1, everyCommitIsGlobal: false });
    expect(names(placed(sites("us", "eu")))).toBe("g0");
    for (const count of [0, 1, 2]) {
      const candidates = sites(..."abc".slice(0, count));
      expect(placeReplicas(candidates, { replicas: 3, fewGates: "refuse" })).toEqual({
        ok: false,
        refusal: { code: "TOO_FEW_GATES", available: count },
      });
    }
    expect(names(placed(sites("a", "b", "c", "d"), 5))).toBe("g0 g1 g2");
  });

  it("leaves no region with a quorum whenever the regions allow it (VSR-29, S-21)", () => {
    const candidates = fc.array(fc.constantFrom("a", "b", "c", "d"), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(candidates, fc.constantFrom(3, 5, 7), (regions, count) => {
        const placement = placed(sites(...regions), count);
        const { quorum, replicas } = placement;
        expect(new Set(replicas).size).toBe(replicas.length);
        expect(quorum).toBe(quorumOf(replicas.length));
        expect(2 * quorum).toBeGreaterThan(replicas.length);
        // No choice of that many replicas has a smaller fullest region.
        const room = [...new Set(regions)].map((region) => regions.filter((it) => it === region));
        let fullest = 1;
        const fits = (most: number): number =>
          room.reduce((sum, { length }) => sum + Math.min(length, most), 0);
        while (fits(fullest) < replicas.length) fullest++;
        expect(placement.everyCommitIsGlobal).toBe(fullest < quorum);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    [[], 3, "NONE"],
    [["us"], 3, "LOCAL"],
    [["us"], 1, "LOCAL"],
    [["us", "us"], 3, "REGIONAL"],
    [["us", "eu"], 3, "GLOBAL"],
    [["us", "us", "eu"], 3, "GLOBAL"],
    [["us", "eu"], 5, "LOCAL"],
    [["us", "us", "us"], 5, "REGIONAL"],
    [["us", "us", "eu"], 5, "GLOBAL"],
  ] as const)("acks from %j of a group of %i prove %s", (regions, groupSize, level) => {
    expect(levelReached(sites(...regions), groupSize)).toBe(level);
  });
});

describe("the numbers of comparison", () => {
  it.each([
    [{}, null],
    [{ intervalJitter: 1 }, "jitter leaves an interval"],
    [{ roundGapMs: 50_000 }, "the gap fits"],
    [{ fetchesMax: 0 }, "can be fetched"],
  ])("%j: %s", (changes, problem) => {
    const config = { ...ANTI_ENTROPY_DEFAULTS, ...changes };
    const made = () => new AntiEntropy(new MerkleTree(), config, new Random("numbers"));
    if (problem === null) expect(made).not.toThrow();
    else expect(made).toThrow(problem);
  });
});
