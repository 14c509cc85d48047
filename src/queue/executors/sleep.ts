/** Waits, then answers or fails as requested: for demos and tests. */

import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type ExecutionContext, NotRetryable } from "../worker/executor.ts";
import { parseInput } from "./input.ts";

const schema = z.strictObject({
  ms: z
    .number()
    .min(0)
    .max(24 * 3_600_000),
  /** true or a message: fails after the wait. */
  fail: z.union([z.boolean(), z.string()]).optional(),
  /** With `fail`: whether the task is retried (default yes). */
  retryable: z.boolean().optional(),
  result: z.unknown().optional(),
});

const STEPS = 10;

export async function sleepExecutor(value: unknown, context: ExecutionContext): Promise<unknown> {
  const input = parseInput(schema, value);
  if (input.ms > 1_000) {
    for (let step = 1; step <= STEPS; step++) {
      await wait(input.ms / STEPS, undefined, { signal: context.signal });
      context.progress({ done: step / STEPS });
    }
  } else if (input.ms > 0) {
    await wait(input.ms, undefined, { signal: context.signal });
  }
  if (input.fail !== undefined && input.fail !== false) {
    const message = input.fail === true ? "asked to fail" : input.fail;
    throw input.retryable === false ? new NotRetryable(message) : new Error(message);
  }
  return input.result ?? null;
}
