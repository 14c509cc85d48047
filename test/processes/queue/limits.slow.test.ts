/** Time limits of tasks, and many tasks at once. */

import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("limits and bulk", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  async function queueWith(executors: Readonly<Record<string, () => unknown>>) {
    const database = await bench.database();
    const settings = { ...calmSettings, maxParallel: 2 };
    return bench.client(await bench.node({ database, executors, settings }));
  }

  it("ends an execution at its limit, deaf or not, and frees its slot", async () => {
    const client = await queueWith({
      deaf: () => new Promise(() => undefined),
      quick: () => "quick",
    });
    const limits = { executor: "deaf", attempt_timeout: 0.3, max_attempts: 2 };
    const deaf = await Promise.all([1, 2, 3].map(() => client.submit(limits)));
    for (const { id } of deaf) {
      const ended = await client.wait(id);
      expect(ended).toMatchObject({ state: "FAILED", attempt_id: 2, attempt_timeout_ms: 300 });
      expect(ended.error?.message).toBe("it took longer than its limit of 300 ms");
    }
    const quick = await client.submit({ executor: "quick", attempt_timeout: 60 });
    expect((await client.wait(quick.id)).result).toBe("quick");
  });

  it("cancels a task that is not done within its time, whether it waits or runs", async () => {
    const client = await queueWith({ deaf: () => new Promise(() => undefined) });
    const running = await client.submit({ executor: "deaf", timeout: 1 });
    const waiting = await client.submit({ executor: "nobody", timeout: 1 });
    for (const { id } of [running, waiting]) {
      expect(await client.wait(id)).toMatchObject({
        state: "CANCELLED",
        error: { message: "it was not done within its time limit" },
      });
    }
  });

  it("keeps to the concurrency of a queue over all nodes and over leaders, and to pauses", async () => {
    const database = await bench.database();
    let running = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 50));
      running--;
    };
    const options = { database, executors: { work }, settings: calmSettings };
    const first = await bench.node(options);
    await bench.node(options);
    const client = bench.client(await bench.node({ ...options, settings: { maxParallel: 8 } }));
    await client.limitQueue("mail", { concurrency: 3, paused: true });
    const tasks = Array.from({ length: 60 }, () => ({ executor: "work", queue: "mail" }));
    await client.submitMany(tasks);
    const free = await client.submit({ executor: "work" });
    expect((await client.wait(free.id)).state).toBe("SUCCEEDED");
    const [waiting] = await client.list({ queue: "mail", limit: 1 });
    expect(waiting).toMatchObject({ queue: "mail", state: "QUEUED" });
    const [, mail] = await client.queues();
    expect(mail).toMatchObject({ queue: "mail", paused: true, queued: tasks.length, running: 0 });
    expect((await client.get(waiting?.id ?? "")).waiting_reason).toMatch(/"mail" is paused/);
    most = 0;
    await client.limitQueue("mail", { paused: false });
    await eventually("some ran", async () => (await client.status()).counts.SUCCEEDED > 10);
    await first.stop(5_000);
    await eventually("all ran", async () => (await client.status()).counts.SUCCEEDED === 61);
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
    const idle = { paused: false, rate: null, backoff: null, queued: 0, running: 0 };
    expect(await client.queues()).toEqual([
      { queue: "default", concurrency: null, ...idle },
      { queue: "mail", concurrency: 3, ...idle },
    ]);
  });

  it("starts no more tasks of a queue than its rate allows", async () => {
    const starts: number[] = [];
    const client = await queueWith({ work: () => void starts.push(performance.now()) });
    const begun = performance.now();
    await client.limitQueue("api", { rate: { count: 20, seconds: 1 } });
    await client.submitMany(Array.from({ length: 40 }, () => ({ executor: "work", queue: "api" })));
    await eventually("all ran", async () => starts.length === 40);
    for (const [index, at] of starts.entries())
      expect(index + 1).toBeLessThanOrEqual(((at - begun) * 20) / 1_000 + 1);
  });

  it("cancels, sends back and removes all that fit a filter, page after page", async () => {
    const client = await queueWith({ other: () => "other" });
    const many = Array.from({ length: 2_500 }, (_, i) => ({ executor: "none", input: i }));
    await client.submitMany(many);
    const other = await client.submit({ executor: "other" });
    await client.wait(other.id);
    expect(await client.cancelAll({ executor: "none" }, "not needed")).toBe(2_500);
    expect(await client.cancelAll({ executor: "none" })).toBe(0);
    const [newest] = await client.list({ executor: "none", limit: 1 });
    expect(newest).toMatchObject({ state: "CANCELLED", error: { message: "not needed" } });
    expect(await client.requeueAll({ state: "CANCELLED", before: newest?.id ?? "" })).toBe(2_499);
    await eventually("they wait", async () => (await client.status()).counts.QUEUED === 2_499);
    expect(await client.deleteAll({ executor: "none" })).toBe(1);
    await eventually("they are gone", async () => (await client.status()).counts.CANCELLED === 0);
    const ids = (await client.list({ executor: "none", limit: 3 })).map(({ id }) => id);
    const named = [...ids, other.id, "999999999"];
    expect(await client.call("cancel_tasks", { ids: named })).toEqual({ changed: 3, next: null });
    expect(await client.call("delete_tasks", { ids: named })).toEqual({ changed: 4, next: null });
    await expect(client.call("cancel_tasks", { ids, state: "QUEUED" })).rejects.toThrow(/state/);
  });

  it("begins no more short executions in one turn of the loop than others can wait for", async () => {
    let ran = 0;
    let most = 0;
    let before = 0;
    let turn = setImmediate(function count() {
      most = Math.max(most, ran - before);
      before = ran;
      turn = setImmediate(count);
    });
    const tasks = Array.from({ length: 3_000 }, () => ({ executor: "short" }));
    const database = await bench.database();
    // Submitted before any worker starts, so that they are handed out by the thousand.
    const idle = await bench.node({ database, settings: { ...calmSettings, maxParallel: 0 } });
    await bench.client(idle).submitMany(tasks);
    const settings = { ...calmSettings, maxParallel: 2, prefetch: 4_000 };
    const executors = { short: () => ran++ };
    const client = bench.client(await bench.node({ database, executors, settings }));
    await eventually(
      "all ran",
      async () => (await client.status()).counts.SUCCEEDED === tasks.length,
    );
    clearImmediate(turn);
    expect(ran).toBe(tasks.length);
    expect(most).toBeLessThanOrEqual(100);
    expect(most).toBeGreaterThan(1);
  });
});
