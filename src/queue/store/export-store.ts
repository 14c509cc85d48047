/** Reads a store as the lines of an export: one snapshot, a few rows in memory at a time. */

import { QueueError } from "../../core/queue/errors.ts";
import type { Database, RunSql } from "./database.ts";
import {
  FORMAT_VERSION,
  TRANSFER_TABLES,
  type TransferCounts,
  type TransferHeader,
} from "./transfer-format.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
}

/** `write` gets one line after the other and is awaited. */
export async function exportStore(
  database: Database,
  write: (line: string) => Promise<void>,
): Promise<TransferCounts> {
  return inTransaction(database, async (run) => {
    const columns = await columnsOf(run);
    const header: TransferHeader = { ...(await placeOf(run)), columns: namesOf(columns) };
    await write(JSON.stringify(header));
    const counts: Record<string, number> = {};
    for (const { name, order, rowsAtOnce } of TRANSFER_TABLES) {
      const list = (columns.get(name) ?? []).map(({ name: one }) => `${quote(one)}::text`);
      await run(
        `declare export_rows no scroll cursor for select ${list.join(", ")} from ${name} order by ${order}`,
      );
      let count = 0;
      for (;;) {
        const rows = await run(`fetch ${rowsAtOnce} from export_rows`);
        for (const row of rows) await write(JSON.stringify({ table: name, row }));
        count += rows.length;
        if (rows.length < rowsAtOnce) break;
      }
      await run("close export_rows");
      counts[name] = count;
    }
    await write(JSON.stringify({ end: true, counts }));
    return counts;
  });
}

/**
 * One transaction that prevents elections by locking the row of the leadership. Nodes keep tasks in memory, so an
 * active leader rejects it. Text is independent of the server's settings.
 */
export async function inTransaction<Value>(
  database: Database,
  work: (run: RunSql) => Promise<Value>,
): Promise<Value> {
  return database.session(async (run) => {
    await run("begin isolation level repeatable read");
    try {
      await run("set local timezone = 'UTC'");
      await run("set local datestyle = 'ISO, YMD'");
      await run("set local bytea_output = 'hex'");
      await run("set local extra_float_digits = 1");
      const [leader] = await run(
        "select leader_id, expires_at > clock_timestamp() as alive from cluster_leader for update",
      );
      // Only one process opens an embedded store: its former leader is dead.
      if (leader?.["alive"] === true && database.kind !== "embedded") {
        const who = `node "${leader["leader_id"]}" leads this queue`;
        throw new QueueError("CONFLICT", `${who}: stop all of its nodes first`);
      }
      const value = await work(run);
      await run("commit");
      return value;
    } catch (error) {
      await run("rollback").catch(() => undefined);
      throw error;
    }
  });
}

/** Columns of the exported tables, in the order of the tables' own. */
export async function columnsOf(run: RunSql): Promise<ReadonlyMap<string, readonly Column[]>> {
  const columns = new Map<string, Column[]>(TRANSFER_TABLES.map(({ name }) => [name, []]));
  for (const [name, list] of columns) {
    const rows = await run(
      "select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute " +
        "where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum",
      [name],
    );
    for (const row of rows) list.push({ name: String(row["name"]), type: String(row["type"]) });
  }
  return columns;
}

/** Version of the schema, and the two counters that must never go back. */
export async function placeOf(run: RunSql): Promise<Omit<TransferHeader, "columns">> {
  const [row] = await run(
    "select (select max(version) from queue_migrations)::int as schema, " +
      "(select epoch from cluster_leader)::text as epoch, " +
      "(select case when is_called then last_value + seqincrement else last_value end " +
      "from task_id_seq, pg_sequence where seqrelid = 'task_id_seq'::regclass)::text as next_ids",
  );
  return {
    hyperscale_queue: FORMAT_VERSION,
    schema: Number(row?.["schema"]),
    epoch: String(row?.["epoch"]),
    next_ids: String(row?.["next_ids"]),
  };
}

export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function namesOf(columns: ReadonlyMap<string, readonly Column[]>): TransferHeader["columns"] {
  return Object.fromEntries(
    [...columns].map(([table, list]) => [table, list.map(({ name }) => name)]),
  );
}
