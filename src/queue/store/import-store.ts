/** Fills an empty store with the lines of an export: all of it in one transaction, or nothing. */

import { QueueError } from "../../core/queue/errors.ts";
import type { Database, RunSql } from "./database.ts";
import { type Column, columnsOf, inTransaction, placeOf, quote } from "./export-store.ts";
import {
  parseHeader,
  parseLine,
  refuse,
  TRANSFER_TABLES,
  type TransferCounts,
  type TransferHeader,
  type TransferRow,
} from "./transfer-format.ts";

/** Limits of one statement, in rows and in characters: whichever is reached first. */
const BATCH_ROWS_MAX = 500;
const BATCH_LENGTH_MAX = 4 * 1024 * 1024;

export function importStore(
  database: Database,
  lines: AsyncIterable<string>,
): Promise<TransferCounts> {
  return inTransaction(database, async (run) => {
    // Applications may submit in transactions of their own.
    await run("lock table tasks in exclusive mode");
    await requireEmpty(run);
    const iterator = lines[Symbol.asyncIterator]();
    const first = await iterator.next();
    if (first.done === true) throw refuse("the file is empty");
    const header = parseHeader(first.value);
    const columns = await checkedColumns(run, header);
    const counts = await readRows(iterator, new RowWriter(run, columns));
    await run("update cluster_leader set epoch = greatest(epoch, $1::bigint)", [header.epoch]);
    const here = await placeOf(run);
    const next = BigInt(here.next_ids) > BigInt(header.next_ids) ? here.next_ids : header.next_ids;
    await run("select setval('task_id_seq', $1::bigint, false)", [next]);
    await run(
      "update task_totals o set count = (select count(*) from tasks t where t.state = o.state)",
    );
    return counts;
  });
}

async function requireEmpty(run: RunSql): Promise<void> {
  for (const { name } of TRANSFER_TABLES) {
    const [row] = await run(`select exists (select from ${name}) as filled`);
    if (row?.["filled"] === true)
      throw new QueueError("CONFLICT", `the target is not empty: its table ${name} has rows`);
  }
}

/** Columns of the file, checked against those of the target. */
async function checkedColumns(
  run: RunSql,
  header: TransferHeader,
): Promise<ReadonlyMap<string, readonly Column[]>> {
  const here = await columnsOf(run);
  const { schema } = await placeOf(run);
  const same = [...here].every(
    ([table, list]) =>
      list.map(({ name }) => name).join() === [...(header.columns[table] ?? [])].join(),
  );
  if (header.schema === schema && same) return here;
  const cure = "import it with the version that wrote it, or export again with this one";
  throw refuse(`the file has queue schema ${header.schema}, this program ${schema}: ${cure}`);
}

/** Reads rows up to the closing line, which must match what was read and be the last. */
async function readRows(lines: AsyncIterator<string>, writer: RowWriter): Promise<TransferCounts> {
  for (let line = 2; ; line++) {
    const next = await lines.next();
    if (next.done === true)
      throw refuse("the file is cut: its closing line is missing. Nothing was imported");
    const read = parseLine(next.value, line);
    if (read.kind === "row") {
      await writer.add(read.table, read.row, next.value.length, line);
      continue;
    }
    await writer.flush();
    const tables = TRANSFER_TABLES.map(({ name }) => name);
    for (const table of tables) {
      const found = writer.counts.get(table) ?? 0;
      const said = read.counts[table] ?? 0;
      if (said !== found)
        throw refuse(`the file has ${found} rows of ${table}, its closing line says ${said}`);
    }
    if ((await lines.next()).done !== true) throw refuse(`line ${line + 1} is after the end`);
    return Object.fromEntries(tables.map((table) => [table, writer.counts.get(table) ?? 0]));
  }
}

/** Collects rows of one table into statements of bounded size. */
class RowWriter {
  readonly counts = new Map<string, number>();
  readonly #run: RunSql;
  readonly #columns: ReadonlyMap<string, readonly Column[]>;
  #table = "";
  #rows: TransferRow[] = [];
  #length = 0;

  constructor(run: RunSql, columns: ReadonlyMap<string, readonly Column[]>) {
    this.#run = run;
    this.#columns = columns;
  }

  async add(table: string, row: TransferRow, length: number, line: number): Promise<void> {
    const columns = this.#columns.get(table);
    if (columns === undefined) throw refuse(`line ${line} is of a table "${table}", unknown here`);
    const whole = columns.every(({ name }) => row[name] !== undefined);
    if (!whole || Object.keys(row).length !== columns.length)
      throw refuse(`line ${line} has other columns than line 1 says`);
    const full = this.#rows.length >= BATCH_ROWS_MAX || this.#length + length > BATCH_LENGTH_MAX;
    if (table !== this.#table || full) await this.flush();
    this.#table = table;
    this.#rows.push(row);
    this.#length += length;
  }

  async flush(): Promise<void> {
    const rows = this.#rows;
    if (rows.length === 0) return;
    this.#rows = [];
    this.#length = 0;
    const columns = this.#columns.get(this.#table) ?? [];
    const names = columns.map(({ name }) => quote(name)).join(", ");
    const values = columns.map(({ name, type }) => `r.${quote(name)}::${type}`).join(", ");
    // Parses every row once; `r ->> 'name'` would parse it again for each of its columns.
    const texts = columns.map(({ name }) => `${quote(name)} text`).join(", ");
    await this.#run(
      `insert into ${this.#table} (${names}) select ${values} from json_to_recordset($1::json) as r(${texts})`,
      [JSON.stringify(rows)],
    );
    this.counts.set(this.#table, (this.counts.get(this.#table) ?? 0) + rows.length);
  }
}
