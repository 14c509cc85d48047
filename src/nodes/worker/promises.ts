/**
 * Durable state of a worker: how often it has started, and which views it has promised to obey. Written to a temporary
 * file and renamed, so that a crash leaves the old or the new state. (AD-10)
 */

import { randomInt } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { DRAWS, incarnationOf } from "../../core/cluster/incarnation.ts";
import type { FencedViews } from "../../core/cluster/worker/view-fence.ts";
import { makeFolder } from "../../host/folders.ts";

const NAME = "promises.json";

export class Promises {
  readonly #dataDir: string;
  /** How often this directory was started, this start included. */
  readonly starts: number;
  /** Number of this start; never repeated, even if the directory was emptied or restored. */
  readonly incarnation: number;
  readonly views: FencedViews;
  #last: Promise<void> = Promise.resolve();

  private constructor(dataDir: string, starts: number, views: FencedViews) {
    this.#dataDir = dataDir;
    this.starts = starts;
    this.incarnation = incarnationOf(starts, randomInt(DRAWS));
    this.views = views;
  }

  /** Throws when there is a file that cannot be read: what was promised is not forgotten. */
  static async open(dataDir: string): Promise<Promises> {
    await makeFolder(dataDir, { mode: 0o700 });
    const path = join(dataDir, NAME);
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    const former = text === null ? { incarnation: 0, views: [] } : parse(path, text);
    const opened = new Promises(dataDir, former.incarnation + 1, former.views);
    await opened.keep(former.views);
    return opened;
  }

  /** Durable when it resolves; one after the other. */
  keep(views: FencedViews): Promise<void> {
    const kept = this.#last.then(() => this.#keep(views));
    this.#last = kept.catch(() => undefined);
    return kept;
  }

  async #keep(views: FencedViews): Promise<void> {
    const { starts: incarnation } = this;
    const path = join(this.#dataDir, NAME);
    const file = await open(`${path}.tmp`, "w", 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ incarnation, views })}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.tmp`, path);
    const directory = await open(this.#dataDir, "r");
    await directory.sync().finally(() => directory.close());
  }
}

interface Kept {
  readonly incarnation: number;
  readonly views: FencedViews;
}

function parse(path: string, text: string): Kept {
  try {
    const value = JSON.parse(text) as Partial<Kept>;
    const { incarnation, views } = value;
    const whole = (number: unknown): number is number => Number.isSafeInteger(number);
    const pairs =
      Array.isArray(views) &&
      views.every((pair) => Array.isArray(pair) && typeof pair[0] === "string" && whole(pair[1]));
    if (whole(incarnation) && pairs) return { incarnation, views };
  } catch {
    // Reported below.
  }
  throw new Error(
    `${path} holds what this worker has promised and cannot be used. Restore it from a copy, or move ` +
      "the data directory away and start the worker under another name",
  );
}
