/** Output of executions while they run: stored with their attempt within bounds, and sent to late followers. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ExecutionContext, type LogLine, QueueClient } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { fillDataDirectory } from "./data-directory.ts";
import { calmSettings, eventually, queueBench, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const executors = {
  /** Fails twice with a cause, and says something in each attempt. */
  async third(_: unknown, context: ExecutionContext): Promise<unknown> {
    const { log, progress, attempt } = context;
    const { progress: before, submitted_at } = await context.history();
    log(`attempt ${attempt} begins\0`);
    progress({ done: attempt / 3 });
    log("about to fail");
    if (attempt < 3) throw new Error(`attempt ${attempt}`, { cause: new Error("deeper") });
    return { before, submitted_at };
  },
  chatty(_: unknown, { log }: ExecutionContext): void {
    for (let i = 1; i <= 2_500; i++) log(`line ${i}`);
  },
  long(_: unknown, { log }: ExecutionContext): void {
    for (let i = 1; i <= 100; i++) log(`${i} ${"ü".repeat(4_000)}`);
  },
};

async function linesOf(client: QueueClient, id: string, attempt?: number): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const line of client.logs(id, attempt)) lines.push(line);
  return lines;
}

async function keepsWords(client: QueueClient): Promise<void> {
  const task = await client.submit({ executor: "third" });
  expect(await client.wait(task.id)).toMatchObject({
    ...{ state: "SUCCEEDED", attempt_id: 3 },
    result: { before: { done: 2 / 3 }, submitted_at: expect.stringMatching(/^20\d\d-/) },
  });
  const attempts = await client.attempts(task.id);
  expect(attempts).toMatchObject([
    { attempt_id: 1, outcome: "failed", log_lines: 2, progress: { done: 1 / 3 } },
    { attempt_id: 2, outcome: "failed", log_lines: 2, progress: { done: 2 / 3 } },
    { attempt_id: 3, outcome: "completed", log_lines: 2, progress: { done: 1 }, error: null },
  ]);
  expect(attempts[1]?.error).toMatchObject({
    ...{ name: "Error", message: "attempt 2", cause: "deeper" },
    stack: expect.stringContaining("words.slow.test.ts"),
  });
  expect(await linesOf(client, task.id, 2)).toMatchObject([
    { attempt_id: 2, line: 1, text: "attempt 2 begins\uFFFD" },
    { attempt_id: 2, line: 2, text: "about to fail" },
  ]);
  expect((await linesOf(client, task.id)).map((line) => line.attempt_id)).toEqual([
    1, 1, 2, 2, 3, 3,
  ]);
}

describe("output of executions", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  it("keeps lines, progress and the error of every attempt", async () => {
    const database = await bench.database();
    await keepsWords(bench.client(await bench.node({ database, executors })));
  });

  it("keeps that of a worker beside the leader, and is deleted with the task", async () => {
    const database = await bench.database();
    const settings = { ...calmSettings, maxParallel: 0 };
    const client = bench.client(await bench.node({ database, settings }));
    await bench.node({ database, executors, settings: calmSettings });
    await keepsWords(client);
    expect(await client.deleteAll({ executor: "third" })).toBe(1);
    expect(await bench.query(database, "select * from task_log_lines")).toEqual([]);
    expect(await bench.query(database, "select * from task_progress")).toEqual([]);
  });

  it("keeps the last 1,000 lines and 256 KiB of an attempt; the numbers show what is missing", async () => {
    const database = await bench.database();
    const client = bench.client(await bench.node({ database, executors, settings: calmSettings }));
    const chatty = await client.submit({ executor: "chatty" });
    await client.wait(chatty.id);
    const lines = await linesOf(client, chatty.id);
    expect(lines.map(({ line }) => line)).toEqual(
      Array.from({ length: 1_000 }, (_, i) => i + 1_501),
    );
    expect(lines.at(-1)?.text).toBe("line 2500");
    const long = await client.submit({ executor: "long" });
    await client.wait(long.id);
    const kept = await linesOf(client, long.id);
    const bytes = kept.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    expect(kept.at(-1)?.line).toBe(100);
    expect(bytes).toBeLessThanOrEqual(256 * 1024);
    expect(bytes).toBeGreaterThan(240 * 1024);
  });

  it("accepts repeated lines once, numbers those of workers that do not count, and none without a lease", async () => {
    const database = await bench.database();
    const settings = { ...calmSettings, maxParallel: 0 };
    const client = bench.client(await bench.node({ database, settings }));
    await client.call("register_node", { node_id: "foreign", executor_types: ["alien"] });
    const task = await client.submit({ executor: "alien" });
    const answer = await client.call("acquire_lease", { node_id: "foreign" });
    const [lease] = (answer as { leases: readonly { task_id: string; lease_token: string }[] })
      .leases;
    const { task_id, lease_token } = lease ?? { task_id: "", lease_token: "" };
    const say = (messages: readonly object[]): Promise<unknown> =>
      client.call("report_progress", {
        node_id: "foreign",
        messages: messages.map((one) => ({ task_id, lease_token, kind: "log", ...one })),
      });
    const first = [
      { message: "one", line: 1 },
      { message: { two: 2 }, line: 2 },
    ];
    await say(first);
    await say([...first, { message: "three", line: 3 }]);
    await say([{ message: "four" }, { message: "five" }]);
    await client.call("report_completion", { node_id: "foreign", task_id, lease_token, result: 1 });
    await say([{ message: "too late", line: 6 }]);
    expect((await linesOf(client, task.id)).map(({ line, text }) => `${line} ${text}`)).toEqual([
      ...["1 one", '2 {"two":2}', "3 three", "4 four", "5 five"],
    ]);
    await expect(linesOf(client, "999999")).rejects.toThrow(/there is no task 999999/);
    await expect(client.attempts("999999")).rejects.toThrow(/there is no task 999999/);
  });

  it("sends a late follower all lines and the progress, each once, at any node", async () => {
    const database = await bench.database();
    let release: () => void = () => undefined;
    const go = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = async (_: unknown, { log, progress }: ExecutionContext): Promise<void> => {
      for (let i = 1; i <= 5; i++) log(`early ${i}`);
      progress({ done: 0.5 });
      await go;
      for (let i = 1; i <= 5; i++) log(`late ${i}`);
    };
    const leader = await bench.node({ database, executors: { slow }, settings: calmSettings });
    const other = await bench.node({ database, settings: { ...calmSettings, maxParallel: 0 } });
    const clients = [bench.client(leader), bench.client(other)];
    const [client] = clients as [QueueClient];
    const task = await client.submit({ executor: "slow" });
    await eventually(
      "it spoke",
      async () => (await client.attempts(task.id))[0]?.progress !== null,
    );
    // Progress of a finished task is not sent: the task continues once both clients have received it.
    const waiting = new Set(clients);
    const heard = clients.map(async (one) => {
      const words: unknown[] = [];
      for await (const { event, data } of one.follow(task.id)) {
        if (event === "log" || event === "progress")
          words.push((data as { readonly message: unknown }).message);
        if (event === "progress" && waiting.delete(one) && waiting.size === 0) release();
      }
      return words;
    });
    for (const words of await Promise.all(heard)) {
      expect(words.filter((word) => typeof word === "string")).toEqual([
        ...Array.from({ length: 5 }, (_, i) => `early ${i + 1}`),
        ...Array.from({ length: 5 }, (_, i) => `late ${i + 1}`),
      ]);
      expect(words).toContainEqual({ done: 0.5 });
    }
  });
});

describe("output of executions in the embedded store", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hyperscale-queue-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it("keeps lines, progress and the error of every attempt", async () => {
    const dataDirectory = await fillDataDirectory(directory);
    const node = await startNode({ dataDirectory, executors, settings: calmSettings });
    const client = new QueueClient(node.url);
    try {
      await keepsWords(client);
    } finally {
      client.close();
      await node.stop(0);
    }
  });
});
