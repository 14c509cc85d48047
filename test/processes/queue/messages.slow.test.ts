/** Messages between workers and leaders near their limits, over real sockets. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { QueueClient, type QueueNode, type QueueSettings } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const LARGE = 1_000_000;

describe("messages between nodes", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;
  const open: (QueueNode | QueueClient)[] = [];

  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  afterEach(async () => {
    for (const one of open.splice(0)) {
      if (one instanceof QueueClient) one.close();
      else await one.stop(0);
    }
  });
  afterAll(() => server.stop());

  /** A leader that works not, and a worker that reaches it by HTTP only. */
  async function pair(
    executors: Parameters<typeof startNode>[0]["executors"],
    settings: Partial<QueueSettings>,
  ) {
    const database = await server.createQueue();
    const leader = await startNode({ database, settings: { ...calmSettings, maxParallel: 0 } });
    const worker = await startNode({
      database,
      nodeId: "worker",
      role: "worker",
      ...(executors === undefined ? {} : { executors }),
      settings: { ...calmSettings, ...settings },
    });
    const client = new QueueClient(leader.url);
    open.push(client, worker, leader);
    return { client, database };
  }

  async function succeeded(client: QueueClient, count: number): Promise<void> {
    await eventually(`${count} tasks succeed`, async () => {
      const { counts } = await client.status();
      expect(counts.FAILED).toBe(0);
      return counts.SUCCEEDED === count;
    });
  }

  it("takes 16 results of 1 MB that end together, as the first attempt of each (TQ-14)", async () => {
    let begun = 0;
    let release = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const large = async (): Promise<string> => {
      if (++begun === 16) release();
      await all;
      return "x".repeat(LARGE);
    };
    const { client } = await pair({ large }, { maxParallel: 16 });
    await client.submitMany(Array.from({ length: 16 }, () => ({ executor: "large" })));
    await succeeded(client, 16);
    expect(begun).toBe(16);
  });

  it("feeds a worker that may hold 4,000 tasks more than one question asks for (TQ-38)", async () => {
    const { client } = await pair({ none: () => null }, { maxParallel: 24, prefetch: 4_000 });
    await client.submitMany(Array.from({ length: 3_000 }, () => ({ executor: "none" })));
    await succeeded(client, 3_000);
  });

  it("hands out 70 inputs of 1 MB to a worker with 100 slots, each once", async () => {
    let calls = 0;
    const count = (input: unknown): number => {
      calls++;
      return String(input).length;
    };
    const { client } = await pair({ count }, { maxParallel: 100 });
    for (let i = 0; i < 70; i++)
      await client.submit({ executor: "count", input: "x".repeat(LARGE) });
    await succeeded(client, 70);
    expect(calls).toBe(70);
  });

  it("renews more leases than one message names (TQ-38)", async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { client, database } = await pair(
      { hold: () => gate },
      { maxParallel: 10, prefetch: 2_000, taskLeaseMs: 3_000 },
    );
    await client.submitMany(Array.from({ length: 1_500 }, () => ({ executor: "hold" })));
    await eventually(
      "all are leased",
      async () => (await client.status()).counts.RUNNING === 1_500,
    );
    const renewed = `select count(*)::int as n from task_leases
                      where expires_at > acquired_at + interval '30.5 seconds'`;
    await eventually("all are renewed", async () => {
      const [row] = await server.query(database, renewed);
      return row?.["n"] === 1_500;
    });
    release();
    await succeeded(client, 1_500);
  });

  it("reports how many lines of an executor were dropped, and sends the rest", async () => {
    let release: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => {
      release = resolve;
    });
    const talk = (
      _: unknown,
      { log, progress }: { log(m: string): void; progress(v: unknown): void },
    ) => {
      for (let i = 0; i < 12_000; i++) log(`line ${i}`);
      progress("y".repeat(LARGE));
      // Output of a finished task is rejected: it ends once all lines were received.
      return heard;
    };
    const { client } = await pair({ talk }, { maxParallel: 1 });
    const task = await client.submit({ executor: "talk", run_after: 1 });
    const lines: string[] = [];
    for await (const { event, data } of client.follow(task.id)) {
      if (event === "log") lines.push(String((data as { message: unknown }).message));
      if (lines.at(-1)?.includes("were left out")) release();
    }
    expect(lines).toHaveLength(10_001);
    expect(lines.at(-1)).toMatch(/^2001 lines were left out/);
  });
});
