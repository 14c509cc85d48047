/** The report as a person meets it: opened from disk in a real browser. Needs Chromium. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatCount, formatMs, formatPercent } from "../../src/core/load/results/format.ts";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { CELLS_TOLD_MAX } from "../../src/core/load/results/over-time.ts";
import { syntheticJob } from "../../src/core/load/results/testing/synthetic-job.ts";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { compareRuns, METRICS } from "../../src/reporters/compare/compare.ts";
import { reportHtml } from "../../src/reporters/file/html.ts";
import { chromiumPath, NO_BROWSER, needs } from "../needs.ts";
import { measuredStep, rawQuantile, runOf } from "./measured-step.ts";
import { builtPage, Opener } from "./opener.ts";

const PAGE_BYTES_MAX = 200_000;
const REPORT_BYTES_MAX = 1_500_000;
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Six steps of one workflow and four of the other, with more cells in their windows than a run reports. */
function tenSteps(seconds: number): RunSummary {
  const run = syntheticRun({ seconds, copies: 2, rate: 0.6 });
  const [browse, checkout] = run.workflows;
  if (browse === undefined || checkout === undefined) throw new Error("a run has two workflows");
  return {
    ...run,
    workflows: [
      { ...browse, steps: browse.steps.slice(0, 6) },
      { ...checkout, steps: checkout.steps.slice(0, 4) },
    ],
  };
}

function cellsOf({ workflows }: RunSummary): number {
  const windows = workflows.flatMap(({ steps }) => steps.flatMap((step) => step.windows ?? []));
  return windows
    .flatMap(({ histograms }) => histograms)
    .reduce((sum, { count }) => sum + count.length, 0);
}

describe("the report page without data", () => {
  it("is small and asks for nothing outside itself", async () => {
    const page = await builtPage("report");
    expect(Buffer.byteLength(page)).toBeLessThan(PAGE_BYTES_MAX);
    const sources = [...page.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]*)"/g)];
    expect(sources.map(([, address]) => address)).toEqual(["data:,"]);
  });

  it("takes ten minutes of ten busy steps in less than 1.5 MB", async () => {
    const page = await builtPage("report");
    const run = tenSteps(600);
    expect(cellsOf(run)).toBeGreaterThan(CELLS_TOLD_MAX);
    const html = await reportHtml(run, { page });
    expect(Buffer.byteLength(html)).toBeLessThan(REPORT_BYTES_MAX);
  });
});

describe("report.html in Chromium", needs(chromiumPath !== undefined, NO_BROWSER), () => {
  const opener = new Opener("report");
  beforeAll(() => opener.start());
  afterAll(() => opener.stop());

  const open = async (summary: RunSummary, options = {}, fragment = "") =>
    opener.open(await reportHtml(summary, { page: opener.page }), options, fragment);

  /** Value of a metric in the page's headline. */
  const figure = (page: Page, name: string) =>
    page.locator(`.figures > div:has(dt:text-is("${name}")) dd`).first().textContent();
  const rows = (page: Page) =>
    page
      .locator("#steps > .scroll tbody th")
      .evaluateAll((all) => all.map((one) => one.textContent));
  const hash = (page: Page) => new URL(page.url()).hash;
  const linesShown = (page: Page, chart: string) =>
    page.locator(`[data-chart="${chart}"] .legend-item:not(.faded)`).count();

  it("draws every chart from disk, without a console message or a request", async () => {
    const { page, problems, requests } = await open(syntheticRun({ seconds: 20 }));
    await page.evaluate('dispatchEvent(new Event("beforeprint"))');
    await page.waitForFunction('document.querySelectorAll("canvas").length >= 15');
    const pixels: number[] = await page.evaluate(
      // As text: the browser's names are not ours.
      `[...document.querySelectorAll("canvas")].map((canvas) =>
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
          .filter((value, index) => index % 4 === 3 && value > 0).length)`,
    );
    expect(Math.min(...pixels)).toBeGreaterThan(1_000);
    expect(await page.locator("svg.histogram rect").count()).toBeGreaterThan(10);
    expect(problems).toEqual([]);
    expect(requests).toHaveLength(1);
    await page.close();
  });

  it("shows verdict, doubt, limits, losses and what failed", async () => {
    const { page } = await open(syntheticRun({ seconds: 20 }));
    const text = await page.textContent("body");
    for (const part of [
      "Failed examples/shop.ts",
      "Not to be trusted: the load generator was the limit, not the target",
      "Executor core 1 ended with SIGKILL.",
      "latency{step=pay}.p99 < 200ms",
      "beyond the limit",
      "target missed",
      "search finds something",
      "results_per_search",
      "rate 73.5 %",
      "no complete answer in time",
      '{"error":"try again later"}',
      "503",
      "AMD EPYC 7B13",
    ]) {
      expect(text).toContain(part);
    }
    await page.close();
  });

  it("shows the percentiles of a zoomed range equal to its raw samples", async () => {
    const measured = measuredStep("zoom", 60, 300);
    const { page } = await open(runOf(measured), {}, "#time?t=10-25");
    const raw = measured.samples.filter(({ atSeconds }) => atSeconds >= 10 && atSeconds < 25);
    const latencies = raw.map(({ us }) => us / 1_000);
    expect(await figure(page, "Requests")).toBe(formatCount(raw.length));
    // To the digits of the text: a cell's middle may round to a neighbour.
    const shown = Number.parseFloat((await figure(page, "p99")) ?? "");
    const exact = rawQuantile(latencies, 0.99);
    expect(Math.abs(shown - Number.parseFloat(formatMs(exact))) / exact).toBeLessThan(0.01);
    // The legends show the same values for the same calls.
    const legend = await page.locator('[data-chart="latency"] .legend').textContent();
    expect(legend).toContain(`p99 ${await figure(page, "p99")}`);
    await page.close();
  });

  it("zooms all charts and metrics by dragging, and back by a double click", async () => {
    const { page } = await open(syntheticRun({ seconds: 60 }), {}, "#time");
    const whole = await figure(page, "Requests");
    const plot = page.locator('[data-chart="rate"] .u-over');
    await plot.scrollIntoViewIfNeeded();
    const box = await plot.boundingBox();
    if (box === null) throw new Error("the chart is drawn");
    await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 5 });
    await page.mouse.up();
    await expect.poll(() => hash(page)).toMatch(/t=20-3[56]/);
    expect(await figure(page, "Requests")).not.toBe(whole);
    expect(await page.textContent("#steps h2")).toContain("in this stretch");
    // The other buttons keep the current view.
    await page.click("text=linear");
    expect(hash(page)).toMatch(/t=20-3[56]/);
    await plot.dblclick();
    await expect.poll(() => hash(page)).not.toContain("t=");
    expect(await figure(page, "Requests")).toBe(whole);
    await page.close();
  });

  it("isolates a line, sorts and filters steps, folds cards, and has it all in the address", async () => {
    const { page } = await open(syntheticRun({ seconds: 20 }));
    const all = await linesShown(page, "steps-latency");
    await page.locator('[data-chart="steps-latency"] button.legend-item').first().click();
    expect(await linesShown(page, "steps-latency")).toBe(1);
    expect(all).toBe(7);

    await page.click('#steps th button:has-text("p95")');
    expect((await rows(page))[0]).toContain("pay");
    expect(await page.locator("#steps th[aria-sort=descending]").textContent()).toContain("p95");
    await page.fill("#steps input", "checkout");
    expect(await rows(page)).toHaveLength(3);

    const card = page.locator('article[aria-label="Step checkout / sign in"]');
    await page.click('#steps button:has-text("checkout / sign in")');
    expect(await card.count()).toBe(1);
    const link = page.url();
    await card.locator("button.close").click();
    expect(await card.count()).toBe(0);

    const { page: other } = await opener.goTo(link);
    expect(await other.locator('article[aria-label="Step checkout / sign in"]').count()).toBe(1);
    expect(await rows(other)).toHaveLength(3);
    expect((await rows(other))[0]).toContain("pay");
    expect(await linesShown(other, "steps-latency")).toBe(1);
    await page.close();
    await other.close();
  });

  it("reads every chart by keyboard alone, and as a table", async () => {
    const { page } = await open(syntheticRun({ seconds: 20 }), {}, "#time");
    await page.evaluate('dispatchEvent(new Event("beforeprint"))');
    const sliders = page.locator('[role="slider"]');
    const count = await sliders.count();
    expect(count).toBeGreaterThan(12);
    for (let at = 0; at < count; at++) {
      const slider = sliders.nth(at);
      await slider.focus();
      await page.keyboard.press("Home");
      const first = await slider.getAttribute("aria-valuetext");
      await page.keyboard.press("ArrowRight");
      expect(await slider.getAttribute("aria-valuetext")).not.toBe(first);
      expect(first).toMatch(/^\d+:\d\d/);
    }
    await sliders.first().focus();
    await page.keyboard.press("+");
    expect(hash(page)).toContain("t=");
    await page.keyboard.press("Escape");
    expect(hash(page)).not.toContain("t=");
    // Each chart, drawn on a canvas or not, has its table.
    const charts = await page.locator("figure.chart").count();
    const toggles = page.locator('figure.chart button:has-text("table")');
    expect(await toggles.count()).toBe(charts);
    for (let at = 0; at < charts; at++) await toggles.nth(at).click();
    expect(await page.locator("figure.chart .chart-table tbody tr").count()).toBeGreaterThan(
      charts,
    );
    await page.close();
  });

  it("draws a baseline below the charts and shows the change of every step with its interval", async () => {
    const [before, after] = [
      syntheticRun({ seconds: 40, seed: "before", healthy: true }),
      syntheticRun({ seconds: 40, seed: "after", healthy: true, slowdown: 1.5 }),
    ];
    const options = { limit: 0.05, errorLimit: 0.001, metrics: METRICS };
    const comparison = compareRuns(before, after, options);
    const baseline = { summary: before, file: "results/before", comparison };
    const html = await reportHtml(after, { page: opener.page, baseline });
    const { page, problems } = await opener.open(html, {}, "#compare");
    expect(await page.locator("#compare tbody tr").first().textContent()).toContain("regression");
    await page.click('#compare button:has-text("show all")');
    expect(await page.locator("#compare tbody tr").count()).toBe(comparison.rows.length);
    const text = await page.textContent("#compare");
    expect(text).toContain(`${comparison.regressions} regressions`);
    expect(text).toMatch(/\+4\d\.\d % … \+5\d\.\d %/);
    for (const [chart, line] of [
      ["rate", "baseline requests"],
      ["latency", "baseline p95"],
    ]) {
      expect(await page.locator(`[data-chart="${chart}"] .legend`).textContent()).toContain(line);
    }
    expect(await page.locator("#steps > .scroll thead").textContent()).toContain("p95 change");
    expect(problems).toEqual([]);
    await page.close();
  });

  it("shows what only a part of a cluster did, lost nodes and leaders", async () => {
    const { page, problems } = await open(syntheticJob({ seconds: 20, rate: 0.3 }));
    expect(await page.textContent("h1")).toContain("Passed in part");
    expect(await page.textContent(".doubt")).toContain("the result is partial: dc2 is LOST");
    const text = await page.textContent("#cluster");
    for (const part of [
      "job-7f2a",
      "60 %",
      "LOST",
      "at most 310",
      "dc2-w1",
      "begun within 12.0 ms",
    ])
      expect(text).toContain(part);
    expect(await page.textContent(".events")).toContain("gate-2 leads the job after gate-1");
    expect(problems).toEqual([]);
    await page.close();
  });

  it("shows response times in ranges whose bounds the reader chooses", async () => {
    const measured = measuredStep("ranges", 60, 300);
    const { page } = await open(runOf(measured));
    const legend = () => page.locator('figure:has-text("in ranges") .legend').textContent();
    expect(await legend()).toContain("≤ 800 ms");
    const bounds = page.locator(".range-bounds input");
    await bounds.fill("10ms, 1s");
    await bounds.press("Tab");
    await expect.poll(() => hash(page)).toContain("ranges=10ms");
    const fast = measured.samples.filter(({ failed, us }) => !failed && us <= 10_000).length;
    expect(await legend()).toContain(`≤ 10.0 ms ${formatPercent(fast / measured.samples.length)}`);
    await bounds.fill("1s, 10ms");
    await bounds.press("Tab");
    expect(await bounds.getAttribute("aria-invalid")).toBe("true");
    await page.close();
  });

  it("leads from a broken threshold to when it was broken", async () => {
    const { page } = await open(syntheticRun({ seconds: 60 }));
    const pay = page.locator('.reasons li:has-text("step=pay")');
    expect(await pay.textContent()).toContain("of the time");
    await pay.locator("a").first().click();
    await expect.poll(() => hash(page)).toMatch(/^#time\?.*t=/);
    await page.close();
  });

  it("shows the first of many rows until all are asked for", async () => {
    const { page } = await open(syntheticRun({ seconds: 5, copies: 14, rate: 0.2 }));
    expect(await rows(page)).toHaveLength(30);
    await page.click('#steps button:has-text("show all 98 rows")');
    expect(await rows(page)).toHaveLength(98);
    await page.close();
  });

  it("keeps a table as a file that other programs read", async () => {
    const { page, problems } = await open(syntheticRun({ seconds: 5 }), { bypassCSP: false });
    const downloaded = page.waitForEvent("download");
    await page.click('#steps button:has-text("csv")');
    const file = await (await downloaded).path();
    const [head = "", first = ""] = readFileSync(file, "utf8").split("\r\n");
    expect(head).toMatch(/^"Step","Rate over time","Requests","Rate","Failed","p50"/);
    expect(first).toMatch(/^"browse \/ home page","","[\d,]+"/);
    expect(problems).toEqual([]);
    await page.close();
  });

  it("follows the system's colours until the reader chooses, and keeps the stretch", async () => {
    const { page } = await open(
      syntheticRun({ seconds: 20 }),
      { colorScheme: "dark" },
      "#time?t=10-15",
    );
    const theme = () => page.evaluate("document.documentElement.dataset.theme");
    expect(await theme()).toBe("dark");
    await page.click('.segments button:text-is("light")');
    expect(await theme()).toBe("light");
    expect(hash(page)).toContain("t=10-15");
    await page.click('.segments button:text-is("auto")');
    expect(await theme()).toBe("dark");
    await page.close();
  });

  it.each([1440, 1024, 390])("is %d pixels wide without scrolling sideways", async (width) => {
    const base = syntheticRun({ seconds: 10, copies: 14, rate: 0.2 });
    const long =
      "GET /api/v2/customers/{customer}/orders/{order}/items?expand=prices,taxes,shipping";
    const { page } = await open(
      {
        ...base,
        workflows: base.workflows.map((workflow) => ({
          ...workflow,
          steps: workflow.steps.map((step) => ({ ...step, name: `${long} ${step.name}` })),
        })),
      },
      { viewport: { width, height: 900 } },
    );
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    await page.locator('nav[aria-label="Sections"] a:has-text("Errors")').click();
    expect(hash(page)).toMatch(/^#errors/);
    await page.close();
  });

  it.each([
    ["a failing run, light", { seconds: 10 }, "light"],
    ["a failing run, dark", { seconds: 10 }, "dark"],
    ["a healthy run", { seconds: 10, healthy: true }, "light"],
    ["a run of many errors", { seconds: 10, errors: 25 }, "dark"],
    ["a job of a cluster", "job", "dark"],
    ["many steps", { seconds: 10, copies: 4, rate: 0.2 }, "light"],
    ["two hours", { seconds: 7_200, rate: 0.01 }, "light"],
  ] as const)("has nothing that axe finds: %s", async (_, options, colorScheme) => {
    const summary =
      options === "job" ? syntheticJob({ seconds: 10, rate: 0.3 }) : syntheticRun(options);
    const { page } = await open(summary, { colorScheme });
    await page.locator('figure.chart button:has-text("table")').first().click();
    await page.addScriptTag({ path: AXE });
    const found: string[] = await page.evaluate(
      `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target }) => id + ": " + target.join(" "))))`,
    );
    expect(found).toEqual([]);
    await page.close();
  });

  it("shows hostile names as text", async () => {
    const evil = `</script><script>document.title="owned"</script><img src=x onerror=alert(1)>&$'`;
    const base = syntheticRun({ seconds: 5 });
    const { page, problems, requests } = await open({
      ...base,
      name: evil,
      workflows: base.workflows.map((workflow) => ({ ...workflow, name: evil })),
    });
    expect(await page.title()).toContain(evil.slice(0, 20));
    expect(await page.textContent("h1")).toContain(evil);
    expect(problems).toEqual([]);
    expect(requests).toHaveLength(1);
    await page.close();
  });

  it("shows a run in which nothing finished, one without workflows, and one of an earlier version", async () => {
    const base = syntheticRun({ seconds: 1, rate: 0 });
    const { page, problems } = await open({ ...base, thresholds: [], verdict: "interrupted" });
    expect(await page.textContent("body")).toContain("No request of this step finished.");
    expect(problems).toEqual([]);
    const { page: bare, problems: none } = await open({ ...base, workflows: [] });
    expect(await bare.textContent("h1")).toContain("Failed");
    expect(none).toEqual([]);
    const full = syntheticRun({ seconds: 5 });
    const { page: old, problems: few } = await open({
      ...full,
      totals: undefined,
      workflows: full.workflows.map((workflow) => ({
        ...workflow,
        loadSeries: undefined,
        steps: workflow.steps.map((step) => ({ ...step, windows: undefined })),
      })),
    });
    expect(await figure(old, "p95")).not.toBe("–");
    expect(few).toEqual([]);
    for (const one of [page, bare, old]) await one.close();
  });
});
