/** Load tests as tasks, from the file on the client's disk to the report that comes back. */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FollowMessage, submitLoadtest, type Task } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const FLOW = `
import { flow, http } from "hyperscale";
import { path } from "./path.ts";
const shop = http.target(process.env["SHOP"] ?? "");
export default flow("shop", { vus: 2, iterations: 40 }, async ({ step }) => {
  await step("home", shop.get(path));
});
`;

/** So that a test of 20 iterations one after the other tells figures, once a second, before it ends. */
const ANSWER_MS = 100;

describe("load tests as tasks", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  let folder: string;
  let target: Server;
  let requests = 0;
  let shop: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-loadtests-"));
    writeFileSync(join(folder, "shop.ts"), FLOW);
    writeFileSync(join(folder, "path.ts"), 'export const path = "/home";\n');
    target = createServer((_, response) => {
      requests++;
      setTimeout(() => response.end("ok"), ANSWER_MS);
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    shop = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    target.closeAllConnections();
    await new Promise((resolve) => target.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });

  async function twoNodes() {
    const database = await bench.database();
    const leader = await bench.node({ database, settings: { ...calmSettings, maxParallel: 0 } });
    await bench.node({ database, role: "worker", settings: calmSettings });
    return { database, leader, client: bench.client(leader) };
  }

  it("sends the file with the task, tells figures while it runs, and keeps summary and report", async () => {
    const { leader, client, database } = await twoNodes();
    requests = 0;
    const options = { args: ["--cores", "1"], env: { SHOP: shop } };
    const task = await submitLoadtest(client, join(folder, "shop.ts"), options);
    const heard: FollowMessage[] = [];
    const done = await client.wait(task.id, undefined, (message) => heard.push(message));
    expect(done).toMatchObject({
      state: "SUCCEEDED",
      result: { verdict: "passed", summary: { workflows: [{ totals: { requests: 40 } }] } },
    });
    expect(requests).toBe(40);
    const figures = heard.filter(({ event }) => event === "progress");
    expect(figures[0]?.data).toMatchObject({ message: { workflows: [{ name: "shop" }] } });

    const files = await client.files(task.id);
    expect(files.map(({ name }) => name)).toEqual(["junit.xml", "report.html", "summary.json"]);
    const summary = files[2] === undefined ? "" : await client.load(files[2]);
    expect(JSON.parse(Buffer.from(summary).toString())).toMatchObject({ verdict: "passed" });
    const page = await fetch(`${leader.url}/tasks/${task.id}/files/report.html`);
    expect(page.headers.get("content-security-policy")).toMatch(/^sandbox allow-scripts;/);
    expect(await page.text()).toMatch(/^<!doctype html>/i);
    expect((await fetch(`${leader.url}/tasks/${task.id}/files/other`)).status).toBe(404);

    // The same file again is stored once.
    await submitLoadtest(client, join(folder, "shop.ts"), { ...options, run_after: 3_600 });
    const stored = await bench.query(database, "select count(*)::int as count from stored_files");
    expect(stored).toEqual([{ count: 4 }]);
  });

  it("fails a task whose threshold failed, with the verdict, and keeps its report", async () => {
    const { client } = await twoNodes();
    const args = ["--cores", "1", "--threshold", "latency.p99<0.0001ms"];
    const task = await submitLoadtest(client, join(folder, "shop.ts"), {
      args,
      env: { SHOP: shop },
    });
    const done = await client.wait(task.id);
    expect(done).toMatchObject({ state: "FAILED", attempt_id: 1 });
    expect(done.error?.message).toMatch(/the load test failed: .*latency/);
    expect((await client.files(task.id)).map(({ name }) => name)).toContain("report.html");
  });

  it("ends the load when the task is cancelled", async () => {
    const { client } = await twoNodes();
    requests = 0;
    const args = ["--rate", "50", "--duration", "10m", "--cores", "1"];
    const task = await submitLoadtest(client, `${shop}/`, { args });
    await eventually("load comes", async () => requests > 20);
    expect((await client.cancel(task.id)).state).toBe("CANCELED");
    await eventually("the load ends", async () => {
      const before = requests;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return requests === before;
    });
  });

  it("bounds files, refuses what is not as it is named, and forgets what nobody uses", async () => {
    const { client, database } = await twoNodes();
    await expect(client.store(Buffer.alloc(64 * 1024 * 1024 + 1))).rejects.toThrow(/the limit is/);
    const large = randomBytes(3 * 1024 * 1024 + 17);
    const hash = await client.store(large);
    const forged = "0".repeat(64);
    const data = Buffer.from("something else").toString("base64");
    await client.call("put_file_chunk", { hash: forged, chunk: 0, data });
    await expect(client.call("put_file", { hash: forged, chunks: 1 })).rejects.toThrow(
      /of another/,
    );
    const chunks = await bench.query(
      database,
      `select octet_length(data) as bytes from stored_file_chunks where hash = '${hash}' order by chunk`,
    );
    expect(chunks.map(({ bytes }) => bytes)).toEqual([1_048_576, 1_048_576, 1_048_576, 17]);
    await bench.query(database, "update stored_files set used_at = 'epoch'");
    await bench.query(database, "update stored_file_chunks set added_at = 'epoch'");
    await bench.node({ database, settings: { leaderLeaseMs: 1_000 } });
    const task = await submitLoadtest(client, join(folder, "shop.ts"), { run_after: 3_600 });
    await bench.query(database, "update stored_files set used_at = 'epoch'");
    // A new leader looks after files first thing.
    await client.call("set_role", { role: "observer" });
    const left = await eventually("unused files are removed", async () => {
      const rows = await bench.query(database, "select hash from stored_files");
      return rows.length === 1 ? rows : undefined;
    });
    const { bundle } = (await client.get(task.id)).input as Task["input"] & { bundle: string };
    expect(left).toEqual([{ hash: bundle }]);
    expect(await bench.query(database, "select distinct hash from stored_file_chunks")).toEqual([
      { hash: bundle },
    ]);
  });
});
