/** Work as the leader hands it out, asked of the leader itself. */

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("grants of a leader", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  /** A leader without slots, and workers that it knows and that ask by call. */
  async function leading(names: readonly string[]) {
    const database = await bench.database();
    const node = await bench.node({ database, settings: { ...calmSettings, maxParallel: 0 } });
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

  it("come back undelivered when their worker names what it holds, unless that is old news", async () => {
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
