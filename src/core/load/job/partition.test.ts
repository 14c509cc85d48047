import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  PRIORITIES,
  type Priority,
  parsePriority,
  partition,
  sideBySide,
  threadRange,
} from "./partition.ts";

const tests = (...priorities: Priority[]) =>
  priorities.map((priority, at) => ({ name: `w${at}`, priority, isTest: true }));
const threads = (pool: number, ...priorities: Priority[]) =>
  partition(pool, tests(...priorities)).map((batch) => batch.map((one) => one.threads));

describe("thread ranges", () => {
  it.each<[Priority, string, string, string]>([
    ["low", "1-6", "1-2", "1-1"],
    ["normal", "6-18", "2-6", "1-1"],
    ["high", "18-24", "6-8", "1-1"],
    ["exclusive", "24-24", "8-8", "1-1"],
    ["auto", "1-24", "1-8", "1-1"],
  ])("of %s", (priority, ...expected) => {
    const shown = [24, 8, 1].map((pool) => {
      const { min, max } = threadRange(priority, pool);
      return `${min}-${max}`;
    });
    expect(shown).toEqual(expected);
  });
});

describe("partition of a pool", () => {
  it.each<[Priority[], number[][]]>([
    [["high", "low"], [[18, 6]]],
    [["high", "normal"], [[18, 6]]],
    [["normal", "low"], [[18, 6]]],
    [["auto", "auto"], [[12, 12]]],
    [["auto", "low"], [[18, 6]]],
    [["normal", "auto", "low"], [[9, 9, 6]]],
    [["auto"], [[24]]],
    [
      ["high", "high"],
      [[24], [24]],
    ],
    [
      ["exclusive", "low"],
      [[24], [6]],
    ],
  ])("of 24 for %j (PRIO-3)", (priorities, expected) => {
    expect(threads(24, ...priorities)).toEqual(expected);
  });

  it("gives a single normal workflow its maximum and a single auto one everything", () => {
    expect(threads(8, "normal")).toEqual([[6]]);
    expect(threads(8, "auto")).toEqual([[8]]);
  });

  it("puts workflows that measure nothing first, outside the arithmetic (PRIO-4)", () => {
    const setup = { name: "setup", priority: "auto" as const, isTest: false };
    expect(partition(4, [...tests("auto"), setup])).toEqual([
      [{ name: "setup", priority: "auto", threads: 0 }],
      [{ name: "w0", priority: "auto", threads: 4 }],
    ]);
  });

  it("keeps every workflow once, inside its range, and no batch above the pool", () => {
    const candidates = fc.array(
      fc.record({ priority: fc.constantFrom(...PRIORITIES), isTest: fc.boolean() }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), candidates, (pool, list) => {
        const workflows = list.map((one, at) => ({ ...one, name: `w${at}` }));
        const batches = partition(pool, workflows);
        expect(
          batches
            .flat()
            .map(({ name }) => name)
            .sort(),
        ).toEqual(workflows.map(({ name }) => name).sort());
        expect(partition(pool, workflows)).toEqual(batches);
        for (const batch of batches) {
          expect(batch.reduce((sum, one) => sum + one.threads, 0)).toBeLessThanOrEqual(pool);
          const exclusive = batch.some((one) => one.priority === "exclusive" && one.threads > 0);
          if (exclusive) expect(batch).toHaveLength(1);
          for (const { name, priority, threads } of batch) {
            if (workflows.find((one) => one.name === name)?.isTest !== true) {
              expect(threads).toBe(0);
              continue;
            }
            const { min, max } = threadRange(priority, pool);
            expect(threads).toBeGreaterThanOrEqual(min);
            expect(threads).toBeLessThanOrEqual(max);
          }
        }
      }),
    );
  });
});

describe("a pool that can grow", () => {
  it.each<[number, Priority[], number[][]]>([
    [24, ["high", "low"], [[18, 6]]],
    [24, ["auto"], [[24]]],
    [24, ["high", "high"], [[18, 18]]],
    [1, ["auto", "auto", "low"], [[1, 1, 1]]],
    [2, ["auto", "auto", "auto"], [[1, 1, 1]]],
    [4, ["normal", "normal", "auto"], [[2, 1, 1]]],
    [4, ["low", "exclusive", "high", "exclusive"], [[4], [4], [3, 1]]],
  ])("of %i has slots for all of %j at once, except exclusive ones", (pool, list, expected) => {
    const batches = sideBySide(pool, tests(...list));
    expect(batches.map((batch) => batch.map(({ threads }) => threads))).toEqual(expected);
  });

  it("keeps every workflow once and inside its range, in one batch", () => {
    const priority = fc.constantFrom(...PRIORITIES);
    const pools = fc.integer({ min: 1, max: 64 });
    fc.assert(
      fc.property(pools, fc.array(priority, { maxLength: 12 }), (pool, list) => {
        const batches = sideBySide(pool, tests(...list));
        const names = batches.flat().map(({ name }) => name);
        expect(names.sort()).toEqual(list.map((_, at) => `w${at}`).sort());
        expect(batches.filter((batch) => batch[0]?.priority !== "exclusive").length).toBeLessThan(
          2,
        );
        for (const { priority, threads } of batches.flat()) {
          const { min, max } = threadRange(priority, pool);
          expect(threads).toBeGreaterThanOrEqual(min);
          expect(threads).toBeLessThanOrEqual(max);
        }
      }),
    );
  });
});

describe("priorities", () => {
  it("are parsed case-insensitively, and a typo is explained", () => {
    expect(parsePriority(" High ")).toEqual({ ok: true, priority: "high" });
    expect(parsePriority("hihg")).toEqual({
      ok: false,
      problem: '"hihg" is not a priority; did you mean "high"?',
    });
    expect(parsePriority(3)).toEqual({
      ok: false,
      problem: "3 is not a priority; use one of exclusive, high, normal, auto, low",
    });
  });
});
