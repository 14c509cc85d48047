/**
 * A directory of segments in memory that crashes like a real one: what was synced stays, and of what
 * was only written any subset of pages survives. (spec 50, 2.3)
 */

import { assert } from "../../base/assert.ts";
import type { Random } from "../../base/random.ts";

interface MemoryFile {
  /** What a read sees. */
  cached: Uint8Array;
  /** What the medium holds. */
  durable: Uint8Array;
}

export class MemoryDisk {
  readonly files = new Map<number, MemoryFile>();
  readonly pageBytes: number;

  constructor(pageBytes = 512) {
    this.pageBytes = pageBytes;
  }

  create(segmentId: number, bytes: number): void {
    this.files.set(segmentId, { cached: new Uint8Array(bytes), durable: new Uint8Array(bytes) });
  }

  /** Writes the first `bytesMax` bytes of the chunks; how many that were. */
  write(
    segmentId: number,
    offset: number,
    chunks: readonly Uint8Array[],
    bytesMax = Infinity,
  ): number {
    const { cached } = this.#file(segmentId);
    let done = 0;
    for (const chunk of chunks) {
      const part = chunk.subarray(0, Math.max(0, Math.min(chunk.length, bytesMax - done)));
      cached.set(part, offset + done);
      done += part.length;
    }
    return done;
  }

  /** What a sync that begins now will have made durable; call the answer when it has finished. */
  beginSync(segmentId: number): () => void {
    const file = this.#file(segmentId);
    const image = file.cached.slice();
    return () => {
      file.durable = image;
    };
  }

  cut(segmentId: number, offset: number): void {
    const file = this.#file(segmentId);
    file.cached.fill(0, offset);
    file.durable = file.cached.slice();
  }

  remove(segmentId: number): void {
    this.files.delete(segmentId);
  }

  /** Power fails: each page is what was synced or what was written, one by one. */
  crash(random: Random): void {
    for (const file of this.files.values()) {
      const survived = file.durable.slice();
      for (let at = 0; at < survived.length; at += this.pageBytes) {
        if (random.chance(0.5)) survived.set(file.cached.subarray(at, at + this.pageBytes), at);
      }
      file.cached = survived;
      file.durable = survived.slice();
    }
  }

  segments(): readonly { readonly segmentId: number; readonly bytes: Uint8Array }[] {
    return [...this.files]
      .sort(([a], [b]) => a - b)
      .map(([segmentId, { cached }]) => ({ segmentId, bytes: cached }));
  }

  #file(segmentId: number): MemoryFile {
    const file = this.files.get(segmentId);
    assert(file !== undefined, "a segment exists before it is used");
    return file;
  }
}
