import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DatabaseUnavailable, QueueError } from "../../core/queue/errors.ts";
import { answerRpc, type RpcCall } from "./rpc.ts";

const echo = (call: RpcCall): Promise<unknown> => Promise.resolve(call);

describe("JSON-RPC", () => {
  it("answers a call with its id, and a notification not at all (TQ-40)", async () => {
    const call = { jsonrpc: "2.0", id: "x", method: "m", params: { a: 1 } };
    expect(await answerRpc(JSON.stringify(call), echo)).toEqual({
      jsonrpc: "2.0",
      id: "x",
      result: { method: "m", params: { a: 1 } },
    });
    expect(await answerRpc('{"jsonrpc":"2.0","method":"m"}', echo)).toBeUndefined();
    expect(await answerRpc('[{"jsonrpc":"2.0","method":"m"}]', echo)).toBeUndefined();
  });

  it("accepts positional params as their first element", async () => {
    const answer = await answerRpc(
      '{"jsonrpc":"2.0","id":1,"method":"m","params":[{"a":1}]}',
      echo,
    );
    expect(answer).toMatchObject({ result: { params: { a: 1 } } });
  });

  it.each([
    [
      new QueueError("NOT_FOUND", "gone", { data: { hint: 1 } }),
      -32002,
      { name: "NOT_FOUND", retryable: false, hint: 1 },
    ],
    [new DatabaseUnavailable("away"), -32004, { name: "UNAVAILABLE", retryable: true }],
    [new TypeError("oops"), -32603, { name: "INTERNAL", retryable: false }],
  ])("turns %s into its code", async (error, code, data) => {
    const answer = await answerRpc('{"jsonrpc":"2.0","id":1,"method":"m"}', () =>
      Promise.reject(error),
    );
    expect(answer).toMatchObject({ id: 1, error: { code, data } });
  });

  it("rejects more calls in a batch than the limit", async () => {
    const batch = JSON.stringify(Array.from({ length: 5_001 }, () => ({})));
    expect(await answerRpc(batch, echo)).toMatchObject({
      error: { code: -32600, message: expect.stringMatching(/5000/) },
    });
  });

  it("answers arbitrary input with well-formed responses, and never throws", async () => {
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .array(
          fc.record(
            {
              jsonrpc: fc.constantFrom("2.0", 2, null),
              id: fc.jsonValue(),
              method: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        )
        .map((value) => JSON.stringify(value)),
    );
    await fc.assert(
      fc.asyncProperty(text, async (body) => {
        const answer = await answerRpc(body, echo);
        for (const one of Array.isArray(answer) ? answer : answer === undefined ? [] : [answer]) {
          expect(one).toMatchObject({ jsonrpc: "2.0" });
          expect("result" in one !== "error" in one).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});
