/** A submit as clients write it, and its conversion to what the leader stores. Errors name the field. */

import { createHash } from "node:crypto";
import { z } from "zod";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { DEFAULT_QUEUE } from "../../core/queue/gates.ts";
import { encodePayload } from "../../core/queue/payload.ts";
import { canonicalJson, laneOf, type Placement } from "../../core/queue/placement.ts";
import { BACKOFF_KINDS, backoffProblem } from "../../core/queue/retry.ts";
import { issueWords } from "./issue-words.ts";
import type { NewTask } from "./types.ts";

/** Text that PostgreSQL can store and compare. */
export const storable = (what: string) =>
  z
    .string()
    .refine(
      (text) => !/\0|\p{Surrogate}/u.test(text),
      `${what} contains characters that cannot be stored`,
    );

const name = storable("the name").min(1).max(QUEUE_LIMITS.executorLengthMax);
export const taskKey = storable("the key").min(1).max(QUEUE_LIMITS.keyLengthMax);
const nodes = z.array(name).max(QUEUE_LIMITS.nodesListedMax);

/** A task id: decimal text, or the number itself. */
export const taskId = z
  .union([z.string().regex(/^\d{1,15}$/, "a task id is a decimal number"), z.int().nonnegative()])
  .transform(Number);

export const queueName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, "letters, digits, dots, dashes and underscores");

const placement = z.strictObject({
  requires_executors: nodes.optional(),
  requires_capabilities: z
    .record(name, z.union([storable("the value"), z.number(), z.boolean()]))
    .optional(),
  allowed_nodes: nodes.optional(),
  forbidden_nodes: nodes.optional(),
  max_parallel_per_node: z.int().positive().optional(),
});

export const backoffSchema = z
  .strictObject({
    kind: z.enum(BACKOFF_KINDS).optional(),
    base: z.number().optional(),
    factor: z.number().optional(),
    cap: z.number().optional(),
    jitter: z.number().optional(),
  })
  .superRefine((value, context) => {
    const message = backoffProblem(value);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

export const runAfter = z.union([
  z.iso.datetime({ offset: true }),
  z.number().positive().max(QUEUE_LIMITS.delaySecondsMax),
]);

export const submitSchema = z.strictObject({
  executor: name,
  /** A named queue, whose limits apply. */
  queue: queueName.nullish(),
  input: z.unknown().optional(),
  idempotency_key: taskKey.nullish(),
  unique_key: taskKey.nullish(),
  priority: z.int().min(-32_768).max(32_767).nullish(),
  /** A time, or seconds from now. */
  run_after: runAfter.nullish(),
  max_attempts: z.int().min(1).max(QUEUE_LIMITS.maxAttemptsMax).nullish(),
  /** Backoff after a failure; by default that of its executor, its queue or the node. */
  backoff: backoffSchema.nullish(),
  placement_constraints: placement.nullish(),
  /** Seconds that one execution may take; then it is aborted, and retried while attempts are left. */
  attempt_timeout: z.number().positive().max(QUEUE_LIMITS.timeoutSecondsMax).nullish(),
  /** Seconds from submission after which an unfinished task is cancelled. */
  timeout: z.number().positive().max(QUEUE_LIMITS.timeoutSecondsMax).nullish(),
  depends_on: z.array(taskId).max(QUEUE_LIMITS.dependenciesMax).nullish(),
});

export type SubmitRequest = z.input<typeof submitSchema>;

export function parseSubmit(value: unknown, defaultAttempts: number): NewTask {
  const plain = parsePlain(value, defaultAttempts);
  if (plain !== undefined) return plain;
  const parsed = submitSchema.safeParse(value);
  if (!parsed.success) throw invalid(parsed.error);
  const request = parsed.data;
  const payload = encodePayload(request.input, "input");
  if (!payload.ok) throw new QueueError("INVALID_PARAMS", payload.problem);
  const constraints = emptyToNull(request.placement_constraints);
  const idempotencyKey = request.idempotency_key ?? undefined;
  const start = request.run_after ?? undefined;
  const queue = request.queue ?? DEFAULT_QUEUE;
  const task = {
    executor: request.executor,
    queue,
    lane: laneOf(request.executor, constraints, queue),
    input: payload.text,
    priority: request.priority ?? 0,
    maxAttempts: request.max_attempts ?? defaultAttempts,
    backoff: request.backoff ?? null,
    idempotencyKey,
    uniqueKey: request.unique_key ?? undefined,
    placement: constraints,
    runAfter: typeof start === "string" ? start : undefined,
    delayMs: typeof start === "number" ? start * 1_000 : undefined,
    attemptTimeoutMs: milliseconds(request.attempt_timeout),
    timeoutMs: milliseconds(request.timeout),
    dependsOn: request.depends_on ?? [],
  };
  return {
    ...task,
    contentHash: idempotencyKey === undefined ? undefined : contentHashOf(request),
  };
}

const PLAIN_NAME = /^[\w.:/-]{1,128}$/;

/** Most submits are an executor and an input: they need no schema. Returns undefined for all others. */
function parsePlain(value: unknown, maxAttempts: number): NewTask | undefined {
  if (value === null || typeof value !== "object") return undefined;
  for (const name in value) if (name !== "executor" && name !== "input") return undefined;
  const { executor, input } = value as { readonly executor?: unknown; readonly input?: unknown };
  if (typeof executor !== "string" || !PLAIN_NAME.test(executor)) return undefined;
  const payload = encodePayload(input, "input");
  if (!payload.ok) return undefined;
  return {
    executor,
    queue: DEFAULT_QUEUE,
    lane: executor,
    input: payload.text,
    priority: 0,
    maxAttempts,
    backoff: null,
    idempotencyKey: undefined,
    contentHash: undefined,
    uniqueKey: undefined,
    placement: null,
    runAfter: undefined,
    delayMs: undefined,
    attemptTimeoutMs: undefined,
    timeoutMs: undefined,
    dependsOn: [],
  };
}

function milliseconds(seconds: number | null | undefined): number | undefined {
  return seconds === null || seconds === undefined ? undefined : Math.ceil(seconds * 1_000);
}

function emptyToNull(value: Placement | null | undefined): Placement | null {
  return value === null || value === undefined || Object.keys(value).length === 0 ? null : value;
}

/** Content hash for an idempotency key: what runs, with which input and options. Not when. */
export function contentHashOf(request: Partial<z.output<typeof submitSchema>>): string {
  const { executor, input, priority, max_attempts, placement_constraints, depends_on, unique_key } =
    request;
  const content = canonicalJson({
    executor,
    input: input ?? null,
    priority: priority ?? 0,
    max_attempts: max_attempts ?? null,
    placement_constraints: placement_constraints ?? null,
    depends_on: depends_on ?? [],
    unique_key: unique_key ?? null,
  });
  return createHash("sha256").update(content).digest("base64url");
}

function invalid(error: z.ZodError): QueueError {
  const problems = error.issues
    .slice(0, 5)
    .map(
      (issue) =>
        `${issue.path.length === 0 ? "params" : issue.path.join(".")}: ${issueWords(issue)}`,
    );
  return new QueueError("INVALID_PARAMS", problems.join("; "));
}

/** Parses the parameters of a call with its schema; an error names the field. */
export function parseParams<Schema extends z.ZodType>(
  schema: Schema,
  params: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(params);
  if (!parsed.success) throw invalid(parsed.error);
  return parsed.data;
}
