/** Executors with types: a schema checks what they take, and clients know inputs and results from them. */

import type { Backoff } from "../../core/queue/retry.ts";
import type { Definition } from "../api/definitions.ts";
import { checkInput, type StandardSchema } from "../api/standard-schema.ts";
import { type ExecutionContext, type Executor, NotRetryable } from "./executor.ts";

export interface TypedExecutor<Input, Result> extends Executor, Definition<Input, Result> {
  readonly input: StandardSchema;
}

export interface ExecutorDefinition<Input, Output, Result> {
  /** What it takes; anything else fails the task without another attempt. */
  readonly input: StandardSchema<Input, Output>;
  /** How long a failed task waits, unless it says so itself. */
  readonly backoff?: Backoff;
  run(input: Output, context: ExecutionContext): Result | Promise<Result>;
}

export function defineExecutor<Input, Output, Result>(
  definition: ExecutorDefinition<Input, Output, Result>,
): TypedExecutor<Input, Result> {
  const { input, backoff } = definition;
  const run: Executor = async (value, context) => {
    const checked = await checkInput(input, value);
    if (!checked.ok) throw new NotRetryable(checked.problem);
    return definition.run(checked.value, context);
  };
  return Object.assign(run, { input, backoff });
}
