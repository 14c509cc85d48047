import type { z } from "zod";
import { NotRetryable } from "../worker/executor.ts";

/** Parses a task's input for its executor; an invalid one fails the task permanently. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues
    .slice(0, 5)
    .map(
      (issue) =>
        `${issue.path.length === 0 ? "input" : `input.${issue.path.join(".")}`}: ${issue.message}`,
    );
  throw new NotRetryable(problems.join("; "));
}
