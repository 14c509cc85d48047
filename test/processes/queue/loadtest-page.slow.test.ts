/** The queue's page for a person: opened by the printed address, with reasons, verdicts and metrics. */

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { chromiumPath, NO_BROWSER, needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { builtPage } from "../../web/opener.ts";
import { calmSettings, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const TOKEN = "a-token-of-the-page-0123456789";
const reason = chromiumPath === undefined ? NO_BROWSER : NO_POSTGRES;
const able = chromiumPath !== undefined && TestPostgres.available();

describe("the queue page of a load test", needs(able, reason), () => {
  let server: TestPostgres;
  let target: Server;
  let node: QueueNode;
  let client: QueueClient;
  let browser: Browser;

  beforeAll(async () => {
    mkdirSync(join(root, "dist", "web"), { recursive: true });
    writeFileSync(join(root, "dist", "web", "queue.html"), await builtPage("queue"));
    server = await TestPostgres.start();
    target = createServer((_, response) => response.end("ok"));
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    const database = await server.createDatabase();
    node = await startNode({ database, nodeId: "paris-1", token: TOKEN, settings: calmSettings });
    client = new QueueClient(node.url, { token: TOKEN });
    const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
    browser = await chromium.launch({ executablePath: chromiumPath ?? "", args });
  });
  afterAll(async () => {
    await browser?.close();
    client?.close();
    await node?.stop(0);
    target?.closeAllConnections();
    target?.close();
    await server?.stop();
  });

  it("opens by the printed address and shows reasons, live metrics and the verdict", async () => {
    const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    const shoot = async (name: string): Promise<void> => {
      const folder = process.env["HYPERSCALE_SCREENSHOTS"];
      if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
    };

    const { id: stuck } = await client.submit({ executor: "nosuch" });
    expect(node.pageUrl).toBe(`${node.url}/#token=${TOKEN}`);
    await page.goto(node.pageUrl);
    await page.getByText("led by").waitFor();
    expect(page.url()).toBe(`${node.url}/`);

    await page.goto(`${node.url}/#tasks`);
    await page.getByText('no node has the executor "nosuch"').first().waitFor();
    await shoot("tasks-waiting");
    await client.cancel(stuck);

    const { port } = target.address() as AddressInfo;
    const load = ["--rate", "20", "--duration", "4s", "--cores", "1"];
    const input = { file: `http://127.0.0.1:${port}/`, args: load };
    const { id } = await client.submit({ executor: "loadtest", input });
    await page.goto(`${node.url}/#task?id=${id}`);
    await page.getByText("Steps, over the last five seconds").waitFor({ state: "attached" });
    await shoot("loadtest-live");
    const task = await client.wait(id);
    expect(task.state).toBe("SUCCEEDED");
    await page.locator(".task-head .chip", { hasText: "passed" }).waitFor();
    await page.getByText("Result as JSON").waitFor();
    const facts = (await page.locator("dl.facts").allInnerTexts()).join("\n");
    expect(facts).toMatch(/verdict\s+(passed|untrusted)/);
    expect(facts).toMatch(/requests\s+\d+ \(/);
    expect(facts).toMatch(/latency\s+p50 /);
    await shoot("loadtest-end");
    expect(problems).toEqual([]);
  });
});
