/** Token of nodes that were given none: one per database, in a file for their clients. */

import { randomBytes } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { makeFolder } from "../host/folders.ts";
import type { Database } from "./store/database.ts";

const TOKEN_BYTES = 32;

/** Read access to the database already gives full access: the token is stored there, for all nodes. */
export async function shareToken(database: Database, file: string): Promise<string> {
  const made = randomBytes(TOKEN_BYTES).toString("hex");
  const [row] = await database.query("token-share", [made]);
  const token = String(row?.["token"] ?? "");
  await makeFolder(dirname(file), { mode: 0o700 });
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return token;
}
