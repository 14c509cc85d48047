/** The page as a person meets it: opened from disk in a real browser. Needs Chromium. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, NO_BROWSER, needs } from "../../../test/needs.ts";
import { PATIENCE_MS } from "../../../test/patience.ts";
import type { RunSummary } from "../../core/run/results/model.ts";
import { syntheticRun } from "../../core/run/results/testing/synthetic-run.ts";
import { insertSummary } from "./html.ts";

const PAGE_BYTES_MAX = 150_000;
const root = new URL("../../../", import.meta.url);

async function builtPage(): Promise<string> {
  const { buildPage }: { buildPage: (folder: string, entry: string) => Promise<string> } =
    await import(new URL("tools/build-page.mjs", root).href);
  const folder = fileURLToPath(new URL("web/report", root));
  return buildPage(folder, join(folder, "main.tsx"));
}

describe("the report page without data", () => {
  it("is small and asks for nothing outside itself", async () => {
    const page = await builtPage();
    expect(Buffer.byteLength(page)).toBeLessThan(PAGE_BYTES_MAX);
    const sources = [...page.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]*)"/g)];
    expect(sources.map(([, address]) => address)).toEqual(["data:,"]);
  });
});

describe("report.html in Chromium", needs(chromiumPath !== undefined, NO_BROWSER), () => {
  let place = "";
  let html = "";
  let browser: Browser;

  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), "hyperscale-report-"));
    html = await builtPage();
    const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
    browser = await chromium.launch({ executablePath: chromiumPath ?? "", args });
  });
  afterAll(async () => {
    await browser?.close();
    await rm(place, { recursive: true, force: true });
  });

  interface Opened {
    readonly page: Page;
    readonly problems: string[];
    readonly requests: string[];
  }

  async function open(summary: RunSummary, options = {}): Promise<Opened> {
    const file = join(place, "report.html");
    await writeFile(file, insertSummary(html, summary));
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    page.setDefaultTimeout(PATIENCE_MS);
    const problems: string[] = [];
    const requests: string[] = [];
    page.on("console", (message) => problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(pathToFileURL(file).href);
    return { page, problems, requests };
  }

  /** Pixels of each canvas that are not transparent. As text: the browser's names are not ours. */
  const drawn = (page: Page): Promise<number[]> =>
    page.evaluate(`[...document.querySelectorAll("canvas")].map((canvas) =>
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
        .filter((value, index) => index % 4 === 3 && value > 0).length)`);

  it("draws every chart from disk, without a console message or a request", async () => {
    const { page, problems, requests } = await open(syntheticRun({ seconds: 20 }));
    await page.evaluate('dispatchEvent(new Event("beforeprint"))');
    await page.waitForFunction('document.querySelectorAll("canvas").length >= 16');
    const pixels = await drawn(page);
    expect(pixels).toHaveLength(2 + 2 * 7);
    expect(Math.min(...pixels)).toBeGreaterThan(1_000);
    expect(await page.$$eval("svg.histogram rect", (bars) => bars.length)).toBeGreaterThan(100);
    expect(problems).toEqual([]);
    expect(requests).toHaveLength(1);
    await page.close();
  });

  it("shows verdict, limits, losses and what failed", async () => {
    const { page } = await open(syntheticRun({ seconds: 20 }));
    const text = await page.textContent("body");
    for (const part of [
      "Failed examples/shop.ts",
      "The load generator was the limit, not the target",
      "Executor core 1 ended with SIGKILL.",
      "latency{step:pay}.p99 < 200ms",
      "target missed",
      "search finds something",
      "results_per_search",
      "rate 73.5 %",
      "no complete answer in time",
      "503",
      "AMD EPYC 7B13",
    ]) {
      expect(text).toContain(part);
    }
    await page.close();
  });

  it("follows the system's colours until the reader chooses", async () => {
    const { page } = await open(syntheticRun({ seconds: 5 }), { colorScheme: "dark" });
    const theme = () => page.evaluate("document.documentElement.dataset.theme");
    expect(await theme()).toBe("dark");
    await page.click("text=light");
    expect(await theme()).toBe("light");
    await page.click("text=auto");
    expect(await theme()).toBe("dark");
    await page.close();
  });

  it("fits a phone without scrolling sideways", async () => {
    const viewport = { width: 400, height: 800 };
    const { page } = await open(syntheticRun({ seconds: 5 }), { viewport });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    await page.close();
  });

  it("labels every chart, and gives every table headers and a caption", async () => {
    const { page } = await open(syntheticRun({ seconds: 5 }));
    const unlabelled =
      '[role="img"]:not([aria-label]), table:not(:has(caption)), table:not(:has(th))';
    expect(await page.$$(unlabelled)).toHaveLength(0);
    expect(await page.$$('[role="img"]')).not.toHaveLength(0);
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

  it("shows a run in which nothing finished", async () => {
    const base = syntheticRun({ seconds: 1, rate: 0 });
    const { page, problems } = await open({ ...base, thresholds: [], verdict: "interrupted" });
    expect(await page.textContent("body")).toContain("No request of this step finished.");
    expect(problems).toEqual([]);
    const { page: bare, problems: none } = await open({ ...base, workflows: [] });
    expect(await bare.textContent("h1")).toContain("Failed");
    expect(none).toEqual([]);
    await page.close();
    await bare.close();
  });
});
