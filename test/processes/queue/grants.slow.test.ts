/** Work as the leader hands it out, asked of the leader itself. */

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { QueueSettings } from "../../../src/core/queue/settings.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("grants of a leader", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  /** A leader without slots, and workers that it knows and that ask by call. */
  async function leading(names: readonly string[], changes: Partial<QueueSettings> = {}) {
    const database = await bench.database();
    const settings = { ...calmSettings, maxParallel: 0, ...changes };
    const node = await bench.node({ database, settings });
    const leader = await eventually("it leads", async () => node.leader());
    const workers = names.map((nodeId) => ({ nodeId, run: randomUUID() }));
    for (const { nodeId, run } of workers) {
      await leader.register({
        ...{ node_id: nodeId, run, role: "worker", url: null, max_parallel: 1 },
        ...{ executor_types: ["work"], capabilities: {} },
      });
    }
    return { database, leader, workers, client: bench.client(node) };
  }

  it("hand a task that is in memory twice to one worker only", async () => {
    const { leader, workers, client } = await leading(["one", "other"]);
    const { id } = await client.submit({ executor: "work" });
    const { lanes } = leader.memory;
    const [task] = lanes.peek({ nodeId: "one", executors: ["work"], capabilities: {} }, 1);
    if (task === undefined) throw new Error("it is not in memory");
    // As when it is read again while a claim of it is under way.
    lanes.add("elsewhere", task);
    const grants = await Promise.all(
      workers.map((worker) => leader.acquire({ ...worker, max: 1, waitMs: 500 })),
    );
    expect(grants.flat().map(({ task_id }) => task_id)).toEqual([id]);
  });

  it("end with their lease: the task is free again, and the old token is rejected (TQ-32, TQ-33)", async () => {
    const short = { taskLeaseMs: 3_000, leaseCleanupMs: 200, heartbeatMs: 10_000 };
    const { leader, workers, client, database } = await leading(["one", "other"], short);
    const [one, other] = workers;
    if (one === undefined || other === undefined) throw new Error("there are two workers");
    const { id } = await client.submit({ executor: "work", max_attempts: 3 });
    const [first] = await leader.acquire({ ...one, max: 1, waitMs: 500 });
    if (first === undefined) throw new Error("it got nothing");
    expect(await leader.renew(one.nodeId, [first])).toEqual([]);
    // The worker is alive and sends heartbeats, but does not renew.
    const second = await eventually("another gets it", async () => {
      for (const { nodeId, run } of workers) await leader.heartbeat(nodeId, run);
      return (await leader.acquire({ ...other, max: 1, waitMs: 100 }))[0];
    });
    expect([second.task_id, second.lease_token === first.lease_token]).toEqual([id, false]);
    expect(await leader.renew(one.nodeId, [first])).toEqual([first.lease_token]);
    const done = { status: "completed", result: '"late"', error: null } as const;
    const late = { ...first, ...done, elapsed_ms: 1, start_noted: true };
    expect(await leader.report(one.nodeId, [late])).toEqual([first.lease_token]);
    const [row] = await bench.query(database, "select state, result from tasks");
    expect(row).toMatchObject({ result: null });
    expect(row?.["state"]).not.toBe("SUCCEEDED");
  });

  it("that are lost stop what runs under them, and nothing of it is reported (TQ-32)", async () => {
    const database = await bench.database();
    const signals: AbortSignal[] = [];
    const work = async (_: unknown, { signal }: { signal: AbortSignal }) => {
      signals.push(signal);
      if (signals.length > 1) return "the second";
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      return "the first";
    };
    const settings = { ...calmSettings, taskLeaseMs: 3_000, leaseCleanupMs: 500, maxParallel: 2 };
    const node = await bench.node({ database, settings, executors: { work } as never });
    const leader = await eventually("it leads", async () => node.leader());
    const { id } = await bench.client(node).submit({ executor: "work", max_attempts: 3 });
    await eventually("it runs", async () => signals[0]);
    const [held] = await bench.query(database, "select lease_id from tasks");
    const lease_token = String(held?.["lease_id"]);
    await leader.release("elsewhere", [{ task_id: id, lease_token }]);
    expect(await bench.client(node).wait(id)).toMatchObject({
      ...{ state: "SUCCEEDED", result: "the second" },
    });
    await eventually("the first is told to stop", async () => signals[0]?.aborted);
    expect(signals).toHaveLength(2);
    const [row] = await bench.query(database, "select result, history::text as events from tasks");
    expect(row?.["result"]).toBe("the second");
    expect(row?.["events"]).not.toContain("late_result");
  });

  it("come back undelivered when their worker lists its tasks, unless the list is stale", async () => {
    const { leader, workers, client, database } = await leading(["one"]);
    const [worker] = workers;
    if (worker === undefined) throw new Error("there is no worker");
    const { id } = await client.submit({ executor: "work", max_attempts: 1 });
    const ask = { ...worker, max: 1, waitMs: 500 };
    expect(await leader.acquire(ask)).toHaveLength(1);
    const [grant] = await leader.acquire({ ...ask, held: { question: 2, tokens: [] } });
    expect(grant).toMatchObject({ task_id: id, attempt_id: 2 });
    expect(await leader.acquire({ ...ask, held: { question: 1, tokens: [] } })).toEqual([]);
    const [row] = await bench.query(
      database,
      "select state, lease_id, attempts_forgiven from tasks",
    );
    expect(row).toEqual({ state: "RUNNING", lease_id: grant?.lease_token, attempts_forgiven: 1 });
  });
});
