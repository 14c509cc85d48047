/** Database records of executions, and the one clock for all times. */

import { describe, expect, it, vi } from "vitest";
import type { ExecutionContext } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const YEAR_MS = 365 * 24 * 3_600_000;

describe("records and times", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  it("records the key that executors get, the same for every attempt and order of fields (TQ-31)", async () => {
    const database = await bench.database();
    const keys: string[] = [];
    const keyed = (_: unknown, context: { idempotencyKey: string; attempt: number }): string => {
      keys.push(context.idempotencyKey);
      if (context.attempt === 1) throw new Error("once more");
      return "done";
    };
    const client = bench.client(await bench.node({ database, executors: { keyed } }));
    const input = { b: 1.0, a: [1e3, "ü\u2028"], large: "x".repeat(5_000) };
    const task = await client.submit({ executor: "keyed", input });
    expect(await client.wait(task.id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 2 });
    const rows = await bench.query(
      database,
      `select attempt_id, idempotency_key, status from execution_idempotency where task_id = ${task.id} order by 1`,
    );
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(rows).toEqual([
      { attempt_id: 1, idempotency_key: keys[0], status: "failed" },
      { attempt_id: 2, idempotency_key: keys[1], status: "completed" },
    ]);
  });

  it("counts seconds from now and the first tick by the database, whatever the node's clock (TQ-13)", async () => {
    const database = await bench.database();
    const client = bench.client(await bench.node({ database, settings: calmSettings }));
    const wrong = Date.now() - YEAR_MS;
    const clock = vi.spyOn(Date, "now").mockReturnValue(wrong);
    try {
      const task = await client.submit({ executor: "sleep", input: { ms: 1 }, run_after: 3_600 });
      expect(task.waiting_reason).toMatch(/^waits until /);
      expect(Date.parse(task.run_after ?? "")).toBeGreaterThan(wrong + YEAR_MS);
      await client.putSchedule("yearly", "0 0 1 1 *", { executor: "sleep" });
      const [schedule] = await client.schedules();
      expect(Date.parse(schedule?.next_tick ?? "")).toBeGreaterThan(wrong + YEAR_MS);
    } finally {
      clock.mockRestore();
    }
  });

  it("finds ready tasks of every priority again after a change of leader", async () => {
    const database = await bench.database();
    const first = await bench.node({ database, settings: { maxParallel: 0 } });
    const client = bench.client(first);
    const priorities = [3, -2, 0, 3, 9, 0];
    await client.submitMany(
      priorities.map((priority, i) => ({ executor: "note", input: i, priority })),
    );
    await first.stop(0);
    const order: number[] = [];
    const note = (input: unknown): void => void order.push(Number(input));
    await bench.node({ database, executors: { note }, settings: { maxParallel: 1 } });
    await eventually("all ran", async () => order.length === priorities.length);
    expect(order).toEqual([4, 0, 3, 2, 5, 1]);
  });

  it("keeps what a live task depends on beyond its time, and removes it afterwards", async () => {
    const database = await bench.database();
    const executors = {
      give: (input: unknown) => input,
      handed: (_: unknown, { dependencies }: ExecutionContext) => dependencies,
    };
    const first = await bench.node({ database, executors, settings: calmSettings });
    const before = bench.client(first);
    await before.limitQueue("later", { paused: true });
    const { tasks } = await before.submitGraph({
      other: { executor: "give" },
      needed: { executor: "give", input: "still there" },
      dependent: { executor: "handed", depends_on: ["needed"], queue: "later" },
    });
    for (const { id } of [tasks.other, tasks.needed]) await before.wait(id);
    await first.stop(0);
    const settings = { ...calmSettings, retentionMs: 1 };
    const client = bench.client(await bench.node({ database, executors, settings }));
    await eventually("the other is removed", async () => (await client.list()).length === 2);
    const result = client.wait(tasks.dependent);
    await client.limitQueue("later", { paused: false });
    expect((await result).result).toEqual({ needed: "still there" });
  });

  it("keeps tasks for the retention of their outcome", async () => {
    const database = await bench.database();
    const first = await bench.node({ database, settings: calmSettings });
    const client = bench.client(first);
    const done = await client.submit({ executor: "sleep", input: { ms: 1 } });
    const failing = { ms: 1, fail: "on purpose", retryable: false };
    const failed = await client.submit({ executor: "sleep", input: failing });
    const cancelled = await client.submit({ executor: "nobody" });
    await client.cancel(cancelled.id);
    for (const { id } of [done, failed]) await client.wait(id);
    await first.stop(0);
    const settings = { ...calmSettings, retentionMs: 1, retentionCancelledMs: 1 };
    const reader = bench.client(await bench.node({ database, settings }));
    await eventually("the others are removed", async () => (await reader.list()).length === 1);
    expect(await reader.get(failed.id)).toMatchObject({ state: "FAILED" });
    const { counts } = await reader.status();
    expect(counts).toMatchObject({ SUCCEEDED: 0, FAILED: 1, CANCELLED: 0 });
  });
});
