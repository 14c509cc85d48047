import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { summaryJson } from "./summary-json.ts";

describe("the text of summary.json", () => {
  it("parses back to the original, whatever its content", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // The formatter does not depend on the fields, so any JSON will do.
        const text = summaryJson(value as unknown as RunSummary);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("keeps a list of numbers on one line and everything else indented", () => {
    const text = summaryJson(syntheticRun({ seconds: 5 }));
    expect(text).toMatch(/\n {12}"requests": \[\d+(, \d+)+\],\n/);
    expect(text.split("\n").length).toBeLessThan(2_500);
    expect(text.endsWith("}\n")).toBe(true);
  });
});
