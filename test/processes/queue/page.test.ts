/** The node's page in a real browser. Screenshots go to HYPERSCALE_SCREENSHOTS when it is set. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { chromiumPath, NO_BROWSER, needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { calmSettings, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const reason = chromiumPath === undefined ? NO_BROWSER : NO_POSTGRES;

describe(
  "queue page in Chromium",
  needs(chromiumPath !== undefined && TestPostgres.available(), reason),
  () => {
    let server: TestPostgres;
    let node: QueueNode;
    let client: QueueClient;
    let browser: Browser;
    let page: Page;

    beforeAll(async () => {
      if (!existsSync(join(root, "dist", "web", "queue.html"))) {
        execFileSync(process.execPath, [join(root, "tools", "build.mjs")]);
      }
      server = await TestPostgres.start();
      node = await startNode({
        database: await server.createDatabase(),
        nodeId: "paris-1",
        settings: calmSettings,
      });
      client = new QueueClient(node.url);
      browser = await chromium.launch({
        executablePath: chromiumPath ?? "",
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
      });
      page = await browser.newPage({ viewport: { width: 1_280, height: 860 } });
      page.setDefaultTimeout(PATIENCE_MS);
    });

    afterAll(async () => {
      await browser?.close();
      client?.close();
      await node?.stop(0);
      await server?.stop();
    });

    async function shot(name: string): Promise<void> {
      const folder = process.env["HYPERSCALE_SCREENSHOTS"];
      if (folder === undefined) return;
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `${name}.png`) });
    }

    it("shows counts, tasks, nodes and the leader, searches, follows a task live and cancels it", async () => {
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(message.text());
      });
      const failed = await client.submit({
        executor: "sleep",
        input: { ms: 5, fail: "the bucket is gone" },
      });
      await client.submitMany(
        Array.from({ length: 30 }, (_, i) => ({ executor: "sleep", input: { ms: i * 20 } })),
      );
      await client.submit({ executor: "render", input: { frame: 7 } });
      const long = await client.submit({ executor: "sleep", input: { ms: 30_000 }, priority: 5 });
      await client.wait(failed.id);
      await page.goto(node.url);
      await page.getByText("led by paris-1, epoch 1").waitFor();
      await page.locator("[data-count=SUCCEEDED]", { hasText: /^30$/ }).waitFor();
      expect(await page.locator("[data-count=FAILED]").textContent()).toBe("1");
      await page.locator(`[data-task="${long.id}"]`).click();
      await page.locator("[data-panel] li").nth(2).waitFor();
      await page.locator("[data-panel] dt", { hasText: "progress" }).waitFor();
      await shot("running");
      await page.getByRole("button", { name: "Cancel task" }).click();
      await page.locator("[data-panel] li", { hasText: "cancelled" }).waitFor();
      expect((await client.get(long.id)).state).toBe("CANCELED");
      await page.getByRole("searchbox").fill("bucket is gone");
      await page.locator(`[data-task="${failed.id}"]`).click();
      await page.locator("[data-panel] li.FAILED").waitFor();
      await expect.poll(() => page.locator("[data-task]").count()).toBe(1);
      await shot("failed");
      await page.getByRole("searchbox").fill("");
      await page.locator("button.count.QUEUED").click();
      await expect.poll(() => page.locator("[data-task]").count()).toBe(1);
      await page.locator("[data-task]").click();
      await page.getByText('no known node can run it: paris-1 has no executor "render"').waitFor();
      await page.emulateMedia({ colorScheme: "dark" });
      await shot("queued-dark");
      expect(problems).toEqual([]);
    });
  },
);
