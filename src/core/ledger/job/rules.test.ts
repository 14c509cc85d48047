import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { checkLedgerConfig, LEDGER_DEFAULTS } from "./config.ts";
import {
  atLeast,
  DURABILITY_LEVELS,
  type Durability,
  durabilityOfEvent,
  OPERATION_DURABILITY,
  type Operation,
  requiredDurability,
} from "./durability.ts";
import { EVENT_KINDS } from "./events.ts";
import { levelReached, type Placement, placeReplicas, quorumOf, type Site } from "./placement.ts";

const levels = Object.keys(DURABILITY_LEVELS) as Durability[];

describe("durability of operations", () => {
  it("is GLOBAL for jobs, REGIONAL for workflows, LOCAL for progress, NONE for statistics (DUR-1, DUR-3)", () => {
    const groups: Partial<Record<Durability, Operation[]>> = {};
    for (const operation of Object.keys(OPERATION_DURABILITY) as Operation[]) {
      const level = requiredDurability(operation);
      groups[level] = [...(groups[level] ?? []), operation];
    }
    expect(groups).toEqual({
      GLOBAL: ["jobCreate", "jobCancel", "jobComplete", "jobFail", "jobTimeout"],
      REGIONAL: ["jobAccept", "workflowDispatch", "workflowComplete", "workflowCancel"],
      LOCAL: ["progressUpdate"],
      NONE: ["statsReport", "metricsStream"],
    });
    expect(EVENT_KINDS.map((kind) => durabilityOfEvent(kind))).toEqual([
      "GLOBAL",
      "REGIONAL",
      "LOCAL",
      "GLOBAL",
      "GLOBAL",
      "GLOBAL",
      "GLOBAL",
      "GLOBAL",
    ]);
  });

  it("may be raised by callers and never lowered", () => {
    for (const operation of Object.keys(OPERATION_DURABILITY) as Operation[]) {
      for (const asked of levels) {
        const level = requiredDurability(operation, asked);
        expect(atLeast(level, asked)).toBe(true);
        expect(atLeast(level, OPERATION_DURABILITY[operation])).toBe(true);
        expect([asked, OPERATION_DURABILITY[operation]]).toContain(level);
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

  it("says so when one region can hold a quorum", () => {
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

describe("the table of numbers", () => {
  it("holds together", () => {
    expect(() => checkLedgerConfig(LEDGER_DEFAULTS)).not.toThrow();
    const placement = { ...LEDGER_DEFAULTS.placement, replicas: 4 };
    expect(() => checkLedgerConfig({ ...LEDGER_DEFAULTS, placement })).toThrow("odd");
  });

  it("has the documented defaults", () => {
    expect(LEDGER_DEFAULTS).toMatchObject({
      hlcDriftMsMax: 10_000,
      pipeline: { regionalTimeoutMs: 5_000, globalTimeoutMs: 30_000 },
      ackWindow: {
        initialWindowMs: 5_000,
        extensionsMax: 3,
        extensionMs: 5_000,
        healthCheckOnExpire: true,
      },
      breaker: {
        failureThreshold: 5,
        successThreshold: 3,
        openTimeoutMs: 30_000,
        halfOpenProbesMax: 1,
        queueMax: 1_000,
        queueTimeoutMs: 60_000,
      },
      stats: {
        workerBatchIntervalMs: 100,
        workerBatchEventsMax: 1_000,
        managerAggregateIntervalMs: 500,
        managerSampleRate: 0.1,
        gateStatsRetentionMs: 3_600_000,
        gateStatsUseLogger: true,
        statsLogPath: "hyperscale.stats.log.json",
      },
      antiEntropy: { intervalMs: 60_000 },
      session: { stalenessMs: 1_000 },
      archive: { archiveAfterMs: 86_400_000, historyMax: 10_000 },
      placement: { replicas: 3 },
    });
  });
});
