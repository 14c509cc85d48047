import { describe, expect, it } from "vitest";
import { againBlock, filesToRunAgain } from "./test-again.mjs";

const system = (file: string) => ({ file, project: "system", tests: ["a > b"] });

describe("what failed in a whole run", () => {
  it("is run again when it is a few files of processes", () => {
    const files = ["a.test.ts", "b.test.ts", "c.test.ts"].map(system);
    expect(filesToRunAgain({ files, isElsewhere: false })).toEqual([
      ...["a.test.ts", "b.test.ts", "c.test.ts"],
    ]);
  });

  it("stands when it is a unit test, many files, or outside of any file", () => {
    const unit = { file: "u.test.ts", project: "unit", tests: [] };
    const many = ["a", "b", "c", "d"].map(system);
    for (const failed of [
      { files: [system("a.test.ts"), unit], isElsewhere: false },
      { files: many, isElsewhere: false },
      { files: [system("a.test.ts")], isElsewhere: true },
    ])
      expect(filesToRunAgain(failed)).toEqual([]);
  });

  it("is named with how it went alone, and counted so", () => {
    const one = { passed: 1, failed: 0, skipped: 0 };
    const none = { passed: 0, failed: 1, skipped: 0 };
    const outcomes = [
      { file: "a.test.ts", tests: ["x > y"], passed: true, counts: none, alone: one },
      { file: "b.test.ts", tests: [], passed: false, counts: none, alone: none },
    ];
    const whole = { passed: 10, failed: 2, skipped: 3 };
    expect(againBlock(outcomes, whole).split("\n")).toEqual([
      ...["", "failed beside others, and then alone:"],
      ...["  passed a.test.ts", "    x > y", "  failed b.test.ts"],
      ...["", "11 passed, 1 failed, 3 skipped", ""],
    ]);
    expect(againBlock(outcomes.slice(0, 1), { ...whole, failed: 1 })).toMatch(
      /mend it\n\n11 passed, 0 failed/,
    );
    expect(againBlock([], whole)).toBe("");
  });
});
