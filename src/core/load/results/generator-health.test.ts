import { describe, expect, it } from "vitest";
import { Histogram } from "../stats/histogram.ts";
import {
  type GeneratorFacts,
  generatorHealth,
  generatorTitle,
  lateShares,
} from "./generator-health.ts";
import type { CoreHealth } from "./model.ts";

const core = (number: number, cpu: number, lateShare = 0, blockedShare = 0): CoreHealth => ({
  core: number,
  cpu,
  lagMsP50: 0,
  lagMsP99: 1,
  lagMsMax: 1,
  lateShare,
  blockedShare,
  residentBytes: 0,
  alive: true,
});

const facts = (
  cores: readonly CoreHealth[],
  more: Partial<GeneratorFacts> = {},
): GeneratorFacts => ({
  cores,
  cpus: 2,
  arrivalsMissed: 0,
  rowWaits: [],
  isAnswered: true,
  ...more,
});

describe("a generator that is the limit", () => {
  it.each<readonly [string, GeneratorFacts, string]>([
    ["busy", facts([core(0, 0.2), core(1, 0.9)]), "executor core 1 used 90 % of its CPU"],
    ["blocked by its own code", facts([core(0, 0.2, 0.2, 0.2)]), "more than 50 ms late for 20 %"],
    [
      "missing arrivals while busy",
      facts([core(0, 0.8)], { arrivalsMissed: 12 }),
      "12 arrivals were never started",
    ],
    ["crowded", facts([0, 1, 2].map((at) => core(at, 0.61))), "used 91.5 % of 2 CPUs"],
  ])("is saturated when %s", (_, given, reason) => {
    const health = generatorHealth(given);
    expect([health.cause, health.limited]).toEqual(["saturated", true]);
    expect(health.reason).toContain(reason);
  });

  it("lets users wait for rows", () => {
    const rowWaits = [{ workflow: "shop", waitedMs: 3_000, userMs: 10_000 }];
    const health = generatorHealth(facts([core(0, 0.2)], { rowWaits }));
    expect([health.cause, health.limited]).toEqual(["data", true]);
    expect(health.reason).toContain('users of "shop" spent 30 % of their time waiting for rows');
  });
});

it("is not judged by a short wait for rows or a slow start", () => {
  const rowWaits = [{ workflow: "shop", waitedMs: 900, userMs: 1_000 }];
  expect(generatorHealth(facts([core(0, 0.2)], { rowWaits })).cause).toBe(null);
  const lag = new Histogram();
  for (let at = 0; at < 49; at++) lag.record(60_000);
  expect(lateShares(lag, lag)).toEqual({ lateShare: 0, blockedShare: 0 });
  lag.record(60_000);
  expect(lateShares(lag, lag)).toEqual({ lateShare: 1, blockedShare: 1 });
});

it("is only disturbed, and not the limit, when other programs kept it late", () => {
  const health = generatorHealth(facts([core(0, 0.2, 0.12, 0.01)]));
  expect([health.cause, health.limited]).toEqual(["noisy", false]);
  expect(health.reason).toContain("other programs kept this machine busy");
  expect(generatorTitle(health)).toBe("Other programs disturbed the load generator");
});

it.each<readonly [string, GeneratorFacts]>([
  ["idle", facts([core(0, 0.2)], { arrivalsMissed: 5 })],
  ["busy without missing", facts([core(0, 0.89)])],
  ["late as on a shared runner", facts([core(0, 0.3, 0.09, 0.04)])],
  ["many and idle", facts([0, 1, 2].map((at) => core(at, 0.5)))],
  [
    "crowded over several machines",
    facts(
      [0, 1, 2].map((at) => core(at, 0.7)),
      { cpus: 0 },
    ),
  ],
  ["a short wait for rows", facts([], { rowWaits: [{ workflow: "w", waitedMs: 4, userMs: 100 }] })],
  ["absent", facts([])],
  ["busy with calls that nobody answered", facts([core(0, 0.97, 0.5, 0.5)], { isAnswered: false })],
])("is trusted when %s", (_, given) => {
  expect(generatorHealth(given)).toMatchObject({ cause: null, limited: false, reason: null });
});

it("derives shares of the time from samples of 10 ms", () => {
  const [lag, own] = [new Histogram(), new Histogram()];
  lag.record(1_000, 800);
  for (let ms = 10; ms <= 200; ms += 10) lag.record(ms * 1_000, 10);
  own.record(60_000, 50);
  expect(lateShares(lag, own)).toEqual({ lateShare: 0.15, blockedShare: 0.05 });
});
