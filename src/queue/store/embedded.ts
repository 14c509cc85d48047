/**
 * PostgreSQL inside the process (PGlite) in a data directory: the same migrations and statements, one connection, one
 * process. A lock file rejects a second process; it names the holder, and one whose holder is dead is taken over.
 * (docs/decisions/0025-embedded-store.md)
 */

import {
  chmodSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";
import { DatabaseUnavailable } from "../../core/queue/errors.ts";
import { makeFolder } from "../../host/folders.ts";
import { type Database, type Migration, type Row, type RunSql, sqlText } from "./database.ts";
import { SEARCH_PATH } from "./own-schema.ts";
import { migrateWith } from "./postgres.ts";

const parsers = { 20: Number, 1700: Number };

export class EmbeddedDatabase implements Database {
  readonly kind = "embedded";
  readonly #engine: PGlite;
  readonly #lock: string;
  #closed = false;

  private constructor(engine: PGlite, lock: string) {
    this.#engine = engine;
    this.#lock = lock;
  }

  static async open(dataDirectory: string): Promise<EmbeddedDatabase> {
    // Inputs and results of tasks are private.
    await makeFolder(dataDirectory, { mode: 0o700 });
    chmodSync(dataDirectory, 0o700);
    const lock = takeLock(dataDirectory);
    try {
      // Loaded on first use: it is large, and installations on PostgreSQL never need it.
      const { PGlite } = await import("@electric-sql/pglite");
      const engine = await PGlite.create(join(dataDirectory, "postgres"));
      await engine.query(SEARCH_PATH);
      closeToOthers(dataDirectory);
      return new EmbeddedDatabase(engine, lock);
    } catch (error) {
      unlinkSync(lock);
      throw error;
    }
  }

  async query(statement: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#closed) throw new DatabaseUnavailable("the embedded database was closed");
    return (await this.#engine.query<Row>(sqlText(statement), [...parameters], { parsers })).rows;
  }

  async session<Value>(work: (run: RunSql) => Promise<Value>): Promise<Value> {
    return work(async (text, values) => (await this.#engine.query<Row>(text, values)).rows);
  }

  async migrate(migrations: readonly Migration[]): Promise<readonly string[]> {
    return this.session((run) => migrateWith(run, migrations, undefined));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#engine.close();
    unlinkSync(this.#lock);
  }
}

/** The engine unpacks its first files with modes of its own. */
function closeToOthers(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), 0o700);
    else if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o600);
  }
}

class DataDirectoryInUse extends Error {
  override readonly name = "DataDirectoryInUse";
}

/** `link` fails when the name exists, so of two processes one gets the lock. */
function takeLock(directory: string): string {
  const lock = join(directory, "lock");
  const mine = join(directory, `lock.${process.pid}`);
  writeFileSync(mine, `${process.pid} ${startOf(process.pid) ?? ""}\n`);
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        linkSync(mine, lock);
        return lock;
      } catch (error) {
        if (!isCode(error, "EEXIST")) throw error;
      }
      const holder = readLock(lock);
      if (holder !== undefined && isAlive(holder)) {
        throw new DataDirectoryInUse(
          `the data directory ${directory} is in use by process ${holder.pid}. ` +
            "One embedded database serves one process: use another --data-dir, talk to that node, " +
            "or point both at PostgreSQL with --database",
        );
      }
      // Renaming is atomic: of two that find a dead holder, one moves the file.
      try {
        renameSync(lock, `${mine}.stale`);
        unlinkSync(`${mine}.stale`);
      } catch (error) {
        if (!isCode(error, "ENOENT")) throw error;
      }
    }
    throw new DataDirectoryInUse(
      `the data directory ${directory} is being opened by another process`,
    );
  } finally {
    unlinkSync(mine);
  }
}

interface Holder {
  readonly pid: number;
  readonly start: string | undefined;
}

function readLock(lock: string): Holder | undefined {
  try {
    const [pid, start] = readFileSync(lock, "utf8").trim().split(" ");
    return { pid: Number(pid), start: start === "" ? undefined : start };
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function isAlive(holder: Holder): boolean {
  if (!Number.isInteger(holder.pid) || holder.pid <= 0) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return isCode(error, "EPERM");
  }
  // A pid may have been reused: where the system reports start times, they must match.
  const start = startOf(holder.pid);
  return start === undefined || holder.start === undefined || start === holder.start;
}

/** Start time of a process in clock ticks since boot (Linux); undefined elsewhere. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
