/**
 * A node's directory of files as a disk really keeps it. What is written sits in the page cache until
 * its file is synced; a name sits in the directory's cache until the directory is synced.
 *
 *     write ──► cached page ──sync──► durable page          kill:        the caches stay
 *     create, rename, remove ──► name ──syncDirectory──►     power fails: any subset of unsynced pages and
 *                                                           names survives, a page may be torn at a byte
 *
 * A sync covers the pages that were dirty when it began. A sync that fails drops them: they look clean
 * and are not on the medium, as kernels do it. A rotten bit lies in what was durable and proven so.
 */

import { assert } from "../../src/core/base/assert.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { FileEntry } from "../../src/core/ledger/log/files.ts";

export interface LedgerDiskFaults {
  readonly pageBytes: number;
  readonly writeMsMax: number;
  readonly syncMsMax: number;
  readonly slowSyncChance: number;
  readonly slowSyncMsMax: number;
  readonly syncErrorChance: number;
  readonly writeErrorChance: number;
  readonly shortWriteChance: number;
}

export type DiskSpace = "free" | "growthFull" | "allFull";

interface SimFile {
  /** Content seen by readers, and content on the medium; they may differ in length. */
  cached: Uint8Array;
  durable: Uint8Array;
  readonly dirty: Set<number>;
  /** Pages of the sync under way, as they were when it began. */
  syncing: Map<number, Uint8Array> | null;
}

type NameChange =
  | { readonly kind: "link"; readonly name: string; readonly file: SimFile }
  | { readonly kind: "unlink"; readonly name: string }
  | { readonly kind: "rename"; readonly from: string; readonly to: string };

export class LedgerDisk {
  readonly faults: LedgerDiskFaults;
  readonly #random: Random;
  #names = new Map<string, SimFile>();
  #durableNames = new Map<string, SimFile>();
  #changes: NameChange[] = [];
  readonly #rottenCheckpoints = new Set<string>();
  /** No space: what grows fails with ENOSPC, or every write does, as where blocks are copied on write. */
  full: DiskSpace = "free";
  /** Every sync takes up to so much longer. */
  slowMs = 0;
  /** Chances of errors are drawn only during the chaos. */
  calm = false;

  constructor(faults: LedgerDiskFaults, random: Random) {
    this.faults = faults;
    this.#random = random;
  }

  /** Another, empty medium. */
  wipe(): void {
    this.#names = new Map();
    this.#durableNames = new Map();
    this.#changes = [];
  }

  names(): string[] {
    return [...this.#names.keys()].sort();
  }

  list(directory: string): FileEntry[] {
    return this.names()
      .filter((path) => directoryOf(path) === directory)
      .map((path) => {
        return { name: path.slice(directory.length + 1), bytes: this.read(path).length };
      });
  }

  read(name: string): Uint8Array {
    return this.#file(name).cached;
  }

  /** Creates a file of zeros; on the medium it is empty until it is synced. */
  create(name: string, bytes: number): void {
    const [cached, durable] = [new Uint8Array(bytes), new Uint8Array(0)];
    const file: SimFile = { cached, durable, dirty: new Set(), syncing: null };
    this.#change({ kind: "link", name, file });
  }

  remove(name: string): void {
    this.#change({ kind: "unlink", name });
  }

  rename(from: string, to: string): void {
    this.#change({ kind: "rename", from, to });
  }

  syncDirectory(directory: string): void {
    const isHere = (name: string): boolean => directoryOf(name) === directory;
    for (const name of this.#durableNames.keys()) {
      if (isHere(name)) this.#durableNames.delete(name);
    }
    for (const [name, file] of this.#names) if (isHere(name)) this.#durableNames.set(name, file);
    this.#changes = this.#changes.filter((change) => {
      return !isHere(change.kind === "rename" ? change.to : change.name);
    });
  }

  /** Writes the first `bytesMax` bytes of the chunks; how many that were. */
  write(name: string, offset: number, chunks: readonly Uint8Array[], bytesMax = Infinity): number {
    const file = this.#file(name);
    let done = 0;
    for (const chunk of chunks) {
      const part = chunk.subarray(0, Math.max(0, Math.min(chunk.length, bytesMax - done)));
      const end = offset + done + part.length;
      if (end > file.cached.length) file.cached = resized(file.cached, end);
      file.cached.set(part, offset + done);
      done += part.length;
    }
    this.#soil(file, offset, offset + done);
    return done;
  }

  /** Cuts the file, or lengthens it by zeros. */
  resize(name: string, bytes: number): void {
    const file = this.#file(name);
    const before = file.cached.length;
    file.cached = resized(file.cached, bytes);
    this.#soil(file, Math.min(before, bytes), bytes);
  }

  /** Called when the sync begins; the answer when it has ended well. */
  beginSync(name: string): () => void {
    const file = this.#file(name);
    const { pageBytes } = this.faults;
    // A process was killed while it waited for a sync: its pages are still to be written.
    for (const page of file.syncing?.keys() ?? []) file.dirty.add(page);
    const pages = new Map<number, Uint8Array>();
    for (const page of file.dirty) {
      pages.set(page, file.cached.slice(page * pageBytes, (page + 1) * pageBytes));
    }
    file.dirty.clear();
    file.syncing = pages;
    const { length } = file.cached;
    return () => {
      if (file.durable.length !== length) file.durable = resized(file.durable, length);
      this.#store(file, pages);
      file.syncing = null;
    };
  }

  /** The sync under way failed: some of its pages are on the medium, the rest is forgotten. */
  failSync(name: string): void {
    const file = this.#file(name);
    for (const page of file.syncing ?? []) {
      if (this.#random.chance(0.5)) this.#store(file, [page]);
    }
    file.syncing = null;
  }

  #store(file: SimFile, pages: Iterable<readonly [number, Uint8Array]>): void {
    const { pageBytes } = this.faults;
    for (const [page, bytes] of pages) {
      const at = page * pageBytes;
      const room = Math.max(0, file.durable.length - at);
      file.durable.set(bytes.subarray(0, room), Math.min(at, file.durable.length));
    }
  }

  /** Whether these bytes lie on the medium as a reader sees them. */
  isDurable(name: string, start: number, end: number): boolean {
    const file = this.#file(name);
    for (let at = start; at < end; at++) if (file.durable[at] !== file.cached[at]) return false;
    return true;
  }

  drawWriteMs(): number {
    return this.#random.float() * this.faults.writeMsMax;
  }

  drawSyncMs(): number {
    const { syncMsMax, slowSyncChance, slowSyncMsMax } = this.faults;
    const slow = !this.calm && slowSyncChance > 0 && this.#random.chance(slowSyncChance);
    return this.#random.float() * (this.slowMs + (slow ? slowSyncMsMax : syncMsMax));
  }

  /** The error this operation meets; null: none. */
  drawError(during: "write" | "sync" | "create", grows = false): "EIO" | "ENOSPC" | null {
    const needsSpace = grows || this.full === "allFull";
    if (this.full !== "free" && needsSpace && during !== "sync") return "ENOSPC";
    if (this.calm) return null;
    const { syncErrorChance, writeErrorChance } = this.faults;
    const chance = during === "sync" ? syncErrorChance : writeErrorChance;
    return chance > 0 && this.#random.chance(chance) ? "EIO" : null;
  }

  /** How much of a write gets through: mostly all of it. */
  drawLength(bytes: number, failed: boolean): number {
    if (failed) return this.#random.below(bytes + 1);
    const { shortWriteChance } = this.faults;
    if (this.calm || shortWriteChance === 0 || bytes < 2) return bytes;
    return this.#random.chance(shortWriteChance) ? 1 + this.#random.below(bytes - 1) : bytes;
  }

  /** The machine loses power: every unsynced page and name survives or not, each for itself. */
  powerLoss(): void {
    for (const change of this.#changes) {
      if (this.#random.chance(0.5)) applyChange(this.#durableNames, change);
    }
    this.#changes = [];
    this.#names = new Map(this.#durableNames);
    for (const file of this.#names.values()) this.#lose(file);
  }

  /** Drops the page cache, keeps the medium: how a process finds a file after a failed sync. */
  dropCaches(): void {
    for (const file of this.#names.values()) this.#lose(file);
  }

  /** Flips one bit of what lies on the medium, for every reader. */
  rot(name: string, at: number): void {
    const file = this.#file(name);
    const mask = 1 << this.#random.below(8);
    for (const bytes of [file.durable, file.cached]) bytes[at] = (bytes[at] ?? 0) ^ mask;
  }

  /** Flips a bit of the newest checkpoint while an older one is whole: its name, null without such a one. */
  rotCheckpoint(): string | null {
    const names = this.names().filter((name) => name.endsWith(".ckpt"));
    const name = names.at(-1);
    if (name === undefined || names.length < 2) return null;
    if (names.some((one) => this.#rottenCheckpoints.has(one))) return null;
    this.#rottenCheckpoints.add(name);
    this.rot(name, this.#random.below(this.read(name).length));
    return name;
  }

  #lose(file: SimFile): void {
    const pages = new Set([...file.dirty, ...(file.syncing?.keys() ?? [])]);
    const [short, long] = [file.durable.length, file.cached.length].sort((x, y) => x - y);
    if (short !== undefined && long !== undefined && short !== long) {
      const between = short + this.#random.below(long - short + 1);
      file.durable = resized(file.durable, this.#random.pick([short, between, long]));
    }
    for (const page of pages) this.#losePage(file, page);
    file.dirty.clear();
    file.syncing = null;
    file.cached = file.durable.slice();
  }

  #losePage(file: SimFile, page: number): void {
    const { pageBytes } = this.faults;
    const at = page * pageBytes;
    const written = file.cached.subarray(at, at + pageBytes);
    const draw = this.#random.float();
    if (draw < 0.35) return;
    const syncing = file.syncing?.get(page);
    if (draw < 0.7) this.#store(file, [[page, written]]);
    else if (draw < 0.85 && syncing !== undefined) this.#store(file, [[page, syncing]]);
    else this.#store(file, [[page, written.subarray(0, this.#random.below(written.length + 1))]]);
  }

  #soil(file: SimFile, start: number, end: number): void {
    const { pageBytes } = this.faults;
    for (let page = Math.floor(start / pageBytes); page * pageBytes < end; page++) {
      file.dirty.add(page);
    }
  }

  #change(change: NameChange): void {
    applyChange(this.#names, change);
    this.#changes.push(change);
  }

  #file(name: string): SimFile {
    const file = this.#names.get(name);
    assert(file !== undefined, `there is a file ${name}`);
    return file;
  }
}

function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function applyChange(names: Map<string, SimFile>, change: NameChange): void {
  switch (change.kind) {
    case "link":
      names.set(change.name, change.file);
      return;
    case "unlink":
      names.delete(change.name);
      return;
    case "rename": {
      const file = names.get(change.from);
      names.delete(change.from);
      if (file !== undefined) names.set(change.to, file);
    }
  }
}

function resized(bytes: Uint8Array, length: number): Uint8Array {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length));
  return copy;
}
