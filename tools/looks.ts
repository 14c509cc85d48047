/**
 * Photographs the report in every state that people meet, to be looked at before it is changed and after:
 * six runs, light and dark, on a desk, a small screen and a phone. Needs Chromium.
 *
 *   npx tsx tools/looks.ts FOLDER [part of a name ...]
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import type { RunSummary } from "../src/core/load/results/model.ts";
import { syntheticJob } from "../src/core/load/results/testing/synthetic-job.ts";
import { syntheticRun } from "../src/core/load/results/testing/synthetic-run.ts";
import { reportHtml } from "../src/reporters/file/html.ts";
import { chromiumPath } from "../test/needs.ts";
import { PATIENCE_MS } from "../test/patience.ts";
import { builtPage } from "../test/web/opener.ts";

const RUNS: Readonly<Record<string, () => RunSummary>> = {
  healthy: () => syntheticRun({ seconds: 300, rate: 0.3, healthy: true }),
  failing: () => syntheticRun({ seconds: 300, rate: 0.3 }),
  errors: () => syntheticRun({ seconds: 300, rate: 0.3, errors: 25 }),
  steps: () => syntheticRun({ seconds: 60, copies: 14, rate: 0.2 }),
  cluster: () => syntheticJob({ seconds: 120, rate: 0.3 }),
  hours: () => syntheticRun({ seconds: 7_200, rate: 0.05 }),
};
const WIDTHS = [1_440, 1_024, 390];
const SCHEMES = ["light", "dark"] as const;

const [folder, ...parts] = process.argv.slice(2);
if (folder === undefined) throw new Error("name a folder for the pictures");
mkdirSync(folder, { recursive: true });
const page = await builtPage("report");
const browser = await chromium.launch({
  executablePath: chromiumPath ?? "",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
for (const [run, summaryOf] of Object.entries(RUNS)) {
  const wanted = SCHEMES.flatMap((colorScheme) =>
    WIDTHS.map((width) => ({ colorScheme, width, name: `${run}-${width}-${colorScheme}` })),
  ).filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)));
  if (wanted.length === 0) continue;
  const file = resolve(folder, `${run}.html`);
  writeFileSync(file, await reportHtml(summaryOf(), { page }));
  for (const { colorScheme, name, width } of wanted) {
    const opened = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    await opened.goto(pathToFileURL(file).href);
    await opened.waitForSelector("h1");
    // Charts are drawn when they come near.
    const height = Number(await opened.evaluate("document.documentElement.scrollHeight"));
    for (let y = 0; y < height; y += 800) {
      await opened.evaluate(`scrollTo(0, ${y})`);
      await opened.waitForTimeout(100);
    }
    await opened.evaluate("scrollTo(0, 0)");
    const path = join(folder, `${name}.png`);
    await opened.screenshot({ path, fullPage: true, timeout: PATIENCE_MS });
    await opened.close();
  }
}
await browser.close();
