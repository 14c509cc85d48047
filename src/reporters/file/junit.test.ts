import fc from "fast-check";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../core/load/results/model.ts";
import { syntheticJob } from "../../core/load/results/testing/synthetic-job.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { escapeXml, junitXml } from "./junit.ts";

interface Case {
  readonly name: string;
  readonly classname: string;
  readonly failure?: { readonly message: string; readonly "#text": string };
  readonly error?: { readonly message: string };
  readonly skipped?: { readonly message: string };
  readonly "system-out"?: string;
}
interface Suite {
  readonly name: string;
  readonly tests: string;
  readonly failures: string;
  readonly errors: string;
  readonly skipped: string;
  readonly timestamp: string;
  readonly testcase: readonly Case[];
}
interface Suites {
  readonly tests: string;
  readonly failures: string;
  readonly errors: string;
  readonly testsuite: readonly Suite[];
}

function parse(xml: string): Suites {
  expect(XMLValidator.validate(xml)).toBe(true);
  const parser = new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: "",
    parseAttributeValue: false,
    parseTagValue: false,
    trimValues: false,
    htmlEntities: true,
    isArray: (name) => name === "testsuite" || name === "testcase",
  });
  return parser.parse(xml).testsuites;
}

const failing = syntheticRun({ seconds: 5 });
const healthy = syntheticRun({ seconds: 5, healthy: true });
const casesOf = (run: RunSummary) => parse(junitXml(run)).testsuite.flatMap((s) => s.testcase);

describe("junit.xml", () => {
  it("is red for a job that only a part of the cluster ran, however well that part went", () => {
    const job = syntheticJob({ seconds: 5 });
    const [run] = parse(junitXml(job)).testsuite;
    const [completes] = run?.testcase ?? [];
    expect(job.verdict).toBe("passed");
    expect(completes?.error?.message).toBe("the result is partial: dc2 is LOST");
    expect(junitXml(job)).toContain("worker dc2-w3 was lost");
    expect(junitXml(job)).toContain('name="cluster.requestsNotCounted" value="310"');
  });

  it("has a suite for the run and one per workflow, with thresholds and checks as cases", () => {
    const { testsuite } = parse(junitXml(failing));
    expect(testsuite.map(({ name }) => name)).toEqual([
      "examples/shop.ts",
      "examples/shop.ts / browse",
      "examples/shop.ts / checkout",
    ]);
    expect(testsuite[1]?.testcase.map(({ name }) => name)).toEqual([
      "workflow completes",
      "threshold: latency{step=search}.p99 < 400ms",
      "check: home page is complete",
      "check: search finds something",
    ]);
    expect(testsuite[0]?.timestamp).toBe("2026-03-14T09:26:53");
  });

  it("names expression and actual value of a failed threshold", () => {
    const failed = casesOf(failing).find(({ name }) => name.includes("step=pay"));
    expect(failed?.failure?.message).toMatch(/^expected latency\{step=pay\}\.p99 < 200ms, actual /);
    expect(failed?.failure?.["#text"]).toContain("actual:");
  });

  it("adds its counts up", () => {
    const { testsuite, ...totals } = parse(junitXml(failing));
    const sum = (key: "tests" | "failures" | "errors") =>
      testsuite.reduce((total, suite) => total + Number(suite[key]), 0);
    expect([totals.tests, totals.failures, totals.errors].map(Number)).toEqual([
      sum("tests"),
      sum("failures"),
      sum("errors"),
    ]);
    for (const suite of testsuite) {
      expect(suite.testcase.length).toBe(Number(suite.tests));
      expect(suite.testcase.filter((each) => each.failure).length).toBe(Number(suite.failures));
    }
  });

  it("is green for a run that passed, though a check failed within its threshold", () => {
    const checks = [{ name: "mostly fine", passed: 99, failed: 1 }];
    const [first, ...rest] = healthy.workflows;
    if (first === undefined) throw new Error("the run has workflows");
    const cases = casesOf({ ...healthy, workflows: [{ ...first, checks }, ...rest] });
    expect(cases.filter(({ failure, error }) => failure ?? error)).toEqual([]);
    const check = cases.find(({ name }) => name === "check: mostly fine");
    expect(check?.["system-out"]).toContain("1 of 100 failed (1 %)");
  });

  it("is red for every run that did not pass", () => {
    const bare = { ...healthy, thresholds: [] };
    for (const verdict of ["failed", "interrupted"] as const) {
      const cases = casesOf({ ...bare, verdict, reasons: ["because"] });
      expect(cases.some(({ failure, error }) => (failure ?? error)?.message === "because")).toBe(
        true,
      );
    }
  });

  it("distinguishes a failed workflow from one that never ran", () => {
    const [first, second] = healthy.workflows;
    if (first === undefined || second === undefined) throw new Error("the run has workflows");
    const broken = { ...first, status: "failed", error: "set-up threw" } as const;
    const skipped = { ...second, status: "not run", error: "it depends on browse" } as const;
    const cases = casesOf({ ...healthy, verdict: "failed", workflows: [broken, skipped] });
    expect(cases.find(({ error }) => error)?.error?.message).toBe("set-up threw");
    expect(cases.find(({ skipped: s }) => s)?.skipped?.message).toBe("it depends on browse");
  });

  it("carries any text that XML can represent", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const run: RunSummary = {
          ...failing,
          name: `n${text}`,
          thresholds: failing.thresholds.map((each) => ({ ...each, expression: text })),
        };
        const { testsuite } = parse(junitXml(run));
        const shown = text
          .replace(/\p{Surrogate}/gu, "\ufffd")
          .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
        expect(testsuite[0]?.name).toBe(`n${shown}`);
        expect(testsuite[0]?.testcase[1]?.name).toBe(`threshold: ${shown}`);
      }),
    );
  });

  it("escapes all markup", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(escapeXml(text)).not.toMatch(/[<>"']|&(?!#\d+;|amp;|lt;|gt;|quot;|apos;)/);
      }),
    );
  });
});
