/**
 * Data directories with an empty queue of the embedded store. The engine takes seconds to unpack itself into a new
 * one, so that it is done once per version of engine and schema; tests get copies.
 */

import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadMigrations } from "../../../src/queue/store/database.ts";
import { EmbeddedDatabase } from "../../../src/queue/store/embedded.ts";

const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/hyperscale/", import.meta.url));

/** Fills a directory that does not exist or is empty; returns it. */
export async function fillDataDirectory(directory: string): Promise<string> {
  cpSync(await template(), directory, { recursive: true });
  return directory;
}

async function template(): Promise<string> {
  const made = join(CACHE, `queue-${version()}`);
  if (existsSync(made)) return made;
  mkdirSync(CACHE, { recursive: true });
  const mine = mkdtempSync(`${made}.`);
  const database = await EmbeddedDatabase.open(mine);
  await database.migrate(loadMigrations());
  await database.close();
  try {
    renameSync(mine, made);
  } catch (error) {
    // Another file of tests was first.
    if (!existsSync(made)) throw error;
    rmSync(mine, { recursive: true, force: true });
  }
  return made;
}

function version(): string {
  const engine = createRequire(import.meta.url).resolve("@electric-sql/pglite");
  const hash = createHash("sha256").update(readFileSync(join(dirname(engine), "../package.json")));
  for (const { name, sql } of loadMigrations()) hash.update(name).update(sql);
  return hash.digest("hex").slice(0, 16);
}
