import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";

const run = syntheticRun({ seconds: 5 });
const records = (text: string): Record<string, string>[] => parse(text, { columns: true });

describe("CSV", () => {
  it("has one line per step with the figures of the summary", () => {
    const rows = records(stepsCsv(run));
    const steps = run.workflows.flatMap((workflow) => workflow.steps);
    expect(rows.map((row) => row["step"])).toEqual(steps.map(({ name }) => name));
    expect(rows.map((row) => Number(row["latency_ms_p99"]))).toEqual(
      steps.map(({ latencyMs }) => latencyMs.p99),
    );
  });

  it("has one line per step and window whose counts add up", () => {
    const rows = records(seriesCsv(run)).filter((row) => row["step"] === "search");
    const search = run.workflows[0]?.steps[1];
    const total = rows.reduce((sum, row) => sum + Number(row["requests"]), 0);
    expect(total).toBe(search?.requests);
  });

  it("keeps names from being read as formulas", () => {
    const [workflow] = run.workflows;
    const [step] = workflow?.steps ?? [];
    if (workflow === undefined || step === undefined) throw new Error("the run has a step");
    for (const begin of "=+-@") {
      const named = { ...workflow, steps: [{ ...step, name: `${begin}1+1` }] };
      const [row] = records(stepsCsv({ ...run, workflows: [named] }));
      expect(row?.["step"]).toBe(`'${begin}1+1`);
    }
  });

  it("leaves cells empty where nothing was measured", () => {
    const [workflow] = run.workflows;
    const step = workflow?.steps[0];
    if (workflow === undefined || step === undefined) throw new Error("the run has steps");
    const silent = { ...step, latencyMs: { ...step.latencyMs, count: 0 } };
    const only = { ...run, workflows: [{ ...workflow, steps: [silent] }] };
    expect(records(stepsCsv(only))[0]?.["latency_ms_p50"]).toBe("");
  });

  it("survives a CSV reader with any name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (name) => {
        const workflows = run.workflows.map((workflow) => ({ ...workflow, name }));
        const text = stepsCsv({ ...run, workflows } satisfies RunSummary);
        const expected = /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;
        expect(records(text)[0]?.["workflow"]).toBe(expected);
      }),
    );
  });
});
