/** `queue export` and `queue import`: both stores hold the same, row by row, and a bad file leaves nothing behind. */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ExecutionContext, QueueClient } from "../../../src/queue/index.ts";
import { EmbeddedDatabase } from "../../../src/queue/store/embedded.ts";
import { TRANSFER_TABLES } from "../../../src/queue/store/transfer-format.ts";
import { exportQueue, importQueue } from "../../../src/queue/transfer.ts";
import { needs } from "../../needs.ts";
import { fillDataDirectory } from "./data-directory.ts";
import {
  calmSettings,
  eventually,
  hasBegun,
  NodeProcess,
  queueBench,
  runQueue,
  startNode,
} from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/** Belongs to a place, not to the work: these stay where they are. */
const STAYS = [
  "cluster_leader",
  "cluster_token",
  "distributed_nodes",
  "queue_migrations",
  "task_totals",
];
const FILE_BYTES = 2_500_000;

const executors = {
  third(_: unknown, { log, progress, attempt }: ExecutionContext): unknown {
    log(`attempt ${attempt} of "ü" \\ begins\n\t{,}`);
    progress({ done: attempt / 3 });
    if (attempt < 3) throw new Error(`attempt ${attempt}`, { cause: new Error("deeper") });
    return { pi: Math.PI, big: 2 ** 53 - 1, text: `quotes " ' \\ and\n\u2028 lines`, none: null };
  },
  async leaves(_: unknown, { attach }: ExecutionContext): Promise<null> {
    await attach("report.bin", Buffer.alloc(FILE_BYTES, "0123456789"), "application/x-test");
    return null;
  },
};

/** Tasks in every state, with all that can belong to them. */
async function fill(directory: string): Promise<void> {
  const node = await startNode({ dataDirectory: directory, executors, settings: calmSettings });
  const client = new QueueClient(node.url);
  const third = await client.submit({ executor: "third", input: null, idempotency_key: "once" });
  const leaves = await client.submit({
    executor: "leaves",
    input: [1, { deep: "ä" }],
    priority: -7,
  });
  await client.limitQueue("mail", {
    paused: true,
    concurrency: 3,
    rate: { count: 10, seconds: 0.3 },
  });
  const waits = await client.submit({ executor: "third", queue: "mail", unique_key: "live" });
  await client.submit({ executor: "third", depends_on: [waits.id, third.id], max_attempts: 9 });
  await client.submitGraph({ only: { executor: "nobody" } }, { idempotency_key: "graph" });
  await client.submit({
    ...{
      executor: "sleep",
      run_after: "2031-01-01T00:00:00.123Z",
      attempt_timeout: 5,
      timeout: 1e6,
    },
    placement_constraints: { requires_capabilities: { gpu: "nvidia" } },
  });
  const cancelled = await client.submit({ executor: "nobody" });
  await client.cancel(cancelled.id);
  const failed = await client.submit({
    executor: "sleep",
    input: { ms: 1, fail: "no", retryable: false },
  });
  await client.putSchedule("nightly", "0 3 * * *", { executor: "sleep", input: { ms: 5 } });
  for (const { id } of [third, leaves, failed]) await client.wait(id);
  client.close();
  await node.stop(0);
}

/** A task that is RUNNING and whose node is dead. */
async function leaveRunning(directory: string): Promise<string> {
  const node = new NodeProcess(["--data-dir", directory, "--log-level", "warn"]);
  const client = new QueueClient((await node.ready).url);
  const { id } = await client.submit({
    executor: "sleep",
    input: { ms: 600_000 },
    max_attempts: 5,
  });
  await hasBegun(client, id);
  client.close();
  await node.end("SIGKILL");
  return id;
}

type Ask = (text: string) => Promise<readonly Record<string, unknown>[]>;

async function rowsOf(ask: Ask): Promise<Record<string, unknown>> {
  const tables = [...TRANSFER_TABLES, { name: "task_totals", order: "state" }];
  const found: Record<string, unknown> = {};
  for (const { name, order } of tables) {
    const rows = await ask(`select t::text as row from ${name} t order by ${order}`);
    found[name] = rows.map(({ row }) => row);
  }
  found["epoch"] = await ask("select epoch::text from cluster_leader");
  return found;
}

async function askEmbedded<Value>(
  directory: string,
  work: (ask: Ask) => Promise<Value>,
): Promise<Value> {
  const database = await EmbeddedDatabase.open(directory);
  try {
    return await database.session(async (run) => {
      await run("set timezone = 'UTC'");
      return work(run);
    });
  } finally {
    await database.close();
  }
}

describe("moving a queue", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  let folder: string;
  let source: string;
  let file: string;
  let running: string;
  const path = (name: string): string => join(folder, name);
  const asker = (url: string): Ask => {
    return (text) => bench.query(`${url}?options=-ctimezone%3DUTC`, text);
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-transfer-"));
    source = path("embedded");
    file = path("queue.ndjson");
    await fill(await fillDataDirectory(source));
    running = await leaveRunning(source);
    // As if a transaction had committed it without a leader.
    await askEmbedded(source, (ask) => ask("insert into task_arrivals select max(id) from tasks"));
    await runQueue("export", "--data-dir", source, "--out", file);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("carries every row to PostgreSQL and back, and work continues there", async () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = await askEmbedded(source, rowsOf);
    for (const { name } of TRANSFER_TABLES) expect(before[name], name).not.toEqual([]);
    const states = await askEmbedded(source, (ask) =>
      ask("select distinct state::text as state from tasks order by 1"),
    );
    expect(states.map(({ state }) => state)).toEqual([
      ...["CANCELLED", "FAILED", "QUEUED", "RUNNING", "SUCCEEDED"],
    ]);
    const database = await bench.database();
    const { stdout } = await runQueue("import", file, "--database", database, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ store: "PostgreSQL", counts: { tasks: 9 } });
    expect(await rowsOf(asker(database))).toEqual(before);
    // The way back ends at the same bytes.
    await exportQueue({ databaseUrl: database }, path("postgres.ndjson"));
    const back = await fillDataDirectory(path("back"));
    await importQueue({ dataDirectory: back }, path("postgres.ndjson"));
    expect(await askEmbedded(back, rowsOf)).toEqual(before);
    await exportQueue({ dataDirectory: back }, path("back.ndjson"));
    const bytes = readFileSync(file);
    expect(readFileSync(path("postgres.ndjson")).equals(bytes)).toBe(true);
    expect(readFileSync(path("back.ndjson")).equals(bytes)).toBe(true);
    await goesOn(database);
  });

  async function goesOn(database: string): Promise<void> {
    const client = bench.client(await bench.node({ database, executors }));
    const again = await client.submit({ executor: "third", input: null, idempotency_key: "once" });
    expect(again).toMatchObject({ created: false, state: "SUCCEEDED", attempt_id: 3 });
    expect(await client.attempts(again.id)).toMatchObject([
      ...[{ log_lines: 1, error: { cause: "deeper" } }, { log_lines: 1 }],
      { progress: { done: 1 }, outcome: "completed" },
    ]);
    const [stored] = (await client.list({ executor: "leaves" })).map(({ id }) => id);
    const [report] = await client.files(stored ?? "");
    if (report === undefined) throw new Error("the file is gone");
    expect((await client.load(report)).length).toBe(FILE_BYTES);
    // The task's node never came back: the lease expires as if the store had not moved.
    await eventually("the running task begins again", async () => {
      const task = await client.get(running);
      return task.attempt_id === 2 && task.state === "RUNNING";
    });
    await client.cancel(running);
    const ids = (await client.list({ limit: 100 })).map(({ id }) => Number(id));
    const fresh = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect(Number(fresh.id)).toBeGreaterThan(Math.max(...ids));
    expect((await client.list({ queue: "mail" }))[0]?.state).toBe("QUEUED");
    await client.limitQueue("mail", { paused: false });
    const [dependent] = await client.list({ executor: "third", states: ["QUEUED"], limit: 1 });
    expect(await client.wait(dependent?.id ?? "")).toMatchObject({ state: "SUCCEEDED" });
  }

  it("rejects a file that is cut, changed or of another version, and leaves the target empty", async () => {
    const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
    const [header = "", ...rows] = lines;
    const end = rows.pop() ?? "";
    const bad: readonly (readonly [RegExp, string])[] = [
      [/is empty/, ""],
      [/closing line is missing/, [header, ...rows].join("\n")],
      [/cut or was changed/, readFileSync(file, "utf8").slice(0, -20)],
      [
        /2 rows of task_progress, its closing line says 3/,
        withoutFirst(lines, '{"table":"task_progress"'),
      ],
      [/after the end/, [...lines, end].join("\n")],
      [/format 2/, lines.join("\n").replace('"hyperscale_queue":1', '"hyperscale_queue":2')],
      [/queue schema 999/, lines.join("\n").replace(/"schema":\d+/, '"schema":999')],
      [/other columns/, lines.join("\n").replace('"attempt_id":"', '"attempt":"')],
      [/duplicate key/, [header, ...rows, rows[0], end].join("\n")],
    ];
    const database = await bench.database();
    for (const [problem, text] of bad) {
      writeFileSync(path("bad.ndjson"), text);
      const moved = importQueue({ databaseUrl: database }, path("bad.ndjson"));
      await expect(moved).rejects.toThrow(problem);
      const filled = await rowsOf(asker(database));
      for (const { name } of TRANSFER_TABLES) expect(filled[name], name).toEqual([]);
    }
    await importQueue({ databaseUrl: database }, file);
    await expect(importQueue({ databaseUrl: database }, file)).rejects.toThrow(/not empty/);
  });

  it("rejects a store with a leading node, and an existing file", async () => {
    const database = await bench.database();
    await bench.node({ database, nodeId: "alive" });
    const place = { databaseUrl: database };
    await expect(exportQueue(place, path("live.ndjson"))).rejects.toThrow(/"alive" leads/);
    await expect(importQueue(place, file)).rejects.toThrow(/"alive" leads/);
    expect(() => statSync(path("live.ndjson"))).toThrow(/ENOENT/);
    await expect(exportQueue({ dataDirectory: source }, file)).rejects.toThrow(/EEXIST/);
    const nowhere = { dataDirectory: path("nowhere") };
    await expect(exportQueue(nowhere, path("live.ndjson"))).rejects.toThrow(/no queue in/);
  });

  it("knows every table of the store", async () => {
    const database = await bench.database();
    await importQueue({ databaseUrl: database }, file);
    const tables = await bench.query(
      database,
      "select tablename as name from pg_tables where schemaname = 'hyperscale' order by 1",
    );
    const known = [...TRANSFER_TABLES.map(({ name }) => name), ...STAYS].sort();
    expect(tables.map(({ name }) => name)).toEqual(known);
  });
});

function withoutFirst(lines: readonly string[], start: string): string {
  const at = lines.findIndex((line) => line.startsWith(start));
  return lines.filter((_, index) => index !== at).join("\n");
}
