/**
 * Blobs by the hash of their content, as files of one directory. A blob is there when its file has its name:
 * it is written beside, checked, synced and renamed. The longest unused go when there are too many bytes.
 */

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import {
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
} from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../core/base/error-text.ts";

interface Known {
  readonly bytes: number;
  usedAt: number;
}

const NAME = /^[0-9a-f]{64}$/;

export class BlobStore {
  readonly #directory: string;
  readonly #bytesMax: number;
  readonly #known: Map<string, Known>;
  #writes = 0;

  private constructor(directory: string, bytesMax: number, known: Map<string, Known>) {
    this.#directory = directory;
    this.#bytesMax = bytesMax;
    this.#known = known;
  }

  static async open(directory: string, bytesMax: number): Promise<BlobStore> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const known: [string, Known][] = [];
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      if (!NAME.test(name)) {
        // Left by a process that died while it wrote.
        await rm(path, { force: true });
        continue;
      }
      const { mtimeMs, size } = await stat(path);
      known.push([name, { bytes: size, usedAt: mtimeMs }]);
    }
    known.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    return new BlobStore(directory, bytesMax, new Map(known));
  }

  get hashes(): readonly string[] {
    return [...this.#known.keys()];
  }

  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#known.values()) sum += bytes;
    return sum;
  }

  has(hash: string): boolean {
    return this.#known.has(hash);
  }

  bytesOf(hash: string): number | null {
    return this.#known.get(hash)?.bytes ?? null;
  }

  /** Null when it is kept, else why it is not. */
  async keep(hash: string, bytes: Uint8Array): Promise<string | null> {
    if (this.#known.has(hash)) return null;
    if (createHash("sha256").update(bytes).digest("hex") !== hash)
      return "what came is not what its hash says";
    try {
      await this.#write(hash, bytes);
    } catch (error) {
      return `cannot be kept: ${errorText(error)}`;
    }
    this.#known.set(hash, { bytes: bytes.length, usedAt: Date.now() });
    await this.#makeRoom(hash);
    return null;
  }

  /** Null when it is not here. */
  async read(hash: string): Promise<Uint8Array | null> {
    if (!this.#known.has(hash)) return null;
    await this.#use(hash);
    return readFile(join(this.#directory, hash)).catch(() => null);
  }

  /** At most `bytesMax` from the offset; null when it is not here. */
  async readPart(hash: string, offset: number, bytesMax: number): Promise<Uint8Array | null> {
    const known = this.#known.get(hash);
    if (known === undefined) return null;
    const length = Math.max(0, Math.min(bytesMax, known.bytes - offset));
    const part = new Uint8Array(length);
    const file = await open(join(this.#directory, hash)).catch(() => null);
    if (file === null) return null;
    try {
      await file.read(part, 0, length, offset);
      return part;
    } finally {
      await file.close();
    }
  }

  /** As a file of this name; throws when it is not here. */
  async copyTo(hash: string, path: string): Promise<void> {
    await this.#use(hash);
    await copyFile(join(this.#directory, hash), path, constants.COPYFILE_FICLONE);
  }

  async #write(hash: string, bytes: Uint8Array): Promise<void> {
    const beside = join(this.#directory, `${hash}.${this.#writes++}.tmp`);
    const file = await open(beside, "w", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, join(this.#directory, hash));
    const directory = await open(this.#directory, "r");
    await directory.sync().finally(() => directory.close());
  }

  async #use(hash: string): Promise<void> {
    const known = this.#known.get(hash);
    if (known === undefined) return;
    this.#known.delete(hash);
    known.usedAt = Date.now();
    this.#known.set(hash, known);
    const now = new Date(known.usedAt);
    await utimes(join(this.#directory, hash), now, now).catch(() => undefined);
  }

  async #makeRoom(newest: string): Promise<void> {
    let { bytes } = this;
    for (const [hash, known] of this.#known) {
      if (bytes <= this.#bytesMax || hash === newest) return;
      this.#known.delete(hash);
      bytes -= known.bytes;
      await rm(join(this.#directory, hash), { force: true });
    }
  }
}
