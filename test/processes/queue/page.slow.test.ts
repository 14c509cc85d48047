/** The node's page in a real browser. Screenshots go to HYPERSCALE_SCREENSHOTS when it is set. */

import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NotRetryable, QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { chromiumPath, NO_BROWSER, needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { builtPage } from "../../web/opener.ts";
import { calmSettings, fastEnvironment, NodeProcess, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const reason = chromiumPath === undefined ? NO_BROWSER : NO_POSTGRES;

describe(
  "queue page in Chromium",
  needs(chromiumPath !== undefined && TestPostgres.available(), reason),
  () => {
    let server: TestPostgres;
    let node: QueueNode;
    let client: QueueClient;
    let browser: Browser;

    beforeAll(async () => {
      mkdirSync(join(root, "dist", "web"), { recursive: true });
      writeFileSync(join(root, "dist", "web", "queue.html"), await builtPage("queue"));
      server = await TestPostgres.start();
      node = await startNode({
        database: await server.createQueue(),
        nodeId: "paris-1",
        settings: calmSettings,
        executors: {
          refuse: (_, { log }) => {
            log("looking for the bucket");
            throw new NotRetryable("the bucket is gone", { cause: new Error("no route to it") });
          },
        },
      });
      client = new QueueClient(node.url);
      browser = await chromium.launch({
        executablePath: chromiumPath ?? "",
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
      });
    });

    afterAll(async () => {
      await browser?.close();
      client?.close();
      await node?.stop(0);
      await server?.stop();
    });

    async function open(place: string, options: object = {}, url = node.url) {
      const page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, ...options });
      page.setDefaultTimeout(PATIENCE_MS);
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(message.text());
      });
      await page.goto(`${url}/${place}`);
      await page.waitForSelector("h1");
      return { page, problems };
    }

    const rows = (page: Page) => page.locator("[data-task]");
    const hash = (page: Page) => new URL(page.url()).hash;
    const press = (page: Page, name: string) => page.getByRole("button", { name }).click();
    const confirm = (page: Page, name: string) =>
      page.locator("dialog").getByRole("button", { name }).click();

    async function shot(page: Page, name: string): Promise<void> {
      const folder = process.env["HYPERSCALE_SCREENSHOTS"];
      if (folder === undefined) return;
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `${name}.png`) });
    }

    it("leads from counts to tasks to one task, follows it live and cancels it once it is sure", async () => {
      const done = Array.from({ length: 30 }, (_, i) => ({ executor: "sleep", input: { ms: i } }));
      await client.submitMany(done);
      const long = await client.submit({ executor: "sleep", input: { ms: 60_000 }, priority: 5 });
      const { page, problems } = await open("");
      await page.getByText("led by paris-1, epoch 1").waitFor();
      await page.locator("[data-count=SUCCEEDED]", { hasText: /^30$/ }).waitFor();
      await page.locator(".tile", { hasText: "running" }).getByRole("link").click();
      expect(hash(page)).toBe("#tasks?state=RUNNING");
      await rows(page).getByRole("link").first().click();
      expect(hash(page)).toBe(`#task?id=${long.id}`);
      await page.locator("#progress").waitFor();
      await shot(page, "running");
      await press(page, "Cancel task");
      await confirm(page, "Back");
      expect((await client.get(long.id)).state).toBe("RUNNING");
      await press(page, "Cancel task");
      await confirm(page, "Cancel it");
      await page.locator("#history li", { hasText: "cancelled" }).waitFor();
      expect((await client.get(long.id)).state).toBe("CANCELLED");
      await page.goBack();
      expect(hash(page)).toBe("#tasks?state=RUNNING");
      expect(problems).toEqual([]);
      await page.close();
    });

    it("shows errors in the list, attempts with errors, and sends the chosen ones back", async () => {
      const failed = await client.submit({ executor: "refuse", input: { box: 7 } });
      const other = await client.submit({ executor: "refuse", input: { box: 8 } });
      for (const { id } of [failed, other]) await client.wait(id);
      const { page, problems } = await open("#tasks?state=FAILED");
      const row = page.locator("tr", { has: page.locator(`[data-task="${failed.id}"]`) });
      expect(await row.textContent()).toMatch(/failed1\/3.* (ms|µs|s)the bucket is gone/);
      await page.getByLabel(`Select task ${failed.id}`).check();
      await press(page, "Retry the chosen");
      await confirm(page, "Retry");
      await page.getByText("1 task queued again.").waitFor();
      await page.goto(`${node.url}/#task?id=${failed.id}`);
      await page.locator("#attempts tbody tr").nth(1).waitFor();
      expect(await page.textContent("#attempts")).toContain("because of no route to it");
      expect(await page.textContent("#attempts")).toContain("Stack");
      await page.locator("#log", { hasText: "attempt 2" }).getByText("the bucket").waitFor();
      await page.locator("#attempts").getByRole("link", { name: "1 line" }).last().click();
      await page.locator("#log", { hasText: "attempt 1" }).waitFor();
      await page.goto(`${node.url}/#tasks?executor=refuse`);
      await page.getByRole("searchbox", { name: "Search" }).fill('"box": 8');
      await expect.poll(() => rows(page).count()).toBe(1);
      expect(hash(page)).toContain("search=");
      await press(page, "Delete all that fit");
      await confirm(page, "Delete");
      await page.getByText("1 task deleted.").waitFor();
      await expect(client.get(other.id)).rejects.toThrow(/no task/);
      expect(problems).toEqual([]);
      await page.close();
    });

    it("goes through pages and rows by keyboard, and an address shows the same to another reader", async () => {
      const waiting = Array.from({ length: 70 }, (_, i) => ({ executor: "nobody", input: i }));
      const ids = (await client.submitMany(waiting)).map((one) => ("id" in one ? one.id : ""));
      const { page } = await open("#tasks?executor=nobody");
      await expect.poll(() => rows(page).count()).toBe(50);
      await page.locator("tbody th a").first().focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await expect.poll(() => hash(page)).toBe(`#task?id=${ids.at(-2)}`);
      await page.getByText('no node has the executor "nobody"').first().waitFor();
      await page.goBack();
      await page.getByRole("link", { name: "Older" }).click();
      await expect.poll(() => rows(page).count()).toBe(20);
      const { page: second } = await open(hash(page));
      await expect.poll(() => rows(second).count()).toBe(20);
      expect(await second.locator("[data-task]").last().getAttribute("data-task")).toBe(ids[0]);
      expect(await second.textContent("h1")).toContain("51–70");
      for (const one of [page, second]) await one.close();
    });

    it("pauses a queue, runs, pauses and removes a schedule, and draws what the node kept", async () => {
      await client.limitQueue("mail", { concurrency: 2 });
      await client.putSchedule("nightly", "0 3 * * *", { executor: "sleep", input: { ms: 1 } });
      const { page, problems } = await open("#queues");
      await press(page, "Pause mail");
      await page.getByText("mail is paused").waitFor();
      expect((await client.queues()).find(({ queue }) => queue === "mail")?.paused).toBe(true);
      await press(page, "Resume mail");
      await page.goto(`${node.url}/#schedules`);
      await press(page, "Run now nightly");
      await page.getByText(/Task \d+ submitted/).waitFor();
      await press(page, "Pause nightly");
      await page.getByText("nightly is paused").waitFor();
      expect(await client.schedules()).toMatchObject([{ schedule_id: "nightly", paused: true }]);
      await shot(page, "schedules-paused");
      await press(page, "Resume nightly");
      await page.getByText("nightly ticks again").waitFor();
      expect(await client.schedules()).toMatchObject([{ paused: false }]);
      await press(page, "Remove nightly");
      await confirm(page, "Remove");
      await page.getByText("No schedules.").waitFor();
      await page.goto(`${node.url}/#overview`);
      const chart = page.locator('[data-chart="throughput"] [role=slider]');
      await chart.focus();
      await page.keyboard.press("End");
      expect(await chart.getAttribute("aria-valuetext")).toMatch(
        /^\d\d:\d\d:\d\d: submitted .*\/s/,
      );
      expect(problems).toEqual([]);
      await page.close();
    });

    it.each([
      [1_440, "light"],
      [390, "dark"],
    ] as const)(
      "has nothing that axe finds, and no sideways scroll: %d, %s",
      async (width, colorScheme) => {
        const [task] = await client.list({ executor: "refuse" });
        const zone = { time_zone: "America/Argentina/Buenos_Aires" };
        const weekly = { executor: "sleep", input: { ms: 1 } };
        await client.putSchedule("weekly-report-of-the-warehouse", "30 4 * * 1", weekly, zone);
        for (const view of [
          "overview",
          "tasks",
          `task?id=${task?.id}`,
          "queues",
          "schedules",
          "nodes",
        ]) {
          const viewport = { width, height: 860 };
          const { page } = await open(`#${view}`, { colorScheme, viewport, bypassCSP: true });
          await page.locator(".leadership b").waitFor();
          await expect.poll(() => page.getByText("Loading").count()).toBe(0);
          await page.addScriptTag({ path: AXE });
          const found: string[] = await page.evaluate(
            `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) =>
            nodes.map(({ target }) => id + ": " + target.join(" "))))`,
          );
          expect(found).toEqual([]);
          expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
          await shot(page, `${view.replace(/\W.*/, "")}-${width}-${colorScheme}`);
          await page.close();
        }
      },
    );

    it("reports that a node does not answer, and continues when it is back", async () => {
      const database = await server.createQueue();
      const args = ["--database", database, "--node-id", "rome-1"];
      const process = new NodeProcess(args, fastEnvironment);
      const { url } = await process.ready;
      const task = await client.submit({ executor: "nobody" });
      const rome = new QueueClient(url);
      const waiting = await rome.submit({ executor: "nobody" });
      const { page } = await open(`#task?id=${waiting.id}`, {}, url);
      await page.getByText("led by rome-1").waitFor();
      await process.end();
      await page.getByText("This node does not answer").waitFor();
      await page.getByText(/No answer for \d+ s\. What is shown here is as of/).waitFor();
      expect(await page.textContent(".leadership")).toBe("no answer");
      const port = ["--listen", new URL(url).host];
      const again = new NodeProcess([...args, ...port], fastEnvironment);
      await again.ready;
      await page.getByText("This node does not answer").waitFor({ state: "detached" });
      await rome.cancel(waiting.id);
      await page.locator(".task-head", { hasText: "cancelled" }).waitFor();
      rome.close();
      await client.cancel(task.id);
      await again.end();
      await page.close();
    });

    it("asks for the token, and opens with it", async () => {
      const database = await server.createQueue();
      const guarded = await startNode({ database, token: "open sesame", settings: calmSettings });
      const { page } = await open("#nodes", {}, guarded.url);
      await page.getByLabel("Token").fill("open sesame");
      await press(page, "Open");
      await page.getByText("healthy").waitFor();
      expect(hash(page)).toBe("#nodes");
      await page.close();
      await guarded.stop(0);
    });
  },
);
