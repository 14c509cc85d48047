/** The peers of former processes, in a small file, replaced atomically. */

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../core/base/error-text.ts";
import { type CachedPeer, readCachedPeers } from "../../core/membership/discovery/peer-cache.ts";
import { makeFolder } from "../../host/folders.ts";
import type { Log } from "../../host/ports/log.ts";

export class FormerPeers {
  readonly #directory: string;
  readonly #log: Log;
  #saving: Promise<void> = Promise.resolve();

  constructor(directory: string, log: Log) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Losing them costs a restart some speed, never correctness. */
  async read(): Promise<readonly CachedPeer[]> {
    const text = await readFile(this.#file, "utf8").catch(() => "[]");
    return readCachedPeers(parseJson(text));
  }

  save(peers: readonly CachedPeer[]): void {
    this.#saving = this.#saving.then(() => this.#write(peers));
  }

  /** Resolves when what was saved lies on the disk. */
  settled(): Promise<void> {
    return this.#saving;
  }

  get #file(): string {
    return join(this.#directory, "peers.json");
  }

  async #write(peers: readonly CachedPeer[]): Promise<void> {
    try {
      await makeFolder(this.#directory, { mode: 0o700 });
      await writeFile(`${this.#file}.new`, JSON.stringify(peers), { mode: 0o600 });
      await rename(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.event("warn", "discovery.cacheNotSaved", { problem: errorText(error) });
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
