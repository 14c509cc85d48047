/**
 * Port to PostgreSQL: statements by name, over a handful of connections with a purpose each.
 *
 * Statements on a named connection run in the order they are given. The leader has several, so that submits, grants and
 * results are written side by side; reads use a pool. The embedded database has a single connection behind all names.
 */

import { readFileSync } from "node:fs";

export type ConnectionName = "control" | "submit" | "submit beside" | "grant" | "finish" | "words";
export type Row = Readonly<Record<string, unknown>>;
/** One statement, by its text. */
export type RunSql = (text: string, values?: unknown[]) => Promise<readonly Row[]>;

export interface Database {
  readonly kind: "postgres" | "embedded";
  /** Runs a statement of src/queue/store/sql, on a named connection or on any reading connection. */
  query(
    statement: string,
    parameters: readonly unknown[],
    connection?: ConnectionName,
  ): Promise<readonly Row[]>;
  /** Runs related statements on an exclusive connection. */
  session<Value>(work: (run: RunSql) => Promise<Value>): Promise<Value>;
  /** Runs the statements of migrations, in one transaction under the migration lock. */
  migrate(migrations: readonly Migration[]): Promise<readonly string[]>;
  /**
   * Receives notifications on a channel until the connection is lost, which resolves `lost` of the answer. Undefined
   * where no other program can write.
   */
  listen?(channel: string, hear: (message: string) => void): Promise<Listening>;
  close(): Promise<void>;
}

export interface Listening {
  readonly lost: Promise<void>;
  close(): Promise<void>;
}

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

const texts = new Map<string, string>();

/** The text of src/queue/store/sql/<name>.sql without its comment lines; read once. */
export function sqlText(name: string): string {
  let text = texts.get(name);
  if (text === undefined) {
    const file = new URL(`./sql/${name}.sql`, import.meta.url);
    text = readFileSync(file, "utf8").replace(/^--.*\n/gm, "");
    texts.set(name, text);
  }
  return text;
}

/** Every migration of this version of the program, in order. */
const MIGRATIONS: readonly string[] = [
  "0001-init",
  "0002-reasons",
  "0003-token",
  "0004-execution-key",
  "0005-files",
  "0006-transactions",
  "0007-attempts",
  "0008-backoff",
  "0009-schedules",
  "0010-dependencies",
  "0011-submit-options",
  "0012-search-path",
  "0013-arrivals",
  "0014-cancelled",
  "0015-times",
];

export function loadMigrations(): readonly Migration[] {
  return MIGRATIONS.map((name) => ({
    version: Number.parseInt(name, 10),
    name,
    sql: sqlText(name),
  }));
}

type SqlValue = string | number | boolean | null | undefined;

/** An array parameter as PostgreSQL's text form: cheaper than the driver's general encoding. */
export function sqlArray(values: readonly SqlValue[]): string {
  return sqlColumn(values, identity);
}

function identity(value: SqlValue): SqlValue {
  return value;
}

/** One column of a batch of rows as an array parameter. */
export function sqlColumn<Row>(rows: readonly Row[], of: (row: Row) => SqlValue): string {
  let text = "";
  // Columns of a batch repeat values: executor, lane, node.
  let last: SqlValue;
  let lastText = "NULL";
  for (const row of rows) {
    const value = of(row) ?? undefined;
    if (value !== last) {
      last = value;
      lastText =
        value === undefined ? "NULL" : typeof value === "string" ? quoted(value) : String(value);
    }
    text += text === "" ? lastText : `,${lastText}`;
  }
  return `{${text}}`;
}

/** Plain words need no quotes; the word NULL does. */
function quoted(value: string): string {
  if (/^[\w-]+$/.test(value) && value.length !== 4) return value;
  const escaped = /["\\]/.test(value) ? value.replace(/["\\]/g, "\\$&") : value;
  return `"${escaped}"`;
}

/** Transient SQLSTATE classes: connection, shutdown, resources, conflicts. */
export function isTransientState(state: string | undefined): boolean {
  if (state === undefined) return false;
  return /^(08|53|57P|40001|40P01|55P03|58)/.test(state) || state === "25006";
}
