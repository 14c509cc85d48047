import { describe, expect, it } from "vitest";
import {
  type FileResult,
  filesToTimeAlone,
  judge,
  type QuarantineEntry,
  skippedLines,
  withTimesAlone,
} from "./test-verdict.mjs";

const NOW = Date.parse("2026-11-18");
const FLAKY = { file: "a.test.ts", test: "group > flaky" };

function file(rest: Partial<FileResult>): FileResult {
  const names = ["group > flaky", "group > steady"];
  return { file: "a.test.ts", testMs: 100, names, passed: 2, failed: [], skipped: [], ...rest };
}

function verdictOf(one: FileResult, quarantine: readonly QuarantineEntry[] = [], isQuiet = true) {
  const results = { files: [one], outside: 0 };
  return judge(results, { quarantine, nowMs: NOW, isWhole: true, isQuiet });
}

const FAILED = file({ passed: 1, failed: [FLAKY.test] });

describe("the verdict of a test run", () => {
  it("fails for one failed test", () => {
    expect(verdictOf(FAILED)).toMatchObject({ isGreen: false, counts: { passed: 1, failed: 1 } });
  });

  it("passes when the failed test is quarantined, and names it", () => {
    const verdict = verdictOf(FAILED, [{ ...FLAKY, reason: "races", since: "2026-11-05" }]);
    expect(verdict).toMatchObject({ isGreen: true, quarantined: [FLAKY], counts: { failed: 0 } });
  });

  it("fails for another test of a file with a quarantined one", () => {
    const other = file({ passed: 1, failed: ["group > steady"] });
    const verdict = verdictOf(other, [{ ...FLAKY, reason: "races", since: "2026-11-05" }]);
    expect(verdict.isGreen).toBe(false);
  });

  it.each([
    ["an entry older than 14 days", { ...FLAKY, reason: "races", since: "2026-11-03" }, /14 days/],
    ["an entry without a date", { ...FLAKY, reason: "races", since: "" }, /reason and a date/],
    ["an entry without a reason", { ...FLAKY, reason: "", since: "2026-11-17" }, /reason and/],
    [
      "an entry that names no test",
      { ...FLAKY, test: "gone", reason: "races", since: "2026-11-17" },
      /no such test/,
    ],
  ])("fails for %s in the quarantine", (_, entry, problem) => {
    const verdict = verdictOf(file({}), [entry]);
    expect(verdict.problems).toEqual([expect.stringMatching(problem)]);
    expect(verdict.isGreen).toBe(false);
  });

  it("fails for an error outside of any file", () => {
    const results = { files: [file({})], outside: 1 };
    const verdict = judge(results, { quarantine: [], nowMs: NOW, isWhole: true, isQuiet: true });
    expect(verdict.isGreen).toBe(false);
  });

  it.each([
    ["a.test.ts", 10_001, "shorten it or name it *.slow.test.ts"],
    ["a.slow.test.ts", 2_999, "drop .slow from its name"],
  ])("reports %s that takes %d ms on a quiet machine only", (name, testMs, advice) => {
    const one = file({ file: name, testMs });
    expect(verdictOf(one).problems).toEqual([expect.stringContaining(advice)]);
    expect(verdictOf(one, [], false).problems).toEqual([]);
  });

  it("gives files more time on a slow machine, as all of them take longer there", () => {
    const others = Array.from({ length: 70 }, (_, i) =>
      file({ file: `${i}.test.ts`, testMs: 9_000 }),
    );
    const judged = (testMs: number) =>
      judge(
        { files: [...others, file({ testMs })], outside: 0 },
        { quarantine: [], nowMs: NOW, isWhole: true, isQuiet: true },
      );
    expect(judged(12_000).isGreen).toBe(true);
    expect(judged(13_500).problems).toHaveLength(1);
  });

  it("judges a file above the limit by its time alone, and keeps the failures of both runs", () => {
    const beside = file({ testMs: 21_500 });
    const marked = file({ file: "b.slow.test.ts", testMs: 60_000 });
    expect(filesToTimeAlone([beside, marked, file({ file: "c.test.ts" })])).toEqual(["a.test.ts"]);
    const again = (alone: Partial<FileResult>) =>
      withTimesAlone({ files: [beside, marked], outside: 0 }, { files: [file(alone)], outside: 0 });
    const judged = (alone: Partial<FileResult>) =>
      judge(again(alone), { quarantine: [], nowMs: NOW, isWhole: true, isQuiet: true });
    expect(judged({ testMs: 6_000 }).isGreen).toBe(true);
    expect(judged({ testMs: 12_000 }).problems).toHaveLength(1);
    expect(judged({ testMs: 6_000, failed: [FLAKY.test] }).isGreen).toBe(false);
  });

  it("judges no time of a slow file whose tests are skipped", () => {
    const one = file({ file: "a.slow.test.ts", testMs: 1, passed: 0, skipped: ["no x", "no x"] });
    expect(verdictOf(one).isGreen).toBe(true);
  });
});

describe("skipped tests", () => {
  it("are counted by what is missing, with the command that fetches it", () => {
    const redis = "no redis-server (package redis; npm run test:protocols fetches it)";
    const files = [file({ skipped: [redis, "no Chromium"] }), file({ skipped: [redis] })];
    expect(skippedLines(files)).toEqual([
      "skipped: 2 no redis-server, 1 no Chromium",
      "npm run test:protocols fetches the servers and runs those tests",
    ]);
  });

  it("take no line when there are none", () => {
    expect(skippedLines([file({})])).toEqual([]);
  });
});
