/**
 * Golden files of everything that other programs read: a change here is a change for them. Renew
 * with `npx vitest run src/reporters/file/golden.test.ts -u` and read the difference.
 */

import { XMLParser } from "fast-xml-parser";
import { describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/run/results/testing/synthetic-run.ts";
import { framePoints } from "../encoders/point-json.ts";
import { prometheusText } from "../encoders/prometheus-text.ts";
import { summaryFrame } from "../frame.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";
import { junitXml } from "./junit.ts";
import { summaryMarkdown } from "./markdown.ts";
import { summaryJson } from "./summary-json.ts";
import { summaryXml } from "./xml.ts";

const run = syntheticRun({ seed: "golden", seconds: 1, rate: 0.2 });

describe("the bytes of the results files", () => {
  it.each([
    ["summary.json", summaryJson(run)],
    ["junit.xml", junitXml(run)],
    ["steps.csv", stepsCsv(run)],
    ["series.csv", seriesCsv(run)],
    ["summary.xml", summaryXml(run)],
    ["summary.md", summaryMarkdown(run)],
    ["metrics.txt", prometheusText([summaryFrame(run)])],
    [
      "points.ndjson",
      framePoints(summaryFrame(run))
        .map((one) => JSON.stringify(one))
        .join("\n"),
    ],
  ])("of %s do not change by accident", async (name, text) => {
    await expect(text).toMatchFileSnapshot(`./testdata/${name}`);
  });

  it("of summary.xml are XML that another reader takes, whatever names hold", () => {
    const odd = { ...run, name: 'a "b" <c> & \u0000d' };
    const parsed = new XMLParser({ ignoreAttributes: false }).parse(summaryXml(odd));
    expect(parsed.run["@_name"]).toBe('a "b" <c> & d');
    expect(parsed.run.figure).toHaveLength(summaryFrame(run).points.length);
  });
});
