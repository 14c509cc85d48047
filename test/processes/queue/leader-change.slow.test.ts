/** Leaders and workers that disappear: healthy nodes keep their work, and waiting clients are answered. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { defaultSettings, QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import {
  calmSettings,
  eventually,
  fastEnvironment,
  fastSettings,
  hasBegun,
  NodeProcess,
  startNode,
} from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/** Short, because a test waits until it expires; no busy machine keeps a worker from renewing it for this long. */
const LEASE_MS = 4_000;

/** Executions that wait until they are let go. */
function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, hold: () => opened };
}

describe("leaders and workers that disappear", needs(TestPostgres.available(), NO_POSTGRES), () => {
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

  function keep<One extends QueueNode | NodeProcess | QueueClient>(one: One): One {
    open.push(one);
    return one;
  }

  /** A separate leader that can be killed, a successor that runs no tasks, and a worker. */
  async function trio(
    executors: NonNullable<Parameters<typeof startNode>[0]["executors"]>,
    { taskLeaseMs } = fastSettings,
  ) {
    const database = await server.createQueue();
    const environment = {
      ...fastEnvironment,
      HYPERSCALE_LEASE_DURATION_SECONDS: String(taskLeaseMs / 1_000),
    };
    const leader = keep(
      new NodeProcess(["--database", database, "--max-parallel", "0"], environment),
    );
    await leader.ready;
    const settings = { taskLeaseMs };
    const successor = keep(
      await startNode({ database, settings: { ...settings, maxParallel: 0 } }),
    );
    const worker = keep(
      await startNode({ database, nodeId: "healthy", role: "worker", executors, settings }),
    );
    const kill = async (): Promise<void> => {
      await leader.end("SIGKILL");
      await eventually("the successor leads", async () => successor.leader() !== undefined);
    };
    return { database, worker, kill, client: keep(new QueueClient(worker.url)) };
  }

  it("costs a healthy worker no attempt when the leader is killed (TQ-34)", async () => {
    const { open: release, hold } = gate();
    const { client, kill } = await trio({ hold }, { ...fastSettings, taskLeaseMs: LEASE_MS });
    const tasks = await Promise.all([1, 2, 3, 4].map(() => client.submit({ executor: "hold" })));
    await Promise.all(tasks.map(({ id }) => hasBegun(client, id)));
    await kill();
    // Longer than the leases that the new leader found.
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS + 1_000));
    release();
    for (const { id } of tasks) {
      expect(await client.wait(id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
    }
  });

  it("keeps max_parallel_per_node over a change of leader (TQ-36)", async () => {
    const { open: release, hold } = gate();
    // Leases that a starved machine does not let run out: then the task would wait for its next attempt.
    const { client, kill } = await trio({ hold }, defaultSettings);
    const limited = { executor: "hold", placement_constraints: { max_parallel_per_node: 1 } };
    const tasks = await Promise.all([client.submit(limited), client.submit(limited)]);
    await eventually("one runs", async () => (await client.status()).counts.RUNNING === 1);
    await kill();
    // A task behind them runs: the worker was asked for more, and the new leader has checked.
    const other = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await client.wait(other.id)).state).toBe("SUCCEEDED");
    // Counts may lag; the tasks themselves do not.
    const states = await Promise.all(tasks.map(async ({ id }) => (await client.get(id)).state));
    expect(states.sort()).toEqual(["QUEUED", "RUNNING"]);
    release();
    await eventually("both end", async () => (await client.status()).counts.SUCCEEDED === 3);
  });

  it("answers clients waiting at a node that does not lead when the leader dies", async () => {
    const { open: release, hold } = gate();
    const { client, kill } = await trio({ hold }, defaultSettings);
    const task = await client.submit({ executor: "hold" });
    const waiting = client.wait(task.id);
    await hasBegun(client, task.id);
    await kill();
    release();
    expect(await waiting).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
  });

  it("sends output of executors to followers of every node", async () => {
    const words: unknown[] = [];
    // A follower receives only later messages: repeat them until one arrives.
    const talk = async (_: unknown, { log }: { log(text: string): void }): Promise<void> => {
      while (words.length === 0) {
        log("a word");
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const { client } = await trio({ talk }, defaultSettings);
    const task = await client.submit({ executor: "talk" });
    const waiting = client.wait(task.id, undefined, ({ event, data }) => {
      if (event === "log") words.push((data as { message: unknown }).message);
    });
    await waiting;
    expect(new Set(words)).toEqual(new Set(["a word"]));
  });

  it("rejects a second live process with the same node id, and accepts it when the first is dead", async () => {
    const database = await server.createQueue();
    const leader = keep(
      await startNode({ database, settings: { ...calmSettings, maxParallel: 0 } }),
    );
    const client = keep(new QueueClient(leader.url));
    const { open: release, hold } = gate();
    const first = await startNode({
      database,
      nodeId: "twin",
      role: "worker",
      executors: { hold },
    });
    const task = await client.submit({ executor: "hold", max_attempts: 1 });
    await hasBegun(client, task.id);
    keep(
      await startNode({ database, nodeId: "twin", role: "worker", executors: { mine: () => 2 } }),
    );
    const other = await client.submit({ executor: "mine" });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(await client.get(other.id)).toMatchObject({ state: "QUEUED" });
    expect(await client.get(task.id)).toMatchObject({ state: "RUNNING", attempt_id: 1 });
    release();
    expect(await client.wait(task.id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
    await first.stop(0);
    expect(await client.wait(other.id)).toMatchObject({ state: "SUCCEEDED", result: 2 });
  });

  it("frees the work of a killed worker after a short grace, not after its lease (TQ-35)", async () => {
    const database = await server.createQueue();
    const settings = { ...calmSettings, maxParallel: 0, taskLeaseMs: 3_600_000 };
    const leader = keep(await startNode({ database, settings }));
    const client = keep(new QueueClient(leader.url));
    const doomed = keep(new NodeProcess(["--database", database, "--role", "worker"]));
    await doomed.ready;
    const task = await client.submit({ executor: "sleep", input: { ms: 600_000 } });
    await hasBegun(client, task.id);
    await doomed.end("SIGKILL");
    await eventually("it is back", async () => (await client.get(task.id)).state === "QUEUED");
    expect(await client.get(task.id)).toMatchObject({ attempt_id: 2 });
  });

  it("does not hand a paused worker its own expired task while it is paused", async () => {
    const database = await server.createQueue();
    const settings = { ...calmSettings, maxParallel: 0, taskLeaseMs: 3_000 };
    const leader = keep(await startNode({ database, settings }));
    const client = keep(new QueueClient(leader.url));
    const paused = keep(
      new NodeProcess(["--database", database, "--role", "worker", "--max-parallel", "2"], {
        HYPERSCALE_LEASE_DURATION_SECONDS: "3",
      }),
    );
    await paused.ready;
    const task = await client.submit({ executor: "sleep", input: { ms: 2_500, result: "done" } });
    await hasBegun(client, task.id);
    paused.signal("SIGSTOP");
    await eventually("it is back", async () => (await client.get(task.id)).attempt_id === 2);
    // Three leases more. One request may have been in flight when the worker stalled; a second is not.
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    expect((await client.get(task.id)).attempt_id).toBeLessThanOrEqual(3);
    paused.signal("SIGCONT");
    expect((await client.wait(task.id)).result).toBe("done");
  });

  it("lists coordinators and observers among the nodes (TQ-4)", async () => {
    const database = await server.createQueue();
    const leader = keep(
      await startNode({ database, nodeId: "chief", settings: { maxParallel: 0 } }),
    );
    keep(await startNode({ database, nodeId: "watcher", role: "observer" }));
    const client = keep(new QueueClient(leader.url));
    await eventually("both are there", async () => (await client.status()).nodes.length === 2);
    expect((await client.status()).nodes).toMatchObject([
      { node_id: "chief", status: "healthy", max_parallel: 0 },
      { node_id: "watcher", status: "healthy", role: "observer", max_parallel: 0 },
    ]);
  });
});
