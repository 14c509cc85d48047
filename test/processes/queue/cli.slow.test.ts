/** `hyperscale queue …` as people and scripts use it. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NotRetryable, type QueueNode } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, PROGRAM, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function hyperscale(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [PROGRAM, "queue", ...args], {
      env: { ...process.env, ...environment },
    });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    }
    child.on("close", (code) => resolve({ code, ...output }));
  });
}

describe("hyperscale queue", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;
  let node: QueueNode;
  let at: Record<string, string>;

  beforeAll(async () => {
    server = await TestPostgres.start();
    node = await startNode({
      database: await server.createQueue(),
      nodeId: "cli",
      executors: {
        says(_: unknown, { log }: { log(text: string): void }) {
          log("hello from the task");
          throw new NotRetryable("no use", { cause: new Error("deeper") });
        },
      },
      settings: calmSettings,
    });
    at = { HYPERSCALE_QUEUE_URL: node.url };
  });

  afterAll(async () => {
    await node?.stop(0);
    await server?.stop();
  });

  it("submits and follows a task to its end, with tables for people and JSON for scripts", async () => {
    const waited = await hyperscale(
      ["submit", "sleep", '{"ms": 1500, "result": 42}', "--wait"],
      at,
    );
    expect(waited).toMatchObject({ code: 0, stderr: "" });
    expect(waited.stdout).toMatch(/assigned +QUEUED -> RUNNING/);
    expect(waited.stdout).toMatch(/result +42/);
    const [list, nodes, events, status] = await Promise.all([
      hyperscale(["list", "--json"], at),
      hyperscale(["nodes"], at),
      hyperscale(["events", "1"], at),
      hyperscale(["status"], at),
    ]);
    expect(JSON.parse(list.stdout)).toMatchObject([{ id: "1", state: "SUCCEEDED", result: 42 }]);
    expect(nodes.stdout).toMatch(/^NODE +STATUS.*\ncli +\w+ +leader/);
    // A busy machine may keep the node from a heartbeat for a while.
    await eventually("it is healthy", async () =>
      /^cli +healthy +leader/m.test((await hyperscale(["nodes"], at)).stdout),
    );
    expect(
      events.stdout
        .split("\n")
        .slice(1, 5)
        .map((row) => row.split(/ +/)[1]),
    ).toEqual(["created", "assigned", "started", "completed"]);
    expect(status.stdout).toMatch(/leader +cli \(epoch 1\)/);
  });

  it("shows every attempt with its error and stack, and the lines that it logged", async () => {
    const submitted = await hyperscale(["submit", "says", "--wait", "--json"], at);
    const end = submitted.stdout.trim().split("\n").at(-1) ?? "";
    const { id } = (JSON.parse(end) as { readonly data: { readonly id: string } }).data;
    const [show, logs] = await Promise.all([
      hyperscale(["show", id], at),
      hyperscale(["logs", id, "--attempt", "1"], at),
    ]);
    expect(show.stdout).toMatch(/^attempt 1: failed after \d.* on cli, .*, 1 line$/m);
    expect(show.stdout).toMatch(/^ {2}NotRetryable: no use\n {6}at .*cli\.slow\.test\.ts/m);
    expect(show.stdout).toMatch(/^ {2}caused by deeper$/m);
    expect(logs.stdout).toMatch(/^\d{4}-\d\d-\d\d [\d:]{8} {2}1 {2}hello from the task\n$/);
  });

  it("exits with 3 for a failed task, 2 for wrong input, 1 when the node rejects it", async () => {
    const outcomes = await Promise.all([
      hyperscale(["submit", "sleep", '{"ms": 0, "fail": "no", "retryable": false}', "--wait"], at),
      hyperscale(["submit", "sleep", "{ms: 0}"], at),
      hyperscale(["cancel", "424242"], at),
      hyperscale(["status"], { HYPERSCALE_QUEUE_URL: "http://127.0.0.1:9" }),
    ]);
    expect(outcomes.map(({ code }) => code)).toEqual([3, 2, 1, 1]);
    expect(outcomes[1]?.stderr).toMatch(/the input is not JSON/);
    expect(outcomes[2]?.stderr).toMatch(/there is no task 424242/);
    expect(outcomes[3]?.stderr).toMatch(/cannot reach the queue node at http:\/\/127\.0\.0\.1:9/);
  });

  it("puts variables of a load test into its input, and rejects them for anything else", async () => {
    const input = '{"file": "shop.ts", "env": {"A": "0", "C": "3"}}';
    const [loadtest, sleep, broken] = await Promise.all([
      hyperscale(["submit", "loadtest", input, "-e", "A=1", "--env", "B=x=y", "--json"], at),
      hyperscale(["submit", "sleep", '{"ms": 0}', "-e", "A=1"], at),
      hyperscale(["submit", "loadtest", input, "-e", "A"], at),
    ]);
    expect(JSON.parse(loadtest?.stdout ?? "")).toMatchObject({
      input: { file: "shop.ts", env: { A: "1", B: "x=y", C: "3" } },
    });
    expect([sleep?.code, sleep?.stderr]).toEqual([
      2,
      'hyperscale queue: -e sets variables of a loadtest; "sleep" gets what is in its input\n',
    ]);
    expect(broken?.stderr).toMatch(/write it as NAME=value/);
  });

  it("resumes a paused queue, and lists the paused ones when this one is not", async () => {
    expect((await hyperscale(["pause", "mail"], at)).stdout).toMatch(/^queue mail is paused/);
    const other = await hyperscale(["resume", "nosuch"], at);
    expect(other).toMatchObject({ code: 0, stdout: "queue nosuch was not paused; paused: mail\n" });
    const resumed = await hyperscale(["resume", "mail"], at);
    expect(resumed.stdout).toBe("queue mail goes on\n");
    const [limits, again] = await Promise.all([
      hyperscale(["limits"], at),
      hyperscale(["resume", "mail", "--json"], at),
    ]);
    expect(limits.stdout).toMatch(/^mail +open/m);
    expect(limits.stdout).not.toMatch(/nosuch/);
    expect(JSON.parse(again.stdout)).toEqual({ queue: "mail", paused: false, was_paused: false });
  });

  it("makes, pauses, resumes, runs and removes a schedule", async () => {
    const schedule = (...args: string[]) => hyperscale(["schedule", ...args], at);
    const listed = async (): Promise<unknown> =>
      JSON.parse((await schedule("list", "--json")).stdout);
    const options = ["--time-zone", "Europe/Berlin", "--catch-up", "all", "--catch-up-max", "7"];
    const put = await schedule("put", "nightly", "30 2 * * *", "sleep", '{"ms":1}', ...options);
    expect(put).toMatchObject({ code: 0, stdout: "schedule nightly: 30 2 * * *\n" });
    const fields = { time_zone: "Europe/Berlin", catch_up: "all", catch_up_max: 7 };
    expect(await listed()).toMatchObject([{ schedule_id: "nightly", paused: false, ...fields }]);
    expect((await schedule("pause", "nightly")).stdout).toBe("schedule nightly is paused\n");
    expect((await schedule("list")).stdout).toMatch(/^nightly .* paused/m);
    const run = await schedule("run", "nightly", "--json");
    expect(JSON.parse(run.stdout)).toMatchObject({ executor: "sleep", schedule_id: "nightly" });
    expect((await schedule("resume", "nightly")).stdout).toBe("schedule nightly goes on\n");
    expect(await listed()).toMatchObject([{ paused: false }]);
    const wrong = await schedule("put", "x", "* * * * *", "sleep", "--catch-up", "some");
    expect(wrong.stderr).toMatch(/none, last, all/);
    expect(await schedule("pause", "x")).toMatchObject({ code: 1 });
    expect((await schedule("remove", "nightly")).code).toBe(0);
    expect(await listed()).toEqual([]);
  });

  it("lets no escape code of a task reach the terminal", async () => {
    const input = JSON.stringify({
      ms: 0,
      fail: "\u001b]0;owned\u0007red\u001b[31m",
      retryable: false,
    });
    const waited = await hyperscale(["submit", "sleep", input, "--wait"], at);
    const listed = await hyperscale(["list"], at);
    expect(waited.code).toBe(3);
    expect(waited.stdout + waited.stderr + listed.stdout).not.toMatch(/[\u001b\u0007]/);
    expect(waited.stdout).toMatch(/error +red/);
  });

  it("submits a graph of a file, once by its key, and waits for its ends", async () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-graph-"));
    try {
      const file = join(directory, "graph.json");
      const sleep = { executor: "sleep", input: { ms: 1 } };
      const graph = { a: sleep, b: { ...sleep, depends_on: ["a"] } };
      writeFileSync(file, JSON.stringify(graph));
      const first = await hyperscale(["submit-graph", file, "--key", "k", "--wait", "--json"], at);
      expect(first).toMatchObject({ code: 0, stderr: "" });
      const ends = JSON.parse(first.stdout) as readonly { readonly name: string }[];
      expect(ends).toMatchObject([
        { name: "a", state: "SUCCEEDED" },
        { name: "b", state: "SUCCEEDED" },
      ]);
      const again = await hyperscale(["submit-graph", file, "--key", "k"], at);
      expect(again.stderr).toMatch(/nothing was added/);
      writeFileSync(file, JSON.stringify({ a: sleep, b: { ...sleep, depends_on: ["c"] } }));
      const wrong = await hyperscale(["submit-graph", file], at);
      expect(wrong).toMatchObject({ code: 2, stdout: "" });
      expect(wrong.stderr).toMatch(/tasks\.b: depends_on names "c"/);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it("rejects settings or an address that cannot work at start", async () => {
    const start = (...args: string[]): Promise<Outcome> =>
      hyperscale(["start", "--database", server.url, ...args]);
    const [open, lease, database] = await Promise.all([
      start("--listen", "0.0.0.0:0"),
      hyperscale(["start", "--database", server.url], {
        HYPERSCALE_LEASE_DURATION_SECONDS: "5",
        HYPERSCALE_LEASE_CLEANUP_INTERVAL_SECONDS: "5",
      }),
      hyperscale(["start", "--database", "postgres://postgres@127.0.0.1:9/none"]),
    ]);
    expect(open).toMatchObject({ code: 2, stdout: "" });
    expect(open.stderr).toMatch(
      /refusing to listen on 0\.0\.0\.0 without authentication: give --token-file/,
    );
    expect(lease).toMatchObject({ code: 2, stdout: "" });
    expect(lease.stderr).toMatch(/cleanup interval \(5000 ms\) must be below the task lease/);
    expect(database).toMatchObject({ code: 1, stdout: "" });
    expect(database.stderr).toMatch(/the database is not available/);
  });
});
