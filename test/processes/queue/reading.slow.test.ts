/** Lists and single tasks: complete, in order, with reasons, in bounded answers. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { QueueClient, type QueueNode, type QueueSettings } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import {
  calmSettings,
  eventually,
  fastEnvironment,
  hasBegun,
  NodeProcess,
  startNode,
} from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const LARGE = 1_000_000;

describe("reading the queue", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;
  const open: (QueueNode | QueueClient | NodeProcess)[] = [];

  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) {
      if (one instanceof QueueClient) one.close();
      else if (one instanceof NodeProcess) await one.end();
      else await one.stop(0);
    }
  });
  afterAll(() => server.stop());

  async function queue(settings: Partial<QueueSettings> = {}) {
    const database = await server.createQueue();
    const node = await startNode({ database, settings: { ...calmSettings, ...settings } });
    const client = new QueueClient(node.url);
    open.push(node, client);
    return { database, client };
  }

  async function pages(client: QueueClient, filter: object): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let before: string | undefined; ; ) {
      const page = await client.list({ ...filter, limit: 10, ...(before ? { before } : {}) });
      ids.push(...page.map(({ id }) => id));
      before = page.at(-1)?.id;
      if (before === undefined) return ids;
    }
  }

  it("lists a task whose node died on its last attempt among the dead letters, with the reason", async () => {
    const { client, database } = await queue({ maxParallel: 0 });
    const args = ["--database", database, "--role", "worker", "--node-id", "doomed"];
    const doomed = new NodeProcess(args, fastEnvironment);
    open.push(doomed);
    await doomed.ready;
    const task = await client.submit({
      executor: "sleep",
      input: { ms: 600_000 },
      max_attempts: 1,
    });
    await hasBegun(client, task.id);
    await doomed.end("SIGKILL");
    const again = new NodeProcess(args, fastEnvironment);
    open.push(again);
    await eventually("it failed", async () => (await client.get(task.id)).state === "FAILED");
    expect(await client.list({ state: "FAILED" })).toMatchObject([
      { id: task.id, error: { message: expect.stringMatching(/doomed/) } },
    ]);
  });

  it("gives a reason to a failure that came without one", async () => {
    const { client } = await queue({ maxParallel: 0 });
    await client.call("register_node", { node_id: "foreign", executor_types: ["any"] });
    const task = await client.submit({ executor: "any", max_attempts: 1 });
    const { leases } = (await client.call("acquire_lease", { node_id: "foreign" })) as {
      leases: { lease_token: string }[];
    };
    await client.call("report_completion", {
      node_id: "foreign",
      task_id: task.id,
      lease_token: leases[0]?.lease_token,
      status: "failed",
    });
    expect(await client.list({ state: "FAILED" })).toMatchObject([
      { id: task.id, error: { message: "it failed without a reason" } },
    ]);
  });

  it("reaches every live and every dead task page by page, newest first", async () => {
    const { client } = await queue({ maxParallel: 0 });
    const tasks = Array.from({ length: 32 }, (_, i) => ({ executor: "none", priority: i % 3 }));
    const ids = (await client.submitMany(tasks)).map((one) => ("id" in one ? one.id : ""));
    const newestFirst = [...ids].reverse();
    expect(await pages(client, { state: "QUEUED" })).toEqual(newestFirst);
    expect(await pages(client, {})).toEqual(newestFirst);
    for (const id of ids) await client.cancel(id);
    expect(await pages(client, { states: ["CANCELLED", "FAILED"] })).toEqual(newestFirst);
  });

  it("answers a list of 50 tasks of 1 MB each in less than 100 KB", async () => {
    const { client } = await queue({ maxParallel: 0 });
    for (let i = 0; i < 50; i++)
      await client.submit({ executor: "none", input: "x".repeat(LARGE) });
    const small = await client.submit({ executor: "none", input: { small: true } });
    const tasks = await client.list({ limit: 51 });
    expect(JSON.stringify(tasks).length).toBeLessThan(100_000);
    expect(tasks[0]).toMatchObject({ id: small.id, input: { small: true } });
    expect(tasks[1]).toMatchObject({ input: null, omitted: ["input"] });
    expect((await client.get(tasks[1]?.id ?? "")).input).toHaveLength(LARGE);
  });

  it("searches for the text itself: a percent sign is a percent sign", async () => {
    const { client } = await queue({ maxParallel: 0 });
    await client.submit({ executor: "none", input: "nothing" });
    const half = await client.submit({ executor: "none", input: "50% of it" });
    expect((await client.list({ search: "%" })).map(({ id }) => id)).toEqual([half.id]);
    expect((await client.list({ search: "50% OF" })).map(({ id }) => id)).toEqual([half.id]);
    expect(await client.list({ search: "n_thing" })).toEqual([]);
    await client.cancel(half.id, "the customer left");
    const found = await client.list({ search: "customer left" });
    expect(found.map(({ id }) => id)).toEqual([half.id]);
  });

  it("shows what the leader did over time, also through a node that takes no writes", async () => {
    const { client, database } = await queue();
    const observer = await startNode({ database, role: "observer", settings: calmSettings });
    const reading = new QueueClient(observer.url);
    open.push(observer, reading);
    const task = await client.submit({ executor: "sleep", input: { ms: 1 } });
    await client.wait(task.id);
    const activity = await eventually("a window closes", async () => {
      const found = await reading.activity();
      return found.windows.some(({ succeeded }) => succeeded > 0) && found;
    });
    expect(activity.node_id).not.toBe(observer.nodeId);
    const [window] = activity.windows.filter(({ submitted }) => submitted > 0);
    expect(window).toMatchObject({ submitted: 1, assigned: 1, failed: 0, queued: 0, running: 0 });
    expect(window?.wait_p95_ms).toBeGreaterThan(0);
  });

  it("sends back a dependent that was cancelled with its dependency, once that is saved", async () => {
    const { client } = await queue();
    const first = await client.submit({
      executor: "http",
      input: { url: "http://127.0.0.1:9/", timeout_ms: 1 },
      max_attempts: 1,
      // The task fails after the dependent has been submitted.
      run_after: 2,
    });
    const slow = await client.submit({ executor: "sleep", input: { ms: 1 }, run_after: 3_600 });
    const dependent = await client.submit({
      executor: "sleep",
      input: { ms: 1 },
      depends_on: [first.id, slow.id],
    });
    expect(dependent.waits_for).toEqual([first.id, slow.id]);
    expect((await client.wait(dependent.id)).state).toBe("CANCELLED");
    const waiting = await client.requeue(dependent.id);
    expect(waiting).toMatchObject({ state: "QUEUED", waiting_on: 1, waits_for: [slow.id] });
    await client.cancel(slow.id);
    expect((await client.wait(dependent.id)).state).toBe("CANCELLED");
    await client.requeue(dependent.id);
    expect(await client.wait(dependent.id)).toMatchObject({
      state: "SUCCEEDED",
      attempt_id: 3,
      max_attempts: 3,
      attempts_forgiven: 2,
    });
  });

  it("reports whether a submit added a task or found the one that has its key", async () => {
    const { client } = await queue({ maxParallel: 0 });
    const task = { executor: "none", unique_key: "only" };
    expect((await client.submit(task)).created).toBe(true);
    expect((await client.submit(task)).created).toBe(false);
  });
});
