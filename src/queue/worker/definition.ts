/** Executors with types: a schema validates their input, and clients infer inputs and results from them. */

import type { Backoff } from "../../core/queue/retry.ts";
import type { Definition } from "../api/definitions.ts";
import { checkInput, type StandardSchema } from "../api/standard-schema.ts";
import { type ExecutionContext, type Executor, NotRetryable } from "./executor.ts";

export interface TypedExecutor<Input, Result> extends Executor, Definition<Input, Result> {
  readonly input: StandardSchema;
}

export interface ExecutorDefinition<
  Input,
  Output,
  Result,
  Results = ExecutionContext["dependencies"],
> {
  /** Schema of its input; a mismatch fails the task without another attempt. */
  readonly input: StandardSchema<Input, Output>;
  /** Schema of the results of its dependencies; a mismatch fails the task likewise. */
  readonly dependencies?: StandardSchema<unknown, Results>;
  /** Backoff of failed tasks, unless they define their own. */
  readonly backoff?: Backoff;
  run(input: Output, context: TypedContext<Results>): Result | Promise<Result>;
}

type TypedContext<Results> = Omit<ExecutionContext, "dependencies"> & {
  readonly dependencies: Results;
};

export function defineExecutor<Input, Output, Result, Results = ExecutionContext["dependencies"]>(
  definition: ExecutorDefinition<Input, Output, Result, Results>,
): TypedExecutor<Input, Result> {
  const { input, backoff, dependencies: schema } = definition;
  const run: Executor = async (value, context) => {
    const checked = await checkInput(input, value);
    if (!checked.ok) throw new NotRetryable(checked.problem);
    if (schema === undefined)
      return definition.run(checked.value, context as TypedContext<Results>);
    const results = await checkInput(schema, context.dependencies, "dependencies");
    if (!results.ok) throw new NotRetryable(results.problem);
    const { signal } = context;
    return definition.run(checked.value, { ...context, signal, dependencies: results.value });
  };
  return Object.assign(run, { input, backoff });
}
