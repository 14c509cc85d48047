/**
 * Schema `hyperscale` contains everything of the queue, and is the only one on the search path of its connections:
 * where others may create objects in `public` (the default of PostgreSQL 14 and earlier), a function of theirs with
 * exact argument types would win over a polymorphic one of PostgreSQL and run with the rights of the queue's role
 * (docs/decisions/0092-own-schema.md).
 */

import type { RunSql } from "./database.ts";

const SCHEMA = "hyperscale";

/** First statement of every connection. PostgreSQL searches pg_catalog before, and pg_temp never for functions. */
export const SEARCH_PATH = `set search_path = ${SCHEMA}, pg_temp`;

/** Everything that migrations up to 11 created in the first schema of the connection's own search path. */
const EARLIER_TYPES = ["task_state", "task_event_type", "task_event"];
const EARLIER_RELATIONS = [
  ...["tasks", "task_totals", "task_dependencies", "cluster_leader", "distributed_nodes"],
  ...["task_schedules", "cluster_token", "stored_files", "stored_file_chunks", "task_files"],
  ...["task_queues", "task_log_lines", "task_progress", "task_graphs", "task_id_seq"],
  ...["task_events", "task_leases", "execution_idempotency", "queue_migrations"],
];
const EARLIER_FUNCTION = "execution_key(bigint, jsonb)";

/** Creates the schema, or moves the tables of an earlier version into it. Runs inside the migration's transaction. */
export async function openSchema(run: RunSql): Promise<void> {
  await run("set local search_path to default");
  const [found] = await run(
    "select pg_catalog.to_regclass('queue_migrations'::pg_catalog.text)::pg_catalog.oid as id",
  );
  await run(`set local search_path = ${SCHEMA}, pg_temp`);
  if ((await ownerOf(run)) === undefined) await run(`create schema ${SCHEMA}`);
  const [at] = await run(
    "select n.nspname as schema, c.relowner::regrole::text as owner from pg_class c " +
      "join pg_namespace n on n.oid = c.relnamespace where c.oid = $1::oid",
    [found?.["id"] ?? 0],
  );
  if (at === undefined || at["schema"] === SCHEMA) return;
  const [kept] = await run("select to_regclass('queue_migrations') is not null as here");
  if (kept?.["here"] === true) return;
  const owner = await ownerOf(run);
  if (at["owner"] !== owner) {
    throw new Error(
      `queue_migrations in schema ${at["schema"]} belongs to ${at["owner"]}, schema ${SCHEMA} to ${owner}: drop that ` +
        `table if it is not the queue's, or give both one owner ("alter schema ${SCHEMA} owner to …")`,
    );
  }
  await adopt(run, quoted(String(at["schema"])));
}

async function ownerOf(run: RunSql): Promise<unknown> {
  const [row] = await run(
    `select nspowner::regrole::text as owner from pg_namespace where nspname = '${SCHEMA}'`,
  );
  return row?.["owner"];
}

async function adopt(run: RunSql, from: string): Promise<void> {
  for (const name of EARLIER_TYPES) await run(`alter type ${from}.${name} set schema ${SCHEMA}`);
  for (const name of EARLIER_RELATIONS)
    await run(`alter table if exists ${from}.${name} set schema ${SCHEMA}`);
  const [key] = await run("select to_regprocedure($1) is not null as there", [
    `${from}.${EARLIER_FUNCTION}`,
  ]);
  if (key?.["there"] === true)
    await run(`alter function ${from}.${EARLIER_FUNCTION} set schema ${SCHEMA}`);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
