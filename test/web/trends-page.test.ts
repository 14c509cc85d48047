/** The page of trends in a real browser. Needs Chromium. */

import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { trendsHtml } from "../../src/reporters/file/html.ts";
import { trendPoint } from "../../src/reporters/trends/trends.ts";
import { chromiumPath, NO_BROWSER, needs } from "../needs.ts";
import { Opener } from "./opener.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

describe("trends.html in Chromium", needs(chromiumPath !== undefined, NO_BROWSER), () => {
  const opener = new Opener("trends");
  beforeAll(() => opener.start());
  afterAll(() => opener.stop());

  it("shows runs with links to their reports, the course of steps, and nothing that axe finds", async () => {
    const points = ["a", "b", "c"].map((seed, day) =>
      trendPoint(`run-${seed}`, {
        ...syntheticRun({ seed, seconds: 2, healthy: day < 2, slowdown: 1 + day / 2 }),
        startedAt: `2026-03-1${day}T09:00:00.000Z`,
      }),
    );
    const html = await trendsHtml({ name: "examples/shop.ts", points }, opener.page);
    const { page, problems } = await opener.open(html, { viewport: { width: 390, height: 800 } });
    expect(await page.textContent("h1")).toContain("the last 3 runs");
    expect(await page.locator("#runs tbody tr").count()).toBe(3);
    expect(await page.locator("#steps tbody tr").count()).toBe(7);
    const links = page.locator('svg.runs a[href="./run-c/report.html"]');
    expect(await links.count()).toBe(5);
    expect(await links.first().getAttribute("aria-label")).toContain("failed: p50");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(problems).toEqual([]);
    await page.addScriptTag({ path: AXE });
    const found: string[] = await page.evaluate(
      "axe.run().then(({ violations }) => violations.map(({ id }) => id))",
    );
    expect(found).toEqual([]);
    await page.close();
  });
});
