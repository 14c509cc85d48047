/** Types from executors to clients. Code that must not compile is marked, and the compiler checks the marks. */

import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineExecutor } from "../worker/definition.ts";
import { defineExecutors, type ExecutionContext } from "../worker/executor.ts";
import { QueueClient } from "./client.ts";
import type { TypedSubmit } from "./definitions.ts";

const executors = defineExecutors({
  thumbnail: defineExecutor({
    input: z.object({ url: z.string(), width: z.coerce.number().default(100) }),
    run: ({ url, width }) => ({ bytes: url.length * width }),
  }),
  plain: () => "anything",
  total: defineExecutor({
    input: z.null(),
    dependencies: z.object({ small: z.object({ bytes: z.number() }) }),
    run: (_, { dependencies }) => dependencies.small.bytes,
  }),
});
type Known = typeof executors;

const context = { taskId: "1", attempt: 1 } as ExecutionContext;

describe("typed executors", () => {
  it("get the input parsed by their schema, and fail permanently for the rest", async () => {
    expect(await executors.thumbnail({ url: "abc", width: "7" }, context)).toEqual({ bytes: 21 });
    const refusal: unknown = await Promise.resolve(
      executors.thumbnail({ width: 1 }, context),
    ).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: "NotRetryable", retryable: false });
    expect(String(refusal)).toMatch(/input\.url: /);
  });

  it("get the declared results of their dependencies, and fail permanently for others", async () => {
    const handed = { ...context, dependencies: { small: { bytes: 3 } } };
    expect(await executors.total(null, handed)).toBe(3);
    const wrong = { ...context, dependencies: { small: "three" } };
    const refusal: unknown = await Promise.resolve(executors.total(null, wrong)).catch(
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ name: "NotRetryable" });
    expect(String(refusal)).toMatch(/dependencies\.small: /);
  });

  it("reject a wrong input in a client that knows them", async () => {
    const client = new QueueClient("http://127.0.0.1:9", { executors });
    const wrong = { executor: "thumbnail", input: { url: 5 } } as unknown as TypedSubmit<Known>;
    await expect(client.submit(wrong)).rejects.toThrow(/thumbnail: input\.url: /);
    await expect(client.submitMany([wrong])).rejects.toThrow(/thumbnail: input\.url: /);
    const scheduled = client.putSchedule("nightly", "0 3 * * *", wrong);
    await expect(scheduled).rejects.toThrow(/thumbnail: input\.url: /);
    client.close();
  });

  it("give their types to a client: names, inputs and results", () => {
    const client = new QueueClient<Known>("http://127.0.0.1:9");
    const typed = async (): Promise<void> => {
      const task = await client.submit({ executor: "thumbnail", input: { url: "a" }, priority: 3 });
      expectTypeOf(task.result).toEqualTypeOf<{ bytes: number } | null>();
      const done = await client.wait(task);
      expectTypeOf(done.result).toEqualTypeOf<{ bytes: number } | null>();
      expectTypeOf((await client.submit({ executor: "plain" })).result).toBeUnknown();
      const graph = await client.submitGraph({
        small: { executor: "thumbnail", input: { url: "a" } },
        all: { executor: "total", input: null, depends_on: ["small", task.id as `${number}`] },
      });
      expectTypeOf((await client.wait(graph.tasks.all)).result).toEqualTypeOf<number | null>();
      // @ts-expect-error: no task of the graph has this name.
      await client.submitGraph({ all: { executor: "plain", depends_on: ["samll"] } });
      // @ts-expect-error: the input is missing.
      await client.submitGraph({ small: { executor: "thumbnail" } });
      // @ts-expect-error: there is no such executor.
      await client.submit({ executor: "thumbnial", input: { url: "a" } });
      // @ts-expect-error: the input is missing.
      await client.submit({ executor: "thumbnail" });
      // @ts-expect-error: a number is no address.
      await client.submit({ executor: "thumbnail", input: { url: 5 } });
      // @ts-expect-error: also among many.
      await client.submitMany([{ executor: "plain" }, { executor: "other" }]);
      await client.putSchedule("nightly", "0 3 * * *", { executor: "plain" });
      // @ts-expect-error: there is no such executor to schedule.
      await client.putSchedule("nightly", "0 3 * * *", { executor: "nosuch" });
      // @ts-expect-error: the input of a scheduled task is missing.
      await client.putSchedule("nightly", "0 3 * * *", { executor: "thumbnail" });
    };
    expect(typed).toBeTypeOf("function");
    client.close();
  });
});
