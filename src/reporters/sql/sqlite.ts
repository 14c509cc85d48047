/**
 * SQLite: Node's own where available (22.5 and later), else the package `node-sqlite3-wasm`, which needs no compiler
 * and writes the file itself. Both are synchronous, so batches are small.
 */

import { loadDriver } from "../../protocols/target/driver.ts";
import { definePush } from "../definition.ts";
import { pointBatches } from "../encoders/point-json.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";
import { TABLE, tableName } from "./table.ts";

/** Points per statement: some 2,000 rows take 50 to 100 ms. */
const POINTS_MAX = 200;

export const sqlite = definePush({
  name: "sqlite",
  about: "an SQLite file, with Node 22.5 or later or the package node-sqlite3-wasm",
  target: "results.sqlite",
  settings: { table: TABLE },
  evidence: "real server",
  testedWith: "files of node-sqlite3-wasm 0.8 that sqlite3 3.40 reads",
  transport: ({ settings, target }) => {
    const table = tableName("sqlite", settings.table);
    if (target === "") throw new ReporterError("report sqlite: write sqlite=FILE");
    return new SessionTransport({
      // Also reports before the run that the file cannot be written.
      prepare: async () => (await opened(target, table)).destroy(),
      open: () => opened(target, table),
      isRefusal: (error) => !/locked|busy/i.test(String(error)),
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

/** Common interface of both drivers. */
interface Database {
  exec(statements: string): void;
  insert(statement: string, points: string): void;
  close(): void;
}

async function opened(file: string, table: string): Promise<Session> {
  const database = await openDatabase(file);
  // Another process may be reading.
  database.exec("PRAGMA busy_timeout = 1000");
  database.exec(tableOf(table));
  let isOpen = true;
  const destroy = (): void => {
    if (isOpen) database.close();
    isOpen = false;
  };
  return {
    write: async (body) => database.insert(insertOf(table), body.toString("utf8")),
    close: async () => destroy(),
    destroy,
  };
}

interface NodeSqlite {
  readonly DatabaseSync: new (
    file: string,
  ) => {
    exec(statements: string): void;
    prepare(statement: string): { run(value: string): unknown };
    close(): void;
  };
}

interface WasmSqlite {
  readonly Database: new (
    file: string,
  ) => {
    exec(statements: string): void;
    run(statement: string, values: readonly string[]): unknown;
    close(): void;
  };
}

async function openDatabase(file: string): Promise<Database> {
  const own = process.getBuiltinModule("node:sqlite") as NodeSqlite | undefined;
  if (own !== undefined) {
    const database = new own.DatabaseSync(file);
    return {
      exec: (statements) => database.exec(statements),
      insert: (statement, points) => void database.prepare(statement).run(points),
      close: () => database.close(),
    };
  }
  const { default: wasm } = await loadDriver<{ readonly default: WasmSqlite }>(
    "node-sqlite3-wasm",
    "report sqlite on this version of Node",
  );
  const database = new wasm.Database(file);
  return {
    exec: (statements) => database.exec(statements),
    insert: (statement, points) => void database.run(statement, [points]),
    close: () => database.close(),
  };
}

function tableOf(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
    at TEXT NOT NULL, kind TEXT NOT NULL, scope TEXT NOT NULL, figure TEXT NOT NULL,
    type TEXT NOT NULL, unit TEXT NOT NULL, run_id TEXT, workflow TEXT, step TEXT,
    labels TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL)`;
}

function insertOf(table: string): string {
  const texts = ["at", "kind", "scope", "figure", "type", "unit"].map((name) => `$.${name}`);
  const labels = ["run_id", "workflow", "step"].map((name) => `$.labels.${name}`);
  const columns = [...texts, ...labels, "$.labels"].map(
    (path) => `json_extract(p.value, '${path}')`,
  );
  return `INSERT INTO ${table} SELECT ${columns.join(", ")}, v.key, v.value
    FROM json_each(?) p, json_each(p.value, '$.values') v`;
}
