/**
 * Golden files of everything that other programs read: a change here is a change for them. Renew
 * with `npx vitest run src/reporters/file/golden.test.ts -u` and read the difference.
 */

import { describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/run/results/testing/synthetic-run.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";
import { junitXml } from "./junit.ts";
import { summaryJson } from "./summary-json.ts";

const run = syntheticRun({ seed: "golden", seconds: 1, rate: 0.2 });

describe("the bytes of the results files", () => {
  it.each([
    ["summary.json", summaryJson(run)],
    ["junit.xml", junitXml(run)],
    ["steps.csv", stepsCsv(run)],
    ["series.csv", seriesCsv(run)],
  ])("of %s do not change by accident", async (name, text) => {
    await expect(text).toMatchFileSnapshot(`./testdata/${name}`);
  });
});
