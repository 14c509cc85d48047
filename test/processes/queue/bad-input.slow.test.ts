/** Wrong calls, and right ones while the database is unavailable. */

import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { audit } from "./audit.ts";
import { eventually, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

interface Answer {
  readonly status: number;
  readonly body: {
    readonly result?: unknown;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

describe("queue API given bad input", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;
  let node: QueueNode;
  let client: QueueClient;
  let database: string;

  beforeAll(async () => {
    server = await TestPostgres.start();
    database = await server.createQueue();
    node = await startNode({ database, nodeId: "only", executors: { echo: (input) => input } });
    client = new QueueClient(node.url);
  });

  afterAll(async () => {
    client?.close();
    await node?.stop(0);
    await server?.stop();
  });

  function post(body: string, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const call = request(
        node.url,
        { method: "POST", headers: { "content-type": "application/json", ...headers } },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part: string) => {
            text += part;
          });
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              body: text === "" ? {} : JSON.parse(text),
            }),
          );
        },
      );
      call.on("error", reject);
      call.end(body);
    });
  }

  const rpc = (method: string, params: unknown, id: unknown = 1): string =>
    JSON.stringify({ jsonrpc: "2.0", id, method, params });

  it.each([
    ["text that is not JSON", "{nope", -32700, /not JSON/],
    ["a number", "7", -32600, /a call is an object/],
    ["an empty batch", "[]", -32600, /at least one call/],
    ["a call without version", '{"id":1,"method":"get_task"}', -32600, /jsonrpc/],
    ["an id of the wrong kind", '{"jsonrpc":"2.0","id":{},"method":"get_task"}', -32600, /"id"/],
    [
      "params of the wrong kind",
      '{"jsonrpc":"2.0","id":1,"method":"get_task","params":3}',
      -32600,
      /params/,
    ],
    [
      "an unknown method",
      rpc("drop_tables", {}),
      -32601,
      /no method "drop_tables"; there are: .*submit_task/,
    ],
    ["a method of every object", rpc("toString", {}), -32601, /no method/],
    ["no executor", rpc("submit_task", { input: 1 }), -32602, /executor/],
    [
      "an unknown field",
      rpc("submit_task", { executor: "echo", prioritty: 1 }),
      -32602,
      /prioritty/,
    ],
    [
      "a priority that is text",
      rpc("submit_task", { executor: "echo", priority: "high" }),
      -32602,
      /priority/,
    ],
    [
      "zero attempts",
      rpc("submit_task", { executor: "echo", max_attempts: 0 }),
      -32602,
      /max_attempts/,
    ],
    ["a NUL in the input", rpc("submit_task", { executor: "echo", input: "a\0b" }), -32602, /NUL/],
    [
      "a NUL in the key",
      rpc("submit_task", { executor: "echo", idempotency_key: "\0" }),
      -32602,
      /cannot be stored/,
    ],
    [
      "half a surrogate pair",
      '{"jsonrpc":"2.0","id":1,"method":"submit_task","params":{"executor":"echo","input":"\\ud800"}}',
      -32602,
      /surrogate/,
    ],
    [
      "an input nested too deep",
      rpc("submit_task", {
        executor: "echo",
        input: JSON.parse("[".repeat(300) + "]".repeat(300)),
      }),
      -32602,
      /nested deeper than 200/,
    ],
    [
      "an input above the limit",
      rpc("submit_task", { executor: "echo", input: "x".repeat(1_100_000) }),
      -32602,
      /1100002 bytes of JSON; the limit is 1048576/,
    ],
    [
      "cancel of an unknown task",
      rpc("cancel_task", { task_id: "424242" }),
      -32002,
      /no task 424242/,
    ],
    [
      "events of an unknown task",
      rpc("task_events", { task_id: "424242" }),
      -32002,
      /no task 424242/,
    ],
    [
      "a task id that is none",
      rpc("get_task", { task_id: "1; drop table tasks" }),
      -32602,
      /decimal/,
    ],
    ["no task id", rpc("get_task", {}), -32602, /task_id is missing/],
    [
      "an unknown node asking for work",
      rpc("acquire_lease", { node_id: "stranger" }),
      -32009,
      /register_node first/,
    ],
    [
      "a schedule that never happens",
      rpc("put_schedule", { schedule_id: "s", cron: "0 0 30 2 *", task: { executor: "echo" } }),
      -32602,
      /never happens/,
    ],
    [
      "a scheduled task with a time of its own",
      rpc("put_schedule", {
        schedule_id: "s",
        cron: "* * * * *",
        task: { executor: "echo", run_after: 60 },
      }),
      -32602,
      /run_after: a scheduled task starts at its tick/,
    ],
    [
      "a renewal of a lease that is none",
      rpc("renew_lease", { task_id: "1", lease_token: "00000000-0000-4000-8000-000000000000" }),
      -32008,
      /not the current one/,
    ],
  ])("answers %s with its error", async (_, body, code, message) => {
    const answer = await post(body);
    expect(answer.body.error?.code).toBe(code);
    expect(answer.body.error?.message).toMatch(message);
  });

  it("rejects a 10 MB request by name and keeps running", async () => {
    const answer = await post(
      rpc("submit_task", { executor: "echo", input: "x".repeat(10_000_000) }),
    );
    expect(answer.status).toBe(413);
    expect(answer.body.error?.message).toMatch(/the limit is 8388608, and 1048576 for one input/);
    expect((await client.status()).leader?.node_id).toBe("only");
  });

  it("answers a batch in part and notifications not at all", async () => {
    const silent =
      '{"jsonrpc":"2.0","method":"submit_task","params":{"executor":"echo","input":"by notification"}}';
    const calls = [
      rpc("get_task", { task_id: 424242 }, 1),
      rpc("cluster_status", {}, "two"),
      silent,
    ];
    const answer = await post(`[${calls.join(",")}]`);
    expect(answer.body).toMatchObject([{ id: 1, error: { code: -32002 } }, { id: "two" }]);
    expect(answer.body).toHaveLength(2);
    expect((await post('{"jsonrpc":"2.0","method":"cluster_status"}')).status).toBe(204);
    await eventually(
      "the notification took effect",
      async () => (await client.list({ search: "by notification" })).length === 1,
    );
  });

  it("rejects forms that a hostile page could send", async () => {
    expect((await post(rpc("cluster_status", {}), { "content-type": "text/plain" })).status).toBe(
      400,
    );
    expect((await post(rpc("cluster_status", {}), { origin: "http://evil.example" })).status).toBe(
      401,
    );
    expect((await post(rpc("cluster_status", {}), { host: "evil.example" })).status).toBe(401);
  });

  it("keeps tasks that no worker can run, and reports why", async () => {
    const unknown = await client.submit({ executor: "no-such-executor" });
    const impossible = await client.submit({
      executor: "echo",
      placement_constraints: { allowed_nodes: ["elsewhere"] },
    });
    expect(unknown.waiting_reason).toBe('no node has the executor "no-such-executor"');
    expect(impossible.waiting_reason).toMatch(/only is not among allowed_nodes/);
    const possible = await client.submit({ executor: "echo", input: "unhindered" });
    expect((await client.wait(possible.id)).result).toBe("unhindered");
    for (const task of [unknown, impossible]) await client.cancel(task.id);
  });

  it("lets the good tasks of a batch through when one cannot be stored", async () => {
    const answers = await Promise.allSettled([
      client.submit({ executor: "echo", input: "good" }),
      client.submit({ executor: "echo", input: "\0" }),
      client.submit({ executor: "echo", input: "good too" }),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  it("answers clearly while the database is unavailable, loses nothing and continues without a restart", async () => {
    const before = await client.submitMany(
      Array.from({ length: 20 }, () => ({ executor: "sleep", input: { ms: 300 } })),
    );
    await server.crash();
    await expect(client.status()).rejects.toThrow(/the database is not available/);
    const waiting = client.submit({ executor: "echo", input: "during", idempotency_key: "during" });
    // Longer than both leases, so that leadership and tasks have to be recovered.
    const outcome = await Promise.allSettled([
      waiting,
      new Promise((resolve) => setTimeout(resolve, 4_000)),
    ]);
    await server.run();
    await eventually(
      "it leads again",
      async () => (await client.status()).leader?.node_id === "only",
    );
    const task =
      outcome[0].status === "fulfilled"
        ? outcome[0].value
        : await client.submit({ executor: "echo", input: "during", idempotency_key: "during" });
    expect((await client.wait(task.id)).state).toBe("SUCCEEDED");
    for (const answer of before) {
      if ("id" in answer) expect((await client.wait(answer.id)).state).toBe("SUCCEEDED");
    }
    const result = await audit(database, { allTerminal: false });
    expect(result.problems).toEqual([]);
  });

  it("serves metrics that a scraper can read (TQ-44)", async () => {
    // The leader reports them, and on a starved machine a leader's lease may expire for a short time.
    const text = await eventually("a leader tells its tasks", async () => {
      const metrics = await (await fetch(`${node.url}/metrics`)).text();
      return /^hyperscale_queue_tasks\{state="SUCCEEDED"\} \d+$/m.test(metrics) && metrics;
    });
    expect(text).toMatch(/^hyperscale_queue_delay_seconds_bucket\{le="\+Inf"\} \d+$/m);
    for (const line of text.trim().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [\d.e+-]+)$/);
    }
    expect((await fetch(`${node.url}/healthz`)).status).toBe(200);
    await eventually("it is ready", async () => (await fetch(`${node.url}/readyz`)).status === 200);
  });
});

describe("queue API with a token", needs(TestPostgres.available(), NO_POSTGRES), () => {
  it("rejects a public address without a token, and calls without the right one", async () => {
    const server = await TestPostgres.start();
    const database = await server.createQueue();
    const { QueueNode, defaultSettings, silentLog } = await import("../../../src/queue/index.ts");
    const options = {
      nodeId: "guarded",
      role: "auto" as const,
      databaseUrl: database,
      dataDirectory: ".",
      executors: {},
      settings: defaultSettings,
      log: silentLog,
    };
    await expect(
      QueueNode.start({ ...options, listen: { host: "0.0.0.0", port: 0 } }),
    ).rejects.toThrow(/without authentication/);
    const node = await QueueNode.start({
      ...options,
      listen: { host: "127.0.0.1", port: 0 },
      token: "correct horse battery staple",
    });
    const right = new QueueClient(node.url, { token: "correct horse battery staple" });
    const wrong = new QueueClient(node.url, { token: "correct horse battery stable" });
    expect((await right.status()).leader?.node_id).toBe("guarded");
    await expect(wrong.status()).rejects.toThrow(/bearer token/);
    expect((await fetch(`${node.url}/metrics`)).status).toBe(401);
    right.close();
    wrong.close();
    await node.stop(0);
    await server.stop();
  });
});
