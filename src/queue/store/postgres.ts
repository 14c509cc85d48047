/**
 * PostgreSQL over the network: one client per named connection, a small pool for reads. A broken connection is dropped
 * and reopened by the next statement; nothing here repeats a statement, because only the caller knows whether that is
 * safe.
 */

import pg from "pg";
import { errorText } from "../../core/base/error-text.ts";
import { DatabaseUnavailable } from "../../core/queue/errors.ts";
import {
  type ConnectionName,
  type Database,
  isTransientState,
  type Listening,
  type Migration,
  type Row,
  type RunSql,
  sqlText,
} from "./database.ts";
import { openSchema, SEARCH_PATH } from "./own-schema.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const WRITE_TIMEOUT_MS = 15_000;
const READ_TIMEOUT_MS = 30_000;
const READ_CONNECTIONS_MAX = 4;
/** A number that no other program locks by accident: "hyperscl" as ASCII. */
const MIGRATION_LOCK = "7528523475949478764";

const INT8 = 20;
const NUMERIC = 1700;

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: unknown) => {
    if (oid === INT8 || oid === NUMERIC) return Number;
    return pg.types.getTypeParser(oid, format === "binary" ? "binary" : "text") as (
      text: string,
    ) => unknown;
  },
};

/**
 * Plans of the writing statements must not depend on statistics: a queue table is empty one minute and full the next,
 * and a plan made for the one is ruinous for the other. Every one of them uses a primary key or a partial index.
 */
const WRITER_SESSION =
  `${SEARCH_PATH}; ` +
  "set plan_cache_mode = force_generic_plan; set jit = off; set enable_seqscan = off; " +
  "set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off";

export class PostgresDatabase implements Database {
  readonly kind = "postgres";
  readonly #url: string;
  readonly #clients = new Map<ConnectionName, Promise<pg.Client>>();
  readonly #tails = new Map<ConnectionName, Promise<unknown>>();
  readonly #pool: pg.Pool;
  #closed = false;

  constructor(url: string) {
    this.#url = url;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: READ_CONNECTIONS_MAX,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: READ_TIMEOUT_MS,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      application_name: "hyperscale queue",
      types,
      allowExitOnIdle: true,
      // The pool waits for the returned promise, although its type says void.
      onConnect: (client) => client.query(SEARCH_PATH) as unknown as undefined,
    });
    // An idle connection that breaks is replaced on next use.
    this.#pool.on("error", () => undefined);
  }

  async query(
    statement: string,
    parameters: readonly unknown[],
    connection?: ConnectionName,
  ): Promise<readonly Row[]> {
    const config = { name: statement, text: sqlText(statement), values: [...parameters] };
    try {
      if (connection === undefined) return (await this.#pool.query<Row>(config)).rows;
      return await this.#inOrder(connection, config);
    } catch (error) {
      if (connection !== undefined && isUnavailable(error)) this.#drop(connection);
      rethrow(error);
    }
  }

  /** One statement at a time per connection, in the order given. */
  #inOrder(connection: ConnectionName, config: pg.QueryConfig): Promise<readonly Row[]> {
    const before = this.#tails.get(connection) ?? Promise.resolve();
    const run = async (): Promise<readonly Row[]> =>
      (await (await this.#client(connection)).query<Row>(config)).rows;
    const mine = before.then(run, run);
    this.#tails.set(connection, mine);
    return mine;
  }

  async migrate(migrations: readonly Migration[]): Promise<readonly string[]> {
    return this.session((run) => migrateWith(run, migrations, MIGRATION_LOCK));
  }

  async session<Value>(work: (run: RunSql) => Promise<Value>): Promise<Value> {
    const client = await this.#pool.connect().catch(rethrow);
    try {
      return await work(async (text, values) => {
        const { rows } = await client.query<Row>(text, values).catch(rethrow);
        return rows;
      });
    } finally {
      client.release();
    }
  }

  async listen(channel: string, hear: (message: string) => void): Promise<Listening> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      application_name: `hyperscale queue ${channel}`,
    });
    const lost = new Promise<void>((resolve) => {
      client.on("error", () => resolve());
      client.on("end", () => resolve());
    });
    client.on("notification", ({ payload }) => hear(payload ?? ""));
    await client.connect();
    await client.query(`listen ${pg.escapeIdentifier(channel)}`);
    return { lost, close: () => client.end() };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.allSettled(clients.map(async (client) => (await client).end()));
    await this.#pool.end();
  }

  #client(connection: ConnectionName): Promise<pg.Client> {
    if (this.#closed) throw new DatabaseUnavailable("the connection was closed");
    let client = this.#clients.get(connection);
    if (client === undefined) {
      client = this.#connect(connection);
      this.#clients.set(connection, client);
    }
    return client;
  }

  async #connect(connection: ConnectionName): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: WRITE_TIMEOUT_MS,
      keepAlive: true,
      application_name: `hyperscale queue ${connection}`,
      types,
    });
    client.on("error", () => this.#drop(connection));
    await client.connect();
    await client.query(WRITER_SESSION);
    return client;
  }

  /** A connection in doubt is never used again; the server cancels what it may still be running. */
  #drop(connection: ConnectionName): void {
    const client = this.#clients.get(connection);
    this.#clients.delete(connection);
    client?.then(
      (broken) => broken.end().catch(() => undefined),
      () => undefined,
    );
  }
}

/** Applies missing migrations, in one transaction under a lock, so that several nodes may do it at once. */
export async function migrateWith(
  run: RunSql,
  migrations: readonly Migration[],
  lock: string | undefined,
): Promise<readonly string[]> {
  await run("begin");
  try {
    if (lock !== undefined) await run("select pg_advisory_xact_lock($1::bigint)", [lock]);
    await openSchema(run);
    await run(
      "create table if not exists queue_migrations (version int primary key, name text not null, " +
        "applied_at timestamptz not null default clock_timestamp())",
    );
    const rows = await run("select version from queue_migrations");
    const known = new Set(rows.map((row) => Number(row["version"])));
    const newest = Math.max(0, ...known);
    if (newest > Math.max(...migrations.map(({ version }) => version))) {
      throw new Error(
        `the database has queue schema ${newest}, which is newer than this program knows; upgrade hyperscale`,
      );
    }
    const applied: string[] = [];
    for (const migration of migrations) {
      if (known.has(migration.version)) continue;
      for (const statement of splitStatements(migration.sql)) await run(statement);
      await run("insert into queue_migrations (version, name) values ($1, $2)", [
        migration.version,
        migration.name,
      ]);
      applied.push(migration.name);
    }
    await run("commit");
    return applied;
  } catch (error) {
    await run("rollback").catch(() => undefined);
    throw error;
  }
}

/** Statements of migrations end with a semicolon at the end of a line, except in bodies between $$. */
function splitStatements(sql: string): readonly string[] {
  const statements: string[] = [];
  let begun = "";
  for (const part of sql.replace(/--.*$/gm, "").split(/;\s*$/m)) {
    begun = begun === "" ? part : `${begun};\n${part}`;
    if (begun.split("$$").length % 2 === 0) continue;
    statements.push(begun.trim());
    begun = "";
  }
  return statements.filter((text) => text !== "");
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true;
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  if (isTransientState(code)) return true;
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return true;
  return /terminat|timeout|timed out|not queryable|closed|Cannot use a pool/i.test(error.message);
}

/** Throws the error, as `DatabaseUnavailable` where the database cannot be reached. */
function rethrow(error: unknown): never {
  if (!isUnavailable(error)) throw error;
  throw new DatabaseUnavailable(`the database is not available: ${messageOf(error)}`, {
    cause: error,
  });
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error)
    return error.errors[0].message;
  return errorText(error);
}
