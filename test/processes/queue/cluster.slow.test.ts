/** The queue on a real PostgreSQL server, over several nodes and processes. Real time is the subject here. */

import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Executors, QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { loadMigrations } from "../../../src/queue/store/database.ts";
import { needs } from "../../needs.ts";
import { audit } from "./audit.ts";
import {
  calmSettings,
  eventually,
  fastEnvironment,
  hasBegun,
  NodeProcess,
  startNode,
} from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const echo = { echo: (_: unknown, context: { attempt: number }) => ({ attempt: context.attempt }) };

describe("queue cluster on PostgreSQL", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;
  const open: (QueueNode | NodeProcess | QueueClient)[] = [];

  beforeAll(async () => {
    server = await TestPostgres.start();
  });

  // Nodes of one test must not hold connections, of which the server has 200, while the next runs.
  afterEach(async () => {
    await Promise.all(
      open.splice(0).map(async (one) => {
        if (one instanceof NodeProcess) await one.end();
        else if (one instanceof QueueClient) one.close();
        else await one.stop(0);
      }),
    );
  });
  afterAll(() => server.stop());

  function keep<One extends QueueNode | NodeProcess | QueueClient>(one: One): One {
    open.push(one);
    return one;
  }

  async function cluster(size: number, executors: Executors = echo, settings = {}) {
    const database = await server.createQueue();
    const nodes: QueueNode[] = [];
    for (let i = 0; i < size; i++)
      nodes.push(keep(await startNode({ database, executors, settings })));
    const [first] = nodes;
    if (first === undefined) throw new Error("a cluster has a node");
    return { database, nodes, first, client: keep(new QueueClient(first.url)) };
  }

  it("runs every one of 500 tasks to success over three nodes, in legal histories", async () => {
    const { client, database } = await cluster(3, echo, calmSettings);
    await client.submitMany(
      Array.from({ length: 500 }, (_, i) => ({ executor: "echo", input: { i } })),
    );
    await eventually(
      "all tasks succeed",
      async () => (await client.status()).counts.SUCCEEDED === 500,
    );
    const result = await audit(database, { allTerminal: true });
    expect(result.problems).toEqual([]);
    expect(result.states).toEqual({ SUCCEEDED: 500 });
  });

  it("migrates once when several nodes start at the same time", async () => {
    const database = await server.createDatabase();
    const nodes = await Promise.all([1, 2, 3, 4].map(() => startNode({ database })));
    for (const node of nodes) keep(node);
    const rows = await server.query(database, "select version from queue_migrations");
    expect(rows.map((row) => row["version"])).toEqual(loadMigrations().map((one) => one.version));
    expect(nodes.filter((node) => node.roleName === "leader")).toHaveLength(1);
  });

  // TQ-22
  it("keeps submit order among equal priorities and takes higher priorities first", async () => {
    const order: number[] = [];
    const database = await server.createQueue();
    const node = keep(await startNode({ database, settings: { maxParallel: 0 } }));
    const client = keep(new QueueClient(node.url));
    const priorities = [0, 0, 5, 0, 5, -1];
    await client.submitMany(
      priorities.map((priority, i) => ({ executor: "note", input: i, priority })),
    );
    const note = (input: unknown): void => void order.push(Number(input));
    keep(
      await startNode({
        database,
        role: "worker",
        executors: { note },
        settings: { maxParallel: 1 },
      }),
    );
    await eventually("all ran", async () => order.length === 6);
    expect(order).toEqual([2, 4, 0, 1, 3, 5]);
  });

  it("finishes a killed worker's task on another node as attempt 2", async () => {
    const { client, database } = await cluster(1);
    const worker = keep(
      new NodeProcess(
        ["--database", database, "--role", "worker", "--node-id", "doomed"],
        fastEnvironment,
      ),
    );
    await worker.ready;
    const task = await client.submit({
      executor: "sleep",
      input: { ms: 60_000 },
      placement_constraints: { allowed_nodes: ["doomed", "rescuer"] },
    });
    const happened = async (): Promise<readonly string[]> =>
      (await client.events(task.id)).map((event) => event.event_type);
    // A task is RUNNING when it is handed out; its worker reports the start a little later.
    await eventually("it runs", async () => (await happened()).includes("started"));
    const rescuer = keep(
      await startNode({
        database,
        nodeId: "rescuer",
        role: "worker",
        executors: {
          sleep: (_: unknown, context: { attempt: number }) => ({ attempt: context.attempt }),
        },
      }),
    );
    expect(rescuer.roleName).toBe("worker");
    await worker.end("SIGKILL");
    const ended = await client.wait(task.id);
    expect(ended).toMatchObject({
      state: "SUCCEEDED",
      attempt_id: 2,
      result: { attempt: 2 },
      last_assigned_node: "rescuer",
    });
    expect(await happened()).toEqual([
      "created",
      "assigned",
      "started",
      "reassigned",
      "assigned",
      "started",
      "completed",
    ]);
  });

  it("lets a long task outlive several leases by renewal, as one attempt (TQ-30)", async () => {
    const { client } = await cluster(1);
    const task = await client.submit({ executor: "sleep", input: { ms: 5_000, result: "done" } });
    const ended = await client.wait(task.id);
    expect(ended).toMatchObject({ state: "SUCCEEDED", attempt_id: 1, result: "done" });
  });

  // TQ-2, TQ-12
  it("rejects every write of a leader that was stopped past its lease and resumed", async () => {
    const database = await server.createQueue();
    const paused = keep(
      new NodeProcess(["--database", database, "--node-id", "paused"], fastEnvironment),
    );
    const { url } = await paused.ready;
    const successor = keep(
      await startNode({ database, nodeId: "successor", settings: { maxParallel: 0 } }),
    );
    const client = keep(new QueueClient(successor.url));
    await client.submitMany(
      Array.from({ length: 20 }, () => ({ executor: "sleep", input: { ms: 1 } })),
    );
    paused.signal("SIGSTOP");
    await eventually("the successor leads", async () => successor.roleName === "leader");
    const epoch = (await client.status()).leader?.epoch ?? 0;
    const old = keep(new QueueClient(url));
    const late = old
      .submit({ executor: "sleep", input: { ms: 1 }, idempotency_key: "late" })
      .catch((error) => error);
    paused.signal("SIGCONT");
    await late;
    await eventually("all done", async () => {
      const { counts } = await client.status();
      return counts.QUEUED + counts.RUNNING === 0;
    });
    const result = await audit(database, { allTerminal: true });
    expect(result.problems).toEqual([]);
    const writers = await server.query(
      database,
      `select max(epoch)::int as epoch from task_events where "timestamp" > (select acquired_at from cluster_leader)`,
    );
    expect(Number(writers[0]?.["epoch"] ?? epoch)).toBe(epoch);
  });

  it("never runs a task that was cancelled while queued", async () => {
    const ran: unknown[] = [];
    const database = await server.createQueue();
    const node = keep(await startNode({ database, settings: { maxParallel: 0 } }));
    const client = keep(new QueueClient(node.url));
    const task = await client.submit({ executor: "note", input: 1 });
    const other = await client.submit({ executor: "note", input: 2 });
    expect((await client.cancel(task.id)).state).toBe("CANCELLED");
    expect((await client.cancel(task.id)).state).toBe("CANCELLED");
    keep(
      await startNode({
        database,
        role: "worker",
        executors: { note: (input) => ran.push(input) },
      }),
    );
    await client.wait(other.id);
    expect(ran).toEqual([2]);
    expect((await client.events(task.id)).map((event) => event.event_type)).toEqual([
      "created",
      "cancelled",
    ]);
  });

  // TQ-21
  it("signals a running task that is cancelled, and keeps it cancelled when it answers late", async () => {
    let aborted = false;
    const stubborn = async (_: unknown, context: { signal: AbortSignal }) => {
      await new Promise<void>((resolve) =>
        context.signal.addEventListener("abort", () => resolve()),
      );
      aborted = true;
      return "too late";
    };
    const { client, nodes } = await cluster(2, { ...echo, stubborn } as never);
    expect(nodes).toHaveLength(2);
    const task = await client.submit({ executor: "stubborn" });
    await hasBegun(client, task.id);
    await client.cancel(task.id);
    await eventually("the signal arrives", async () => aborted);
    expect(await client.get(task.id)).toMatchObject({ state: "CANCELLED", result: null });
  });

  it("loses nothing when everything is restarted", async () => {
    const database = await server.createQueue();
    const before = await startNode({ database, settings: { maxParallel: 0 } });
    const first = new QueueClient(before.url);
    await first.submitMany(Array.from({ length: 100 }, () => ({ executor: "echo" })));
    first.close();
    await before.stop(0);
    await server.crash();
    await server.run();
    const after = keep(await startNode({ database, executors: echo }));
    const client = keep(new QueueClient(after.url));
    await eventually("all done", async () => (await client.status()).counts.SUCCEEDED === 100);
    expect((await audit(database, { allTerminal: true })).problems).toEqual([]);
  });

  it("hands running work back at once when a node stops, and another finishes it", async () => {
    const { client, database, first } = await cluster(1);
    const leaving = await startNode({
      database,
      nodeId: "leaving",
      role: "worker",
      executors: { only: () => new Promise(() => undefined) },
    });
    const task = await client.submit({ executor: "only" });
    await hasBegun(client, task.id);
    expect(await leaving.stop(50)).toBe(1);
    expect(await client.get(task.id)).toMatchObject({ state: "QUEUED", attempt_id: 2 });
    keep(await startNode({ database, role: "worker", executors: { only: () => "finished" } }));
    expect(await client.wait(task.id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 2 });
    expect(first.roleName).toBe("leader");
  });

  // TQ-5, TQ-40
  it("forwards writes from a worker; an observer reads, and rejects writes by naming the leader", async () => {
    const { database, first } = await cluster(1);
    const worker = keep(await startNode({ database, role: "worker", executors: echo }));
    const observer = keep(await startNode({ database, role: "observer" }));
    const viaWorker = keep(new QueueClient(worker.url));
    const viaObserver = keep(new QueueClient(observer.url));
    const task = await viaWorker.submit({ executor: "echo" });
    await viaWorker.wait(task.id);
    expect((await viaObserver.get(task.id)).state).toBe("SUCCEEDED");
    await expect(viaObserver.submit({ executor: "echo" })).rejects.toThrow(
      new RegExp(`observer.*${first.nodeId} at ${first.url}`),
    );
  });

  it("reports on every node which node has how many leases (TQ-44)", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const executors = { held: () => released };
    const { database, first, client } = await cluster(1, executors, calmSettings);
    const worker = keep(
      await startNode({ database, role: "worker", executors, settings: calmSettings }),
    );
    const observer = keep(await startNode({ database, role: "observer" }));
    const on = (node: QueueNode) => ({ placement_constraints: { allowed_nodes: [node.nodeId] } });
    const places = [first, worker, worker].map((node) => ({ executor: "held", ...on(node) }));
    const tasks = await client.submitMany(places);
    const nodes = [first, worker, observer];
    const metrics = (node: QueueNode) => fetch(`${node.url}/metrics`).then((page) => page.text());
    const leases = async (node: QueueNode) => {
      const text = await metrics(node);
      const found = text.matchAll(/^hyperscale_queue_leases\{node="([^"]+)"\} (\d+)$/gm);
      return Object.fromEntries([...found].map(([, id = "", count]) => [id, Number(count)]));
    };
    const held = { [first.nodeId]: 1, [worker.nodeId]: 2 };
    // A node may use a count for a while.
    const tell = (counts: Readonly<Record<string, number>>) =>
      Promise.all(
        nodes.map((node) =>
          eventually("it tells them", async () => isDeepStrictEqual(await leases(node), counts)),
        ),
      );
    await tell({ ...held, [observer.nodeId]: 0 });
    for (const node of nodes)
      expect((await keep(new QueueClient(node.url)).status()).leases).toEqual(held);
    release();
    for (const task of tasks) await client.wait("id" in task ? task.id : "");
    await tell({ [first.nodeId]: 0, [worker.nodeId]: 0, [observer.nodeId]: 0 });
  });

  // TQ-3
  it("lets a leader be made an observer and back: another leads meanwhile, and work continues", async () => {
    const { client, nodes, first } = await cluster(2);
    expect(first.roleName).toBe("leader");
    await client.call("set_role", { role: "observer" });
    expect(first.roleName).toBe("observer");
    await expect(client.submit({ executor: "echo" })).rejects.toThrow(/observer/);
    const other = keep(new QueueClient(nodes[1]?.url ?? ""));
    const task = await other.submit({ executor: "echo" });
    expect(await other.wait(task.id)).toMatchObject({
      state: "SUCCEEDED",
      last_assigned_node: nodes[1]?.nodeId,
    });
    await client.call("set_role", { role: "auto" });
    expect(first.roleName).toBe("worker");
    expect((await client.wait((await client.submit({ executor: "echo" })).id)).state).toBe(
      "SUCCEEDED",
    );
  });

  it("starts dependents when all they depend on succeeded and cancels them when one did not", async () => {
    const { client } = await cluster(1);
    // Long enough that what depends on them is there before they end.
    const good = await client.submit({ executor: "sleep", input: { ms: 4_000 } });
    const bad = await client.submit({
      executor: "sleep",
      input: { ms: 4_000, fail: true },
      max_attempts: 1,
    });
    const after = await client.submit({ executor: "echo", depends_on: [good.id] });
    const never = await client.submit({ executor: "echo", depends_on: [good.id, bad.id] });
    const chained = await client.submit({ executor: "echo", depends_on: [never.id] });
    expect(after.waiting_reason).toBe(`waits on 1 other task: ${good.id}`);
    expect((await client.wait(after.id)).state).toBe("SUCCEEDED");
    expect((await client.wait(never.id)).state).toBe("CANCELLED");
    expect((await client.wait(chained.id)).state).toBe("CANCELLED");
    await expect(client.submit({ executor: "echo", depends_on: ["999999"] })).rejects.toThrow(
      /do not exist: 999999/,
    );
  });

  it("runs a task no earlier than run_after, and places by capability", async () => {
    const { client, database } = await cluster(1);
    const soon = await client.submit({ executor: "echo", run_after: 0.6 });
    expect(soon.waiting_reason).toMatch(/^waits until/);
    const done = await client.wait(soon.id);
    expect(Date.parse(done.started_at ?? "")).toBeGreaterThanOrEqual(
      Date.parse(done.run_after ?? ""),
    );
    const picky = await client.submit({
      executor: "echo",
      placement_constraints: { requires_capabilities: { gpu: "nvidia" } },
    });
    expect((await client.get(picky.id)).waiting_reason).toMatch(/lacks capability gpu=nvidia/);
    keep(
      await startNode({
        database,
        nodeId: "gpu",
        role: "worker",
        executors: echo,
        capabilities: { gpu: "nvidia" },
      }),
    );
    expect(await client.wait(picky.id)).toMatchObject({
      state: "SUCCEEDED",
      last_assigned_node: "gpu",
    });
  });

  // TQ-26
  it("returns the first task for the same key and content, and rejects other content", async () => {
    const { client } = await cluster(1);
    const first = await client.submit({
      executor: "echo",
      input: { a: 1, b: 2 },
      idempotency_key: "k",
    });
    const again = await client.submit({
      executor: "echo",
      input: { b: 2, a: 1 },
      idempotency_key: "k",
    });
    expect(again.id).toBe(first.id);
    await expect(
      client.submit({ executor: "echo", input: { a: 2 }, idempotency_key: "k" }),
    ).rejects.toThrow(/belongs to task/);
    const batch = await client.submitMany(
      [1, 2, 3].map(() => ({ executor: "echo", idempotency_key: "batch" })),
    );
    expect(new Set(batch.map((one) => ("id" in one ? one.id : "refused"))).size).toBe(1);
  });

  it("keeps one live task per unique key and admits the next when it has finished", async () => {
    const { client } = await cluster(1);
    const one = await client.submit({ executor: "sleep", input: { ms: 300 }, unique_key: "u" });
    expect((await client.submit({ executor: "sleep", input: { ms: 1 }, unique_key: "u" })).id).toBe(
      one.id,
    );
    await client.wait(one.id);
    expect(
      (await client.submit({ executor: "sleep", input: { ms: 1 }, unique_key: "u" })).id,
    ).not.toBe(one.id);
  });

  it("lists dead letters and sends one back with fresh attempts", async () => {
    const { client } = await cluster(1);
    const task = await client.submit({
      executor: "sleep",
      input: { ms: 0, fail: "no" },
      max_attempts: 2,
    });
    expect(await client.wait(task.id)).toMatchObject({
      state: "FAILED",
      attempt_id: 2,
      error: { message: "no" },
    });
    expect((await client.list({ state: "FAILED" })).map((one) => one.id)).toEqual([task.id]);
    await client.requeue(task.id);
    expect(await client.wait(task.id)).toMatchObject({ state: "FAILED", attempt_id: 4 });
    await expect(client.requeue((await client.submit({ executor: "echo" })).id)).rejects.toThrow(
      /only FAILED and CANCELLED/,
    );
  });

  it("does not retry a failure marked as final (TQ-23)", async () => {
    const { client } = await cluster(1);
    const task = await client.submit({
      executor: "sleep",
      input: { ms: 0, fail: true, retryable: false },
    });
    expect(await client.wait(task.id)).toMatchObject({ state: "FAILED", attempt_id: 1 });
  });

  it("enqueues exactly one task per tick over three nodes", async () => {
    const { client, database } = await cluster(3);
    await client.putSchedule("every-minute", "* * * * *", { executor: "echo" });
    // Three ticks are made due by hand; a cluster that enqueued twice would show more tasks than ticks.
    for (let tick = 0; tick < 3; tick++) {
      await server.query(
        database,
        `update task_schedules set next_tick = date_trunc('minute', now()) - interval '${3 - tick} minutes'`,
      );
      await eventually("the tick is taken", async () => {
        const [row] = await server.query(
          database,
          "select next_tick > now() as future from task_schedules",
        );
        return row?.["future"] === true;
      });
    }
    const tasks = (await client.list()).filter((task) => task.schedule_id === "every-minute");
    expect(tasks).toHaveLength(3);
    await client.removeSchedule("every-minute");
    expect(await client.schedules()).toEqual([]);
  });

  it("prunes finished tasks after their retention and keeps the rest", async () => {
    const database = await server.createQueue();
    const first = await startNode({ database, executors: echo });
    const client = new QueueClient(first.url);
    await client.submitMany(Array.from({ length: 50 }, () => ({ executor: "echo" })));
    await client.submit({ executor: "elsewhere" });
    await eventually("done", async () => (await client.status()).counts.SUCCEEDED === 50);
    client.close();
    await first.stop(0);
    await server.query(
      database,
      "update tasks set created_at = now() - interval '8 days', finished_at = finished_at - interval '8 days'",
    );
    const second = keep(await startNode({ database, executors: echo }));
    await eventually("pruned", async () => {
      const counts = await second.reader.counts();
      return counts.SUCCEEDED === 0 && counts.QUEUED === 1;
    });
    expect(await server.query(database, "select executor from tasks")).toEqual([
      { executor: "elsewhere" },
    ]);
  });
});
