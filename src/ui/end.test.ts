import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clean } from "../core/base/terminal-text.ts";
import { marginText } from "../core/load/results/margin.ts";
import type { RunSummary } from "../core/load/results/model.ts";
import { syntheticJob } from "../core/load/results/testing/synthetic-job.ts";
import { endLines } from "./end.ts";
import { linesToText, lineWidth } from "./lines.ts";
import { sgrTable } from "./style.ts";
import { anySummary } from "./testing/arbitrary.ts";
import { SHOP, syntheticSummary } from "./testing/synthetic.ts";

const NO_MESSAGES = { lines: [], dropped: 0 };

function text(summary: RunSummary, columns: number): string {
  return linesToText(endLines({ summary, files: ["out/report.html"] }, columns, NO_MESSAGES), null);
}

describe("the end result", () => {
  it.each([80, 160])("reads well at %d columns", async (columns) => {
    await expect(text(syntheticSummary(30), columns)).toMatchFileSnapshot(
      `testdata/end-${columns}.txt`,
    );
  });

  it("has every value in both widths: the narrow one has two tables", () => {
    const narrow = text(syntheticSummary(30), 80);
    for (const title of [
      "requests",
      "ok",
      "failed",
      "rate",
      "received",
      "sent",
      "p50",
      "p90",
      "p95",
      "p99",
      "p99.9",
      "max",
    ]) {
      expect(narrow).toMatch(new RegExp(`^  step .* ${title.replace(".", "\\.")}( |$)`, "m"));
    }
  });

  it("shows an example below each kind of error", () => {
    const summary = syntheticSummary(30);
    const sample = {
      atSeconds: 1,
      kind: "status",
      status: 503,
      call: "GET /",
      text: "busy\u001b[2J",
    };
    const workflows = summary.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map((step) => ({ ...step, samples: [sample] })),
    }));
    const lines = text({ ...summary, workflows }, 160).split("\n");
    const at = lines.findIndex((line) => /^ {2}status +\d/.test(line));
    expect(lines[at + 1]?.trim()).toBe("e.g. GET / 503 busy");
  });

  it("indents steps below the name of their workflow, and not where there is none", () => {
    const summary = syntheticSummary(30);
    expect(text(summary, 160)).toMatch(/^ {4}home +\d/m);
    expect(text({ ...summary, workflows: summary.workflows.slice(0, 1) }, 160)).toMatch(
      /^ {2}home +\d/m,
    );
  });

  it("says in the verdict that only a part of a cluster answered", () => {
    const lines = text(syntheticJob({ seconds: 5 }), 100)
      .trim()
      .split("\n");
    expect(lines[0]).toBe("PASSED, PARTIAL   examples/shop.ts, spring sale");
    expect(lines[1]).toContain("not to be trusted: the result is partial: dc2 is LOST, and parts");
    expect(lines.at(-1)).toContain("PASSED, PARTIAL, not to be trusted");
    expect(lines.join("\n")).toMatch(/· dc2 LOST: 4 workers, [\d,]+ requests, 0 failed, p95 /);
  });

  it("shows the verdict first, and again at the end when it scrolled away", () => {
    const lines = text(syntheticSummary(30), 80).trim().split("\n");
    expect(lines[0]).toBe("FAILED   examples/shop.ts");
    expect(lines.at(-1)).toBe(" FAILED   ✗ latency.p99 < 50ms: 61.4 ms");
  });

  it("shows service times where they are not the latencies", () => {
    const summary = syntheticSummary(30);
    const services = (of: RunSummary) => text(of, 160).match(/^ +service /gm)?.length ?? 0;
    expect(services(summary)).toBeGreaterThan(0);
    const workflows = summary.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map((step) => ({ ...step, serviceMs: step.latencyMs })),
    }));
    expect(services({ ...summary, workflows })).toBe(0);
  });

  it("shows the whole load of every workflow, however narrow", () => {
    const summary = syntheticSummary(30);
    const load = "10 to 500 virtual users in 30s, then 500 for 5m, then 500 to 0 in 30s";
    const workflows = summary.workflows.map((workflow) => ({ ...workflow, load }));
    for (const columns of [80, 160]) {
      const shown = text({ ...summary, workflows }, columns).replace(/\s+/g, " ");
      for (const { name } of columns === 80 ? workflows : [])
        expect(shown).toContain(`${name}: ${load}`);
      expect(shown).toContain(load);
    }
  });

  it("shows a counter with its rate", () => {
    const summary = syntheticSummary(30);
    const values = { count: 240, ratePerSecond: 30 };
    const metrics = [{ name: "paid", kind: "counter", tags: {}, values }] as const;
    const workflows = summary.workflows.map((workflow) => ({ ...workflow, metrics }));
    expect(text({ ...summary, workflows }, 80)).toMatch(
      / paid +counter +count 240 {2}rate 30\/s\n/,
    );
  });

  it("does not repeat a failed threshold, but shows every other reason", () => {
    const summary = {
      ...syntheticSummary(30),
      reasons: ["threshold latency.p99 < 50ms failed", "workflow checkout failed: boom"],
    };
    expect(text(summary, 80)).not.toContain("threshold latency.p99");
    expect(text(summary, 80)).toContain("• workflow checkout failed: boom");
  });

  it("warns when the generator was the limit or something was lost", () => {
    const base = syntheticSummary(30, { ...SHOP, failing: false });
    const summary: RunSummary = {
      ...base,
      generator: { ...base.generator, limited: true, reason: "core 0 was busy 99 % of the time" },
      lost: [
        {
          core: 1,
          atSeconds: 3.2,
          what: "executor core 1 ended with SIGKILL",
          cost: "32 virtual users are gone",
        },
      ],
    };
    const plain = text(summary, 80).replaceAll(/\n {4}/g, " ");
    expect(plain).toContain(
      "! The load generator was the limit, not the target: core 0 was busy 99 % of the time",
    );
    expect(plain).toContain(
      "! lost at 3.20 s: executor core 1 ended with SIGKILL; 32 virtual users are gone",
    );
  });

  it("keeps to the width for any summary, in colour and plain", () => {
    fc.assert(
      fc.property(anySummary, fc.integer({ min: 1, max: 200 }), (summary, columns) => {
        const width = Math.min(160, Math.max(80, columns));
        const lines = endLines({ summary, files: [] }, columns, { lines: ["m"], dropped: 3 });
        for (const line of lines) {
          const cleaned = line.map((span) => ({ ...span, text: clean(span.text) }));
          expect(lineWidth(cleaned)).toBeLessThanOrEqual(width);
        }
        expect(linesToText(lines, null)).not.toContain("\x1b");
        expect(linesToText(lines, sgrTable("16"))).not.toContain("NaN");
      }),
      { numRuns: 150 },
    );
  });
});

describe("the margin of a threshold", () => {
  const outcome = (
    expression: string,
    actual: number | null,
    passed: boolean,
    actualText = "no data",
  ) =>
    marginText({
      expression,
      actual,
      passed,
      actualText,
      workflow: null,
      implicit: false,
      aborted: false,
    });

  it("is empty where the value is a text", () => {
    expect(outcome("body runs as written", null, false, "as planned (2 times)")).toBe("");
  });

  it.each([
    ["latency.p99 < 200ms", 150, true, "25 % inside the limit"],
    ["latency.p99 < 200ms", 312, false, "56 % beyond the limit"],
    ["latency.p99 < 200ms over 10s", 100, true, "50 % inside the limit"],
    ["rate >= 1000", 1_500, true, "50 % inside the limit"],
    ["rate > 1k", 900, false, "10 % beyond the limit"],
    ["failed.count == 0", 3, false, ""],
    ["failed.count <= 0", 0, true, ""],
    ["checks.rate >= 100%", 100, true, ""],
    ["checks.rate >= 100%", 90, false, "10 % beyond the limit"],
    ["latency.p99 < 200ms", 200, false, "exactly at the limit"],
    ["latency.p99 < 200ms", null, false, "nothing was measured"],
  ])("%s with %s", (expression, actual, passed, text) => {
    expect(outcome(expression, actual, passed)).toBe(text);
  });
});

describe("doubts about a result", () => {
  const summary = syntheticSummary(30);
  const generator = { ...summary.generator, limited: true, reason: "executor core 0 was busy" };

  it.each(["passed", "failed"] as const)("appear in the verdict of a run that %s", (verdict) => {
    const doubtful = { ...summary, verdict, generator };
    const lines = linesToText(endLines({ summary: doubtful, files: [] }, 100, NO_MESSAGES), null);
    const [, head, second] = lines.split("\n");
    expect(head).toContain(verdict.toUpperCase());
    expect(second).toContain("not to be trusted: the load generator was the limit");
    expect(lines.trimEnd().split("\n").at(-1)).toContain(", not to be trusted");
  });
});

describe("the steps of a single workflow", () => {
  it("are at the left edge of their table, below its heading", () => {
    const [first] = SHOP.workflows;
    const one = { ...SHOP, workflows: first === undefined ? [] : [first] };
    const end = { summary: syntheticSummary(30, one), files: [] };
    const lines = linesToText(endLines(end, 160, NO_MESSAGES), null).split("\n");
    const heading = lines.find((text) => /^ *step +requests/.test(text)) ?? "";
    const row = lines.find((text) => /^ *home +[\d,]+ /.test(text)) ?? "";
    expect(row.indexOf("home")).toBe(heading.indexOf("step"));
  });
});

describe("the files", () => {
  const end = {
    summary: syntheticSummary(30),
    files: ["out/report.html", "out/summary.json"],
    reportUrl: "file:///tmp/out/report.html",
  };

  it("link to the report in colour, and not in plain lines", () => {
    const lines = endLines(end, 100, NO_MESSAGES);
    const link = "\x1b]8;;file:///tmp/out/report.html\x1b\\";
    expect(linesToText(lines, sgrTable("16")).split(link)).toHaveLength(2);
    expect(linesToText(lines, null)).not.toContain("\x1b");
  });
});
