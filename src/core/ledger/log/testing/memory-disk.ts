/**
 * A directory of segments in memory that crashes like a real one: synced pages stay, any subset of the written pages
 * survives, and pages whose sync failed are clean in the cache and never reach the medium, whatever later syncs report.
 */

import { assert } from "../../../base/assert.ts";
import type { Random } from "../../../base/random.ts";

interface MemoryFile {
  /** Content seen by reads. */
  cached: Uint8Array;
  /** Content on the medium. */
  durable: Uint8Array;
  /** Pages that differ, and may reach the medium at any time. */
  readonly dirty: Set<number>;
}

export class MemoryDisk {
  readonly files = new Map<number, MemoryFile>();
  readonly pageBytes: number;

  constructor(pageBytes = 512) {
    this.pageBytes = pageBytes;
  }

  create(segmentId: number, bytes: number): void {
    const [cached, durable] = [new Uint8Array(bytes), new Uint8Array(bytes)];
    this.files.set(segmentId, { cached, durable, dirty: new Set() });
  }

  /** Writes the first `bytesMax` bytes of the chunks; how many that were. */
  write(
    segmentId: number,
    offset: number,
    chunks: readonly Uint8Array[],
    bytesMax = Infinity,
  ): number {
    const { cached, dirty } = this.#file(segmentId);
    let done = 0;
    for (const chunk of chunks) {
      const part = chunk.subarray(0, Math.max(0, Math.min(chunk.length, bytesMax - done)));
      cached.set(part, offset + done);
      done += part.length;
    }
    const last = Math.ceil((offset + done) / this.pageBytes);
    for (let page = Math.floor(offset / this.pageBytes); page < last; page++) dirty.add(page);
    return done;
  }

  /** A sync begins. Call the answer when it has succeeded; if it fails, its pages are lost. */
  beginSync(segmentId: number): () => void {
    const file = this.#file(segmentId);
    const pages = [...file.dirty].map((page) => ({
      page,
      bytes: this.#page(file.cached, page).slice(),
    }));
    file.dirty.clear();
    return () => {
      for (const { page, bytes } of pages) file.durable.set(bytes, page * this.pageBytes);
    };
  }

  cut(segmentId: number, offset: number): void {
    const file = this.#file(segmentId);
    file.cached.fill(0, offset);
    file.durable = file.cached.slice();
    file.dirty.clear();
  }

  remove(segmentId: number): void {
    this.files.delete(segmentId);
  }

  /** Power fails: each dirty page is what was synced or what was written, one by one. */
  crash(random: Random): void {
    for (const file of this.files.values()) {
      for (const page of file.dirty) {
        if (random.chance(0.5))
          file.durable.set(this.#page(file.cached, page), page * this.pageBytes);
      }
      file.cached = file.durable.slice();
      file.dirty.clear();
    }
  }

  segments(): readonly { readonly segmentId: number; readonly bytes: Uint8Array }[] {
    return [...this.files]
      .sort(([a], [b]) => a - b)
      .map(([segmentId, { cached }]) => ({ segmentId, bytes: cached }));
  }

  #page(bytes: Uint8Array, page: number): Uint8Array {
    return bytes.subarray(page * this.pageBytes, (page + 1) * this.pageBytes);
  }

  #file(segmentId: number): MemoryFile {
    const file = this.files.get(segmentId);
    assert(file !== undefined, "a segment exists before it is used");
    return file;
  }
}
