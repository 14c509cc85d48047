/**
 * Blobs by the hash of their content, as files of one directory. A file with its final name is complete: it is written
 * under another name part by part, checked, synced and renamed. The least recently used are dropped when there are too
 * many bytes; pinned or recently used ones stay, and a blob without room is rejected.
 */

import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import {
  copyFile,
  type FileHandle,
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
import { makeFolder } from "./folders.ts";

interface Known {
  readonly bytes: number;
  usedAt: number;
}

interface BlobStoreOptions {
  /** Limit for all blobs together, including incoming ones. */
  readonly bytesMax: number;
  /** A blob used within this time is not dropped. */
  readonly unusedMsMin?: number;
  /** Called for a blob dropped to make room. */
  readonly onGone?: (hash: string) => void;
}

/** An incoming blob. */
export interface IncomingBlob {
  readonly total: number;
  /** Bytes written so far. */
  readonly offset: number;
  /** Appends the next part; one at a time, and not more than the total. */
  append(bytes: Uint8Array): Promise<void>;
  /** Returns null when it is complete and durable, else why it is not kept. */
  finish(): Promise<string | null>;
  drop(): Promise<void>;
}

const NAME = /^[0-9a-f]{64}$/;
const CHECKED_PART_BYTES = 1_048_576;

/** Reason for dropping a damaged blob: another copy of it may be good. */
export const WRONG_CONTENT = "what came is not what its hash says";

export class BlobStore {
  readonly #directory: string;
  readonly #options: BlobStoreOptions;
  readonly #known: Map<string, Known>;
  #pinned: ReadonlySet<string> = new Set();
  #incomingBytes = 0;
  #writes = 0;

  private constructor(directory: string, options: BlobStoreOptions, known: Map<string, Known>) {
    this.#directory = directory;
    this.#options = options;
    this.#known = known;
  }

  static async open(directory: string, options: BlobStoreOptions): Promise<BlobStore> {
    await makeFolder(directory, { mode: 0o700 });
    const known: [string, Known][] = [];
    for (const name of await readdir(directory)) {
      const path = join(directory, name);
      if (!NAME.test(name)) {
        // Left by a process that died while writing.
        await rm(path, { force: true });
        continue;
      }
      const { mtimeMs, size } = await stat(path);
      known.push([name, { bytes: size, usedAt: mtimeMs }]);
    }
    known.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    return new BlobStore(directory, options, new Map(known));
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

  /** Keeps these, and no others beside those in use. */
  pin(hashes: readonly string[]): void {
    this.#pinned = new Set(hashes);
  }

  /** Returns null when it is kept, else why it is not. */
  async keep(hash: string, bytes: Uint8Array): Promise<string | null> {
    if (this.#known.has(hash)) return null;
    try {
      const incoming = await this.begin(hash, bytes.length);
      if (typeof incoming === "string") return incoming;
      await incoming.append(bytes);
      return await incoming.finish();
    } catch (error) {
      return `cannot be kept: ${errorText(error)}`;
    }
  }

  /** Returns the incoming blob, or why there is no room for it. Throws errors of the disk. */
  async begin(hash: string, total: number): Promise<IncomingBlob | string> {
    if (!(await this.#makeRoom(total)))
      return `there is no room for ${total} bytes: what is kept is needed`;
    const beside = join(this.#directory, `${hash}.${this.#writes++}.tmp`);
    const file = await open(beside, "w", 0o600);
    this.#incomingBytes += total;
    return new Incoming({
      ...{ total, file },
      isRight: (found) => found === hash,
      onEnd: async (complete) => {
        this.#incomingBytes -= total;
        if (complete) await this.#add(hash, total, beside);
        else await rm(beside, { force: true });
      },
    });
  }

  /** Returns null when it is missing, or does not match its hash. */
  async read(hash: string): Promise<Uint8Array | null> {
    if (!this.#known.has(hash)) return null;
    await this.#use(hash);
    const bytes = await readFile(join(this.#directory, hash)).catch(() => null);
    if (bytes !== null && createHash("sha256").update(bytes).digest("hex") === hash) return bytes;
    await this.#drop(hash);
    return null;
  }

  /** Whether it is present and still matches its hash; a corrupted one is dropped. */
  async isWhole(hash: string): Promise<boolean> {
    if (!this.#known.has(hash)) return false;
    const found = await hashOfFile(join(this.#directory, hash)).catch(() => null);
    if (found === hash) return true;
    await this.#drop(hash);
    return false;
  }

  /**
   * Returns at most `bytesMax` from the offset; null when it is missing. The first part is served from a verified blob
   * only.
   */
  async readPart(hash: string, offset: number, bytesMax: number): Promise<Uint8Array | null> {
    if (offset === 0 && !(await this.isWhole(hash))) return null;
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

  /** Copies it to a file of this name; throws when it is missing. */
  async copyTo(hash: string, path: string): Promise<void> {
    await this.#use(hash);
    await copyFile(join(this.#directory, hash), path, constants.COPYFILE_FICLONE);
  }

  async #add(hash: string, bytes: number, beside: string): Promise<void> {
    await rename(beside, join(this.#directory, hash));
    const directory = await open(this.#directory, "r");
    await directory.sync().finally(() => directory.close());
    this.#known.set(hash, { bytes, usedAt: Date.now() });
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

  /** Returns false when needed blobs leave no room. */
  async #makeRoom(wanted: number): Promise<boolean> {
    const { bytesMax, unusedMsMin = 0 } = this.#options;
    let bytes = this.bytes + this.#incomingBytes + wanted;
    const usedBefore = Date.now() - unusedMsMin;
    for (const [hash, known] of [...this.#known]) {
      if (bytes <= bytesMax) break;
      if (this.#pinned.has(hash) || known.usedAt > usedBefore) continue;
      bytes -= known.bytes;
      await this.#drop(hash);
    }
    return bytes <= bytesMax;
  }

  async #drop(hash: string): Promise<void> {
    if (!this.#known.delete(hash)) return;
    this.#options.onGone?.(hash);
    await rm(join(this.#directory, hash), { force: true });
  }
}

interface IncomingOptions {
  readonly total: number;
  readonly file: FileHandle;
  readonly isRight: (hash: string) => boolean;
  /** Called when the file is closed: renames it, or deletes it. */
  readonly onEnd: (complete: boolean) => Promise<void>;
}

class Incoming implements IncomingBlob {
  readonly #options: IncomingOptions;
  readonly #hash: Hash = createHash("sha256");
  #offset = 0;
  #over = false;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  get total(): number {
    return this.#options.total;
  }

  get offset(): number {
    return this.#offset;
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.#options.file.write(bytes, 0, bytes.length, this.#offset);
    this.#hash.update(bytes);
    this.#offset += bytes.length;
  }

  async finish(): Promise<string | null> {
    const { isRight, total } = this.#options;
    const isWhole = this.#offset === total && isRight(this.#hash.digest("hex"));
    await this.#end(isWhole);
    return isWhole ? null : WRONG_CONTENT;
  }

  drop(): Promise<void> {
    return this.#end(false);
  }

  async #end(complete: boolean): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    const { file, onEnd } = this.#options;
    let durable = false;
    try {
      if (complete) await file.sync();
      durable = complete;
    } finally {
      await file.close();
      await onEnd(durable);
    }
  }
}

async function hashOfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  const file = await open(path);
  try {
    const part = new Uint8Array(CHECKED_PART_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(part, 0, part.length, null);
      if (bytesRead === 0) return hash.digest("hex");
      hash.update(part.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}
