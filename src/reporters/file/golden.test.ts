/**
 * Golden files of everything that other programs read: a change here is a change for them. Renew with
 * `npx vitest run src/reporters/file/golden.test.ts -u` and read the difference.
 */

import { XMLParser } from "fast-xml-parser";
import { describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { framePoints } from "../encoders/point-json.ts";
import { summaryFrame } from "../frame.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";
import { gitlabMetrics } from "./gitlab.ts";
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
    ["metrics.txt", gitlabMetrics(run)],
    [
      "points.ndjson",
      framePoints(summaryFrame(run))
        .map((one) => JSON.stringify(one))
        .join("\n"),
    ],
  ])("of %s do not change by accident", async (name, text) => {
    await expect(text).toMatchFileSnapshot(`./testdata/${name}`);
  });

  it("of GitLab's metrics are called the same in every run, or nothing could be compared", () => {
    const names = (text: string): string[] =>
      text.split("\n").map((line) => line.split(" ")[0] ?? "");
    const next = { ...run, runId: "another", tags: { branch: "another" } };
    expect(names(gitlabMetrics(next))).toEqual(names(gitlabMetrics(run)));
  });

  it("have no percentile where nothing was measured", () => {
    const nothing = { ...syntheticRun({ seed: "nothing", seconds: 1, rate: 0.2 }) };
    const none = { count: 0, min: 0, mean: 0, p50: 0, p75: 0, p90: 0, p95: 0, p99: 0 };
    const empty = { ...none, p99_9: 0, p99_99: 0, max: 0 };
    const workflows = nothing.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map((step) => ({ ...step, latencyMs: empty })),
    }));
    const silent = { ...nothing, workflows };
    expect(summaryMarkdown(silent)).not.toMatch(/\| 0 ms/);
    const points = framePoints(summaryFrame(silent)).filter(
      ({ figure, scope }) => scope === "step" && figure === "latency_ms",
    );
    expect(points.length).toBeGreaterThan(0);
    for (const { values } of points) expect(values).toEqual({ count: 0 });
  });

  it("of summary.xml parse with an independent XML reader, whatever the names", () => {
    const odd = { ...run, name: 'a "b" <c> & \u0000d' };
    const parsed = new XMLParser({ ignoreAttributes: false }).parse(summaryXml(odd));
    expect(parsed.run["@_name"]).toBe('a "b" <c> & d');
    expect(parsed.run.figure).toHaveLength(summaryFrame(run).points.length);
    expect(parsed.run.tag).toMatchObject({ "@_name": "branch", "@_value": "main" });
  });
});
