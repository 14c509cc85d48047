/** Bearer tokens are in files: never in flags, which every user of the machine can read. */

import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorText } from "../../core/base/error-text.ts";

const TOKEN_CHARACTERS_MIN = 16;
const TOKEN_BYTES = 32;
/** In the data directory of a node: the token of its control interface, and the address it belongs to. */
const TOKEN_FILE = "api.token";
const ADDRESS_FILE = "api.address";
/** Where commands search for tokens of nodes on this machine when no directory is given. */
const TOKEN_DIRS = [".hyperscale", join(".hyperscale", "cluster")];
/** Data directories searched in one directory. */
const NODES_MAX = 1_024;

/** Throws with what is wrong and what to do. */
export function readTokenFile(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new Error(`cannot read the token file ${file}: ${errorText(error)}`);
  }
  if (token.length >= TOKEN_CHARACTERS_MIN) return token;
  const hint = "make one with: openssl rand -hex 32";
  throw new Error(
    `the token in ${file} is shorter than ${TOKEN_CHARACTERS_MIN} characters; ${hint}`,
  );
}

/** Returns the token that an earlier process of this node made, or a new one. Writes nothing. */
export function ownToken(dataDir: string): string {
  const file = join(dataDir, TOKEN_FILE);
  return existsSync(file) ? readTokenFile(file) : randomBytes(TOKEN_BYTES).toString("hex");
}

/** Stores the token of a node for its own user only, with the address by which commands find it. */
export function keepOwnToken(dataDir: string, token: string, address: string): void {
  const file = join(dataDir, TOKEN_FILE);
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  writeFileSync(join(dataDir, ADDRESS_FILE), `${address}\n`, { mode: 0o600 });
}

/** How a command names the control interface of a node. */
export interface ControlTarget {
  /** `host:port` */
  readonly api: string;
  readonly tokenFile?: string | undefined;
  /** Directory of the nodes' data directories, such as that of `cluster up`. */
  readonly dir?: string | undefined;
}

/** The token for an address: from the named file, else from the data directory of the node there. */
export function tokenFor({ api, tokenFile, dir }: ControlTarget): string | undefined {
  if (tokenFile !== undefined) return readTokenFile(tokenFile);
  for (const parent of dir === undefined ? TOKEN_DIRS : [dir]) {
    const found = [".", ...namesIn(parent)].find((name) => addressIn(join(parent, name)) === api);
    if (found !== undefined) return readTokenFile(join(parent, found, TOKEN_FILE));
  }
  return undefined;
}

/** Advice for status 401. */
export const TOKEN_ADVICE =
  "name its token with --token-file DATA_DIRECTORY/api.token, or the directory of its node with --dir";

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir).slice(0, NODES_MAX);
  } catch {
    return [];
  }
}

function addressIn(dataDir: string): string | null {
  try {
    return readFileSync(join(dataDir, ADDRESS_FILE), "utf8").trim();
  } catch {
    return null;
  }
}
