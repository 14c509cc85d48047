/** `queue export` and `queue import`: writes all work of a store to a file, and a file into an empty store. */

import { existsSync } from "node:fs";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { QueueError } from "../core/queue/errors.ts";
import { type Database, loadMigrations } from "./store/database.ts";
import { EmbeddedDatabase } from "./store/embedded.ts";
import { exportStore } from "./store/export-store.ts";
import { importStore } from "./store/import-store.ts";
import { PostgresDatabase } from "./store/postgres.ts";
import { LINE_LENGTH_MAX, type TransferCounts } from "./store/transfer-format.ts";

/** A store that no node uses meanwhile. */
export type StorePlace = { readonly databaseUrl: string } | { readonly dataDirectory: string };

/** Lines are buffered up to this many characters. */
const WRITE_LENGTH = 256 * 1024;
const READ_BYTES = 256 * 1024;

export async function exportQueue(place: StorePlace, file: string): Promise<TransferCounts> {
  if ("dataDirectory" in place && !existsSync(join(place.dataDirectory, "postgres")))
    throw new QueueError("NOT_FOUND", `there is no queue in ${place.dataDirectory}`);
  return withStore(place, async (database) => {
    // The export contains private inputs and results; an existing file is not overwritten.
    const handle = await open(file, "wx", 0o600);
    try {
      const counts = await writeLines(handle, (write) => exportStore(database, write));
      await handle.sync();
      return counts;
    } catch (error) {
      await unlink(file);
      throw error;
    } finally {
      await handle.close();
    }
  });
}

export async function importQueue(place: StorePlace, file: string): Promise<TransferCounts> {
  const handle = await open(file, "r");
  try {
    return await withStore(place, (database) => importStore(database, linesOf(handle)));
  } finally {
    await handle.close();
  }
}

async function withStore<Value>(
  place: StorePlace,
  work: (database: Database) => Promise<Value>,
): Promise<Value> {
  const database =
    "databaseUrl" in place
      ? new PostgresDatabase(place.databaseUrl)
      : await EmbeddedDatabase.open(place.dataDirectory);
  try {
    await database.migrate(loadMigrations());
    return await work(database);
  } finally {
    await database.close();
  }
}

async function writeLines<Value>(
  handle: FileHandle,
  work: (write: (line: string) => Promise<void>) => Promise<Value>,
): Promise<Value> {
  let text = "";
  const value = await work(async (line) => {
    text += `${line}\n`;
    if (text.length < WRITE_LENGTH) return;
    await handle.writeFile(text);
    text = "";
  });
  await handle.writeFile(text);
  return value;
}

/**
 * Lines of a file, each within a bound. A last one without a line end counts: its content shows whether it is complete.
 */
async function* linesOf(handle: FileHandle): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  let text = "";
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES);
    if (bytesRead === 0) break;
    const parts = decoder.write(buffer.subarray(0, bytesRead)).split("\n");
    const last = parts.pop() ?? "";
    for (const part of parts) {
      yield text + part;
      text = "";
    }
    text += last;
    if (text.length > LINE_LENGTH_MAX)
      throw new QueueError("TOO_LARGE", `a line has more than ${LINE_LENGTH_MAX} characters`);
  }
  text += decoder.end();
  if (text !== "") yield text;
}
