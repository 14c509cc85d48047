import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SUMMARY_SCHEMA } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { decodeSummary, summaryJsonSchema } from "./schema.ts";
import { summaryJson } from "./summary-json.ts";

const docs = (name: string) =>
  readFileSync(new URL(`../../../docs/reference/${name}`, import.meta.url), "utf8");
const run = syntheticRun({ seconds: 5 });
const without = (path: (copy: ReturnType<typeof mutable>) => void): string => {
  const copy = mutable();
  path(copy);
  return JSON.stringify(copy);
};
const mutable = () => JSON.parse(summaryJson(run));

describe("the schema of summary.json", () => {
  it("accepts the summary of a realistic run and gives it back unchanged", () => {
    const decoded = decodeSummary(summaryJson(run));
    expect(decoded).toEqual({ ok: true, summary: run });
  });

  it("lets fields of a later version through", () => {
    const later = without((copy) => {
      copy.workflows[0].steps[0].invented = 1;
    });
    expect(decodeSummary(later).ok).toBe(true);
  });

  it.each([
    ["no JSON", "<html>", /is not JSON/],
    ["JSON of something else", "[1, 2]", /is not a summary/],
    ["null", "null", /is not a summary/],
    ["another version", '{"schema":"hyperscale/summary@9"}', /summary@9.*this version reads/],
    [
      "a missing field",
      without((copy) => {
        delete copy.workflows[1].steps[2].latencyMs.p95;
      }),
      /damaged: workflows\[1\]\.steps\[2\]\.latencyMs\.p95/,
    ],
    [
      "a negative count",
      without((copy) => {
        copy.workflows[0].steps[0].failed = -1;
      }),
      /steps\[0\]\.failed/,
    ],
    [
      "series of different lengths",
      without((copy) => {
        copy.workflows[0].steps[0].series.p95.pop();
      }),
      /series: all arrays .* same length/,
    ],
  ])("rejects %s and says what is wrong", (_, text, problem) => {
    const decoded = decodeSummary(text);
    expect(decoded.ok ? "accepted" : decoded.problem).toMatch(problem);
  });

  it("is the one in docs/reference/summary.schema.json (npx tsx tools/write-schema.ts)", () => {
    expect(JSON.parse(docs("summary.schema.json"))).toEqual(
      JSON.parse(JSON.stringify(summaryJsonSchema())),
    );
  });

  it("has every field explained in docs/reference/results.md", () => {
    const text = docs("results.md");
    const names = new Set(fieldNames(summaryJsonSchema()));
    expect(names.size).toBeGreaterThan(80);
    expect([...names].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
    expect(text).toContain(SUMMARY_SCHEMA);
  });
});

function fieldNames(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const properties =
    "properties" in schema && typeof schema.properties === "object" ? schema.properties : null;
  return [
    ...Object.keys(properties ?? {}),
    ...Object.values(schema).flatMap((value) => fieldNames(value)),
  ].filter((name) => name !== "");
}
