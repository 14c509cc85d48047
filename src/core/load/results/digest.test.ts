import { describe, expect, it } from "vitest";
import { digestOf, verdictText } from "./digest.ts";
import { syntheticRun } from "./testing/synthetic-run.ts";

describe("the digest of a load test", () => {
  const summary = syntheticRun();

  it("contains the verdict and the metrics of the run in the report's number format", () => {
    const digest = digestOf({ verdict: "passed", exit_code: 0, summary });
    expect(digest).toMatchObject({ verdict: "passed" });
    const names = digest?.figures.map(([name]) => name);
    expect(names).toEqual(["duration", "requests", "failed", "latency"]);
    expect(new Map(digest?.figures).get("latency")).toMatch(/^p50 .* ms, p95 .* ms, p99 .*, max /);
  });

  it("marks a run whose generator was the limit as untrusted", () => {
    const generator = { ...summary.generator, limited: true };
    const digest = digestOf({ verdict: "passed", summary: { ...summary, generator, lost: [] } });
    expect(digest?.doubt).not.toBeNull();
    expect(digest === null ? "" : verdictText(digest)).toBe("passed, not to be trusted");
  });

  it("leaves out what a large summary omits", () => {
    expect(digestOf({ verdict: "failed", summary: { durationSeconds: 3 } })).toEqual({
      ...{ verdict: "failed", doubt: null, reasons: [], figures: [["duration", "3.00 s"]] },
    });
  });

  it.each([null, 5, "passed", { verdict: "passed" }, { verdict: "odd", summary: {} }])(
    "is null for %j",
    (value) => expect(digestOf(value)).toBeNull(),
  );
});
