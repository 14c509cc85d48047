/**
 * Tasks in the application's own transaction: they exist when it commits, and never when it rolls back or fails.
 *
 *     await client.query("begin");
 *     await client.query("insert into orders …");
 *     await submitInTransaction(client, { executor: "ship", input: { order } });
 *     await client.query("commit");
 */

import { QueueError } from "../../core/queue/errors.ts";
import type { Backoff } from "../../core/queue/retry.ts";

/** A connection of `pg`, or anything with the same `query`. */
export interface TransactionClient {
  query(
    text: string,
    values: unknown[],
  ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
}

export interface TransactionSubmit {
  readonly executor: string;
  readonly queue?: string;
  readonly input?: unknown;
  readonly priority?: number;
  readonly run_after?: Date | string;
  readonly max_attempts?: number;
  readonly idempotency_key?: string;
  readonly unique_key?: string;
  /** Seconds. */
  readonly attempt_timeout?: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly backoff?: Backoff;
  /** Ids of tasks that must succeed first: earlier ones, or of this transaction. */
  readonly depends_on?: readonly (string | number)[];
}

const SUBMIT = `select hyperscale.submit($1, $2::jsonb, $3::int, $4::timestamptz, $5::int, $6, $7,
  $8::float8 * interval '1 second', $9::float8 * interval '1 second', $10, $11::jsonb, $12::bigint[]) as id`;

/** Fields of the function: one that only `queue.submit` has, such as a placement, is rejected, not dropped. */
const FIELDS: Readonly<Record<keyof TransactionSubmit, true>> = {
  executor: true,
  queue: true,
  input: true,
  priority: true,
  run_after: true,
  max_attempts: true,
  idempotency_key: true,
  unique_key: true,
  attempt_timeout: true,
  timeout: true,
  backoff: true,
  depends_on: true,
};

/** Returns the id of the task, or of the existing one with its key. */
export async function submitInTransaction(
  client: TransactionClient,
  task: TransactionSubmit,
): Promise<string> {
  const unknown = Object.keys(task).find((field) => !Object.hasOwn(FIELDS, field));
  if (unknown !== undefined)
    throw new QueueError("INVALID_PARAMS", `a task in a transaction has no field "${unknown}"`);
  const { rows } = await client.query(SUBMIT, [
    task.executor,
    JSON.stringify(task.input ?? null),
    task.priority ?? 0,
    task.run_after ?? null,
    task.max_attempts ?? 3,
    task.idempotency_key ?? null,
    task.unique_key ?? null,
    task.attempt_timeout ?? null,
    task.timeout ?? null,
    task.queue ?? "default",
    task.backoff === undefined ? null : JSON.stringify(task.backoff),
    task.depends_on === undefined ? null : task.depends_on.map(Number),
  ]);
  return String(rows[0]?.["id"]);
}
