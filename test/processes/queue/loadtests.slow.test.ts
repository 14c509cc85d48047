/** Load tests as tasks, from the file on the client's disk to the report that comes back. */

import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FollowMessage, submitLoadtest } from "../../../src/queue/index.ts";
import { Scratch } from "../../e2e/cli.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const FLOW = `
import { flow, http } from "hyperscalejs";
import { path } from "./path.ts";
const shop = http.target(process.env["SHOP"] ?? "");
export default flow("shop", { vus: 2, iterations: 40 }, async ({ step }) => {
  await step("home", shop.get(path));
});
`;

/** Reads a file beside it, one above it, and all of a folder. */
const SEARCH = `
import { feed, file, flow, http } from "hyperscalejs";
const shop = http.target(process.env["SHOP"] ?? "");
const words = feed.csv("words.csv", { columns: { word: String } });
const pictures = feed.files("../pictures/*");
const form = { note: file("../note.txt") };
export default flow("search", { vus: 1, iterations: 6, data: { words, pictures } }, async ({ data, step }) => {
  await step("search", shop.get("/search", { params: { q: data.words.word } }));
  await step("upload", shop.post("/upload", { form: { ...form, picture: file(data.pictures.path) } }));
});
`;

/** Slow enough that a test of 20 iterations one after the other reports metrics, once a second, before it ends. */
const ANSWER_MS = 100;

/** A busy machine passes its thresholds and is not trusted. */
const PASSED = expect.stringMatching(/^(passed|untrusted)$/);

describe("load tests as tasks", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  let folder: string;
  let target: Server;
  let requests = 0;
  const heardOf: string[] = [];
  let shop: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-loadtests-"));
    writeFileSync(join(folder, "shop.ts"), FLOW);
    writeFileSync(join(folder, "path.ts"), 'export const path = "/home";\n');
    mkdirSync(join(folder, "flows"));
    mkdirSync(join(folder, "pictures"));
    writeFileSync(join(folder, "flows", "search.ts"), SEARCH);
    writeFileSync(join(folder, "flows", "words.csv"), "word\nshoes\nhats\ncoats\n");
    writeFileSync(join(folder, "note.txt"), "take care");
    for (const name of ["a", "b"]) writeFileSync(join(folder, "pictures", name), `picture ${name}`);
    target = createServer(async (request, response) => {
      requests++;
      const body = (await request.setEncoding("utf8").toArray()).join("");
      heardOf.push(`${request.url} ${/take care/.test(body)} ${/picture ./.exec(body)}`);
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

  it("sends the file with the task, reports metrics while it runs, and keeps summary and report", async () => {
    const { leader, client, database } = await twoNodes();
    requests = 0;
    const options = { args: ["--cores", "1"], env: { SHOP: shop } };
    const task = await submitLoadtest(client, join(folder, "shop.ts"), options);
    const heard: FollowMessage[] = [];
    const done = await client.wait(task.id, undefined, (message) => heard.push(message));
    expect(done).toMatchObject({
      state: "SUCCEEDED",
      result: { verdict: PASSED, summary: { workflows: [{ totals: { requests: 40 } }] } },
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

  it("sends the data files that the file reads, and stores each once", async () => {
    const { client, database } = await twoNodes();
    heardOf.splice(0);
    const options = { args: ["--cores", "1"], env: { SHOP: shop } };
    const file = join(folder, "flows", "search.ts");
    const task = await submitLoadtest(client, file, options);
    expect(task.input).toMatchObject({
      ...{ name: "search.ts", entry: "flows/.search.mjs" },
      files: ["note.txt", "flows/words.csv", "pictures/a", "pictures/b"].map((path) => ({ path })),
    });
    expect(await client.wait(task.id)).toMatchObject({
      state: "SUCCEEDED",
      result: { summary: { title: "search.ts", workflows: [{ totals: { requests: 12 } }] } },
    });
    const all = ["shoes", "hats", "coats"].flatMap((word) =>
      Array(2).fill(`/search?q=${word} false null`),
    );
    const uploads = ["a", "b"].flatMap((name) => Array(3).fill(`/upload true picture ${name}`));
    expect(heardOf.sort()).toEqual([...all, ...uploads].sort());

    await submitLoadtest(client, file, { ...options, run_after: 3_600 });
    const stored = await bench.query(database, "select count(*)::int as count from stored_files");
    // The module, four data files, and three files that the task left.
    expect(stored).toEqual([{ count: 8 }]);
  });

  it("keeps data files inside the folder of the task, and reports what is not sent", async () => {
    const { client } = await twoNodes();
    const said: string[] = [];
    const onWarning = (line: string) => said.push(line);
    // The file needs SHOP, which the node may have.
    const later = { run_after: 3_600, onWarning };
    const task = await submitLoadtest(client, join(folder, "flows", "search.ts"), later);
    expect(task.input).toMatchObject({ name: "search.ts" });
    expect(task.input).not.toHaveProperty("files");
    expect(said[0]).toMatch(/search.ts does not load here, so data files .* not sent/);
    const hash = await client.store(Buffer.from("x"));
    for (const path of ["../x", "/x", "a/../../x", "a//x", "a\\x", "."]) {
      const input = { bundle: hash, files: [{ path, hash }] };
      const { id } = await client.submit({ executor: "loadtest", input });
      expect((await client.wait(id)).error?.message).toMatch(
        /a path inside the folder of the task/,
      );
    }
    const large = join(folder, "large.csv");
    writeFileSync(large, Buffer.alloc(64 * 1024 * 1024));
    const reads = `import { feed, flow } from "hyperscalejs";
      export default flow("large", { data: { row: feed.csv("large.csv") } }, async () => {});`;
    writeFileSync(join(folder, "large.ts"), reads);
    await expect(submitLoadtest(client, join(folder, "large.ts"))).rejects.toThrow(
      /large.ts and its data files have \d+ bytes together: the limit is 67108864/,
    );
    rmSync(large);
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

  it("runs by a schedule, whose summaries make a trend", async () => {
    const { client, database, leader } = await twoNodes();
    requests = 0;
    const scratch = new Scratch();
    const hyperscale = async (...args: readonly string[]): Promise<string> => {
      const ended = await scratch.start(args, { HYPERSCALE_QUEUE_URL: leader.url }).done;
      expect(ended).toMatchObject({ code: 0 });
      return ended.stdout;
    };
    // Half an hour from now, so that no tick of the clock is among those of the test.
    const cron = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
    const file = [join(folder, "shop.ts"), "-e", `SHOP=${shop}`];
    const ticks = ["--schedule", "nightly", "--cron", cron, "--catch-up", "all"];
    await hyperscale("queue", "loadtest", ...file, ...ticks, "--", "--cores", "1");
    await bench.query(
      database,
      "update task_schedules set next_tick = next_tick - interval '2 hours'",
    );
    await eventually("two ticks are made up", async () => {
      const tasks = await client.list({ schedule: "nightly", state: "SUCCEEDED" });
      return tasks.length === 2;
    });
    const byHand = JSON.parse(await hyperscale("queue", "schedule", "run", "nightly", "--json"));
    expect((await client.wait(byHand.id)).state).toBe("SUCCEEDED");
    expect(requests).toBe(3 * 40);

    await hyperscale("queue", "report", "--schedule", "nightly", "--out", "nightly");
    expect(await hyperscale("trends", "nightly")).toMatch(/^shop.mjs: the last 3 runs\n/);
    expect(scratch.read("nightly/trends-shop.html")).toMatch(/^<!doctype html>/i);
    const { points } = JSON.parse(await hyperscale("trends", "nightly", "--last", "2", "--json"));
    expect(points).toMatchObject([
      { title: "shop.ts", verdict: PASSED, requests: 40 },
      { folder: `task-${byHand.id}`, verdict: PASSED, requests: 40 },
    ]);
    scratch.remove();
  });

  it("ends the load when the task is cancelled", async () => {
    const { client } = await twoNodes();
    requests = 0;
    const args = ["--rate", "50", "--duration", "10m", "--cores", "1"];
    const task = await submitLoadtest(client, `${shop}/`, { args });
    await eventually("load comes", async () => requests > 20);
    expect((await client.cancel(task.id)).state).toBe("CANCELLED");
    await eventually("the load ends", async () => {
      const before = requests;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return requests === before;
    });
  });

  it("bounds files, rejects wrong hashes, and removes unused ones", async () => {
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
    const later = { run_after: 3_600, env: { SHOP: shop } };
    const task = await submitLoadtest(client, join(folder, "flows", "search.ts"), later);
    const { bundle, files } = task.input as { bundle: string; files: { hash: string }[] };
    const used = [bundle, ...files.map((file) => file.hash)].sort();
    expect(used.length).toBe(5);
    await bench.query(database, "update stored_files set used_at = 'epoch'");
    // A new leader checks files first.
    await client.call("set_role", { role: "observer" });
    const left = await eventually("unused files are removed", async () => {
      const rows = await bench.query(database, "select hash from stored_files order by hash");
      return rows.length <= used.length ? rows : undefined;
    });
    expect(left).toEqual(used.map((hash) => ({ hash })));
    const parts = await bench.query(database, "select hash from stored_file_chunks order by hash");
    expect(parts).toEqual(left);
  });
});
