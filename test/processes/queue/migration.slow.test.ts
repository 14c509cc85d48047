/**
 * The migration guide from graphile-worker and pg-boss, executed beside them: its programs and statements are read from
 * the page and run, and no waiting job is lost or run twice.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker";
import pg from "pg";
import PgBoss from "pg-boss";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Executor, QueueClient, Task } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, NodeProcess, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const guide = readFileSync(join(root, "docs/guide/queue-migration.md"), "utf8");
const bossReadme = readFileSync(
  createRequire(import.meta.url).resolve("pg-boss/README.md"),
  "utf8",
);
/** Where the page and the README of pg-boss have the address of a database. */
const DATABASES = /postgres:\/\/(?:user:pass@host\/database|\/my_db)/g;
const JOBS = 300;

/** The block of a page that contains this text, in its language. */
function block(page: string, language: string, words: string): string {
  for (const [, found, code = ""] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (found === language && code.includes(words)) return code;
  }
  throw new Error(`no block of ${language} with "${words}"`);
}

describe("from other queues", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  const started: ChildProcess[] = [];
  const clients: pg.Client[] = [];
  /** Inside the package, so that programs find it and the others by their names. */
  let folder: string;

  beforeAll(() => {
    mkdirSync(join(root, ".hyperscale"), { recursive: true });
    folder = mkdtempSync(join(root, ".hyperscale", "migration-"));
  });
  afterEach(async () => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
    for (const client of clients.splice(0)) await client.end();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a program of a page, as a file with this name, and returns what it has printed so far. */
  function program(name: string, code: string, database: string): () => string {
    const file = join(folder, name);
    writeFileSync(file, code.replace(DATABASES, database).replace("port: 7600", "port: 0"));
    const child = spawn(process.execPath, ["--import", "tsx", file], { cwd: folder });
    started.push(child);
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
    }
    return () => printed;
  }

  async function prints(read: () => string, ...wanted: RegExp[]): Promise<void> {
    await eventually("it prints", async () => wanted.every((one) => one.test(read()))).catch(
      (error: Error) => {
        throw new Error(`${error.message}: ${read()}`);
      },
    );
  }

  async function connect(database: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    clients.push(client);
    return client;
  }

  /** Runs of each job, by its payload's number: by the old workers and by ours. */
  function countRuns() {
    const runs = new Map<number, number>();
    return {
      ran: ({ i }: { readonly i: number }): void => {
        runs.set(i, (runs.get(i) ?? 0) + 1);
      },
      everyJobOnce: (): void => {
        expect([...runs.values()].filter((times) => times !== 1)).toEqual([]);
        expect(runs.size).toBe(JOBS);
      },
      count: () => runs.size,
    };
  }

  /** Everything that a statement of the page moved, at its end. */
  async function ends(queue: QueueClient, moved: readonly string[]): Promise<readonly Task[]> {
    return Promise.all(moved.map((id) => queue.wait(id)));
  }

  async function move(client: pg.Client, words: string): Promise<string[]> {
    const { rows } = await client.query(block(guide, "sql", words));
    return rows.map(({ submit }) => String(submit));
  }

  describe("graphile-worker", () => {
    const MOVE = "Moves what waits in graphile-worker";
    const quiet = new Logger(() => () => undefined);

    it("runs its first example there and here", async () => {
      const database = await bench.database();
      const before = block(guide, "js", "graphile-worker");
      await prints(program("graphile.mjs", before, database), /Hello, Bobby Tables/);

      const executors = join(folder, "executors.ts");
      writeFileSync(executors, block(guide, "ts", "After: executors.ts"));
      const args = ["--database", database, "--executors", executors, "--max-parallel", "5"];
      const node = bench.keep(new NodeProcess([...args, "--node-id", "after"]));
      const queue = bench.client(await node.ready);
      const app = await connect(database);
      const { rows } = await app.query(block(guide, "sql", "Bobby Tables"));
      const [id = ""] = rows.map(({ submit }) => String(submit));
      expect((await queue.wait(id)).state).toBe("SUCCEEDED");
      const said: string[] = [];
      for await (const line of queue.logs(id)) said.push(line.text);
      expect(said).toEqual(["Hello, Bobby Tables"]);

      const options = block(guide, "ts", "hello-ada");
      program("graphile-options.ts", options, database);
      const ada = await eventually("it is submitted", async () =>
        (await queue.list({ executor: "hello" })).find((task) => task.id !== id),
      );
      expect(await queue.get(ada.id)).toMatchObject({
        ...{ input: { name: "Ada" }, max_attempts: 25, priority: 5, unique_key: "hello-ada" },
        backoff: { base: Math.E, factor: Math.E, jitter: 0 },
      });
      expect((await queue.wait(ada.id)).state).toBe("SUCCEEDED");
    });

    it("moves what waits while its workers run, and runs every job once", async () => {
      const database = await bench.database();
      const { ran, everyJobOnce, count } = countRuns();
      const utils = await makeWorkerUtils({ connectionString: database, logger: quiet });
      await utils.migrate();
      await utils.addJobs(
        Array.from({ length: JOBS }, (_, i) => ({
          ...{ identifier: "count", payload: { i }, maxAttempts: 7, priority: i % 3 },
          ...(i === 0 ? { jobKey: "first" } : {}),
          ...(i % 10 === 1 ? { queueName: "one.by.one" } : {}),
        })),
      );
      const app = await connect(database);
      // The application's own table of that name must not be taken for the queue's.
      await app.query("create table public.tasks (id int)");
      const executors = { count: ran as Executor };
      const node = await bench.node({ database, executors, settings: calmSettings });
      const queue = bench.client(node);
      await app.query("create table backup as select * from graphile_worker._private_jobs");
      const runner = await runGraphile({
        ...{ connectionString: database, concurrency: 2, noHandleSignals: true, logger: quiet },
        taskList: {
          count: async (payload) => {
            ran(payload as { i: number });
            await new Promise((resolve) => setTimeout(resolve, 5));
          },
        },
      });
      await eventually("the old worker runs some", async () => count() > 10);
      const moved = await move(app, MOVE);
      await runner.stop();
      moved.push(...(await move(app, MOVE)));
      expect(moved.length).toBeGreaterThan(0);
      expect(new Set((await ends(queue, moved)).map(({ state }) => state))).toEqual(
        new Set(["SUCCEEDED"]),
      );
      everyJobOnce();

      // Rows that come back are the same tasks.
      await app.query(`insert into graphile_worker._private_jobs
        (id, job_queue_id, task_id, payload, priority, run_at, max_attempts, key) overriding system value
        select id, job_queue_id, task_id, payload, priority, run_at, max_attempts, key from backup
         where 'graphile-worker-' || id in (select idempotency_key from hyperscale.tasks)`);
      expect((await move(app, MOVE)).sort()).toEqual(moved.sort());
      everyJobOnce();
      await utils.release();
    });

    it("keeps the settings of a job, and moves nothing if one is rejected", async () => {
      const database = await bench.database();
      const node = await bench.node({ database, settings: calmSettings });
      const queue = bench.client(node);
      const utils = await makeWorkerUtils({ connectionString: database, logger: quiet });
      await utils.migrate();
      const runAt = new Date(Date.now() + 3_600_000);
      const waits = { runAt, maxAttempts: 9, jobKey: "mail-1", priority: -4, queueName: "mail" };
      const { id } = await utils.addJob("mail", { to: "a" }, waits);
      const refused = await utils.addJob("mail", {}, { runAt, queueName: "two words" });
      const app = await connect(database);
      await app.query("update graphile_worker._private_jobs set attempts = 2 where id = $1", [id]);
      await expect(move(app, MOVE)).rejects.toThrow(/queue: letters/);
      await utils.completeJobs([refused.id]);
      const [moved = ""] = await move(app, MOVE);
      expect(await queue.get(moved)).toMatchObject({
        ...{ executor: "mail", input: { to: "a" }, state: "QUEUED", priority: 4, max_attempts: 7 },
        ...{ unique_key: "mail-1", queue: "mail", idempotency_key: `graphile-worker-${id}` },
        run_after: runAt.toISOString(),
      });
      expect(await move(app, MOVE)).toEqual([]);
      await utils.release();
    });
  });

  describe("pg-boss", () => {
    const MOVE = "Moves what waits in pg-boss";

    async function openBoss(database: string): Promise<PgBoss> {
      const boss = new PgBoss({ connectionString: database, max: 4 });
      boss.on("error", () => undefined);
      return boss.start();
    }

    it("runs the example of its README there, as the page has it, and here", async () => {
      const lines = [
        /created job \S+ in queue readme-queue/,
        /received job \S+ with data .*read me/,
      ];
      const programs = [
        ["readme.cjs", block(bossReadme, "js", "readme-queue")],
        ["before.mjs", block(guide, "js", "pg-boss")],
        ["after.ts", block(guide, "ts", "readme-queue")],
      ] as const;
      for (const [name, code] of programs) {
        await prints(program(name, code, await bench.database()), ...lines);
      }
    });

    it("moves what waits while its workers run, and runs every job once", async () => {
      const database = await bench.database();
      const { ran, everyJobOnce, count } = countRuns();
      const boss = await openBoss(database);
      await boss.createQueue("count");
      await boss.insert(Array.from({ length: JOBS }, (_, i) => ({ name: "count", data: { i } })));
      const executors = { count: ran as Executor };
      const node = await bench.node({ database, executors, settings: calmSettings });
      const queue = bench.client(node);
      const app = await connect(database);
      await app.query("create table backup as select * from pgboss.job");
      const polling = { batchSize: 20, pollingIntervalSeconds: 0.5 };
      await boss.work<{ i: number }>("count", polling, async (jobs) => {
        for (const { data } of jobs) ran(data);
      });
      await eventually("the old worker runs some", async () => count() > 10);
      const moved = await move(app, MOVE);
      await boss.stop({ graceful: true, wait: true });
      moved.push(...(await move(app, MOVE)));
      expect(moved.length).toBeGreaterThan(0);
      expect(new Set((await ends(queue, moved)).map(({ state }) => state))).toEqual(
        new Set(["SUCCEEDED"]),
      );
      everyJobOnce();

      await app.query(`insert into pgboss.job select * from backup
        where 'pg-boss-' || id in (select idempotency_key from tasks)`);
      expect((await move(app, MOVE)).sort()).toEqual(moved.sort());
      everyJobOnce();
    });

    it("keeps the settings of a job, and puts its schedules", async () => {
      const database = await bench.database();
      const node = await bench.node({ database, settings: calmSettings });
      const queue = bench.client(node);
      const boss = await openBoss(database);
      await boss.createQueue("short", { name: "short", policy: "short" });
      await boss.createQueue("alone", { name: "alone", policy: "singleton" });
      const startAfter = new Date(Date.now() + 3_600_000);
      const options = { startAfter, priority: 3, retryLimit: 4, retryDelay: 5, retryBackoff: true };
      const id = await boss.send("short", { to: "a" }, { ...options, singletonKey: "a" });
      await boss.send("alone", {}, { startAfter, expireInSeconds: 60 });
      await boss.schedule("short", "30 4 * * 1", { of: "week" }, { tz: "Europe/Berlin" });
      const app = await connect(database);
      const tasks = await Promise.all((await move(app, MOVE)).map((one) => queue.get(one)));
      expect(tasks).toEqual([
        expect.objectContaining({
          ...{ executor: "short", input: { to: "a" }, priority: 3, max_attempts: 5 },
          ...{ unique_key: "short:a", queue: "default", idempotency_key: `pg-boss-${id}` },
          ...{ run_after: startAfter.toISOString(), attempt_timeout_ms: 900_000 },
          backoff: { base: 10, cap: 327_680, jitter: 0.5 },
        }),
        expect.objectContaining({
          ...{ executor: "alone", queue: "alone", max_attempts: 3, attempt_timeout_ms: 60_000 },
          ...{ unique_key: null, backoff: { kind: "constant", base: 0, jitter: 0 } },
        }),
      ]);
      const put = block(guide, "ts", "Puts the schedules");
      program("schedules.ts", put.replace("http://127.0.0.1:7600", node.url), database);
      const [schedule] = await eventually("the schedule is put", async () => {
        const schedules = await queue.schedules();
        return schedules.length > 0 && schedules;
      });
      expect(schedule).toMatchObject({
        ...{ schedule_id: "short", cron: "30 4 * * 1", time_zone: "Europe/Berlin" },
        task: { executor: "short", input: { of: "week" } },
      });
      program("boss-options.ts", block(guide, "ts", "attempt_timeout"), database);
      const inside = await eventually("it is submitted", async () =>
        (await queue.list({ executor: "readme-queue" })).at(0),
      );
      expect(await queue.get(inside.id)).toMatchObject({
        ...{ input: { arg1: "in" }, max_attempts: 5, attempt_timeout_ms: 60_000 },
        backoff: { base: 10, jitter: 0.5 },
      });
      await boss.stop({ graceful: false });
    });
  });
});
