import { describe, expect, it } from "vitest";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { answerRpc, type RpcCall } from "./rpc.ts";

function batch(calls: readonly (readonly [string, object?])[]): string {
  return JSON.stringify(
    calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })),
  );
}

interface Answered {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data: object };
}

describe("a batch of calls", () => {
  it("is rejected before anything runs when its answers may exceed the limit", async () => {
    const run: RpcCall[] = [];
    const handler = async (call: RpcCall): Promise<unknown> => void run.push(call);
    const calls = Array.from({ length: 5_000 }, () => ["list_tasks", { limit: 1_000 }] as const);
    expect(await answerRpc(batch(calls), handler)).toMatchObject({
      error: { message: expect.stringMatching(/may take \d+ bytes; the limit is/) },
    });
    const usual = Array.from({ length: 5_000 }, () => ["list_tasks"] as const);
    expect(await answerRpc(batch(usual), handler)).toMatchObject({ error: expect.anything() });
    expect(run).toEqual([]);
  });

  it("stops reading when the answers so far fill the limit, and says which calls did not run", async () => {
    const large = "x".repeat(QUEUE_LIMITS.payloadBytesMax);
    let reads = 0;
    const handler = async ({ method }: RpcCall): Promise<unknown> => {
      if (method === "get_task") reads++;
      return method === "get_task" ? large : "written";
    };
    const calls = Array.from(
      { length: 300 },
      (_, i) => [i === 150 ? "submit_task" : "get_task"] as const,
    );
    const answers = (await answerRpc(batch(calls), handler)) as readonly Answered[];
    expect(answers.map(({ id }) => id)).toEqual(calls.map((_, id) => id));
    const most = QUEUE_LIMITS.batchAnswerBytesMax / QUEUE_LIMITS.payloadBytesMax;
    expect(reads).toBeGreaterThanOrEqual(most);
    expect(reads).toBeLessThan(most + 6);
    expect(answers[150]).toMatchObject({ result: "written" });
    expect(answers.filter(({ result }) => result === large)).toHaveLength(reads);
    expect(answers.at(-1)).toMatchObject({
      error: { message: expect.stringMatching(/was not run/), data: { name: "TOO_LARGE" } },
    });
  });

  it("runs calls that read nothing all at once, so that they are written together", async () => {
    let running = 0;
    let most = 0;
    const handler = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    };
    await answerRpc(batch(Array.from({ length: 100 }, () => ["submit_task"] as const)), handler);
    expect(most).toBe(100);
  });

  it("reads for two batches at once, and for the next when one has finished", async () => {
    let running = 0;
    let most = 0;
    const handler = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    };
    const calls = batch(Array.from({ length: 50 }, () => ["get_task"] as const));
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => answerRpc(calls, handler) as Promise<readonly Answered[]>),
    );
    expect(most).toBe(8);
    expect(answers.flat().filter(({ error }) => error !== undefined)).toEqual([]);
  });
});
