/**
 * A node's disk: what is durable, and what was written and not yet synced. A crash keeps a random
 * prefix of the unsynced writes and tears the next one at a random byte. Faults are drawn from the
 * disk's own randomness: slow syncs, EIO, ENOSPC, and bit rot that never spoils both copies of a
 * record (the run claims that every record can be recovered).
 */

import { RECORD_COPY_BYTES } from "../../src/core/base/durable-record.ts";
import type { Random } from "../../src/core/base/random.ts";

export interface DiskFaults {
  readonly syncMsMax: number;
  readonly slowSyncChance: number;
  readonly slowSyncMsMax: number;
  readonly syncErrorChance: number;
  readonly fullChance: number;
  readonly tornWrites: boolean;
}

export const NO_DISK_FAULTS: DiskFaults = {
  syncMsMax: 2,
  slowSyncChance: 0,
  slowSyncMsMax: 0,
  syncErrorChance: 0,
  fullChance: 0,
  tornWrites: true,
};

interface Write {
  readonly region: string;
  readonly at: number;
  readonly bytes: Uint8Array;
}

export class SimDisk {
  readonly #random: Random;
  readonly #durable = new Map<string, Uint8Array>();
  /** The copy of each region that bit rot has hit and nobody has rewritten since. */
  readonly #rotten = new Map<string, number>();
  #unsynced: Write[] = [];
  /** Rises whenever anything durable changes. */
  version = 0;
  faults: DiskFaults = NO_DISK_FAULTS;

  constructor(random: Random) {
    this.#random = random;
  }

  read(region: string): Uint8Array | null {
    return this.#durable.get(region) ?? null;
  }

  /** False: the disk is full. */
  write(region: string, at: number, bytes: Uint8Array): boolean {
    if (this.#random.chance(this.faults.fullChance)) return false;
    this.#unsynced.push({ region, at, bytes });
    return true;
  }

  /** How long the next sync will take. */
  drawSyncMs(): number {
    const { syncMsMax, slowSyncChance, slowSyncMsMax } = this.faults;
    if (this.#random.chance(slowSyncChance)) return this.#random.float() * slowSyncMsMax;
    return this.#random.float() * syncMsMax;
  }

  /** False: EIO, and nobody knows what is durable now; the process must end. */
  sync(region: string): boolean {
    if (this.#random.chance(this.faults.syncErrorChance)) {
      this.crash();
      return false;
    }
    const kept: Write[] = [];
    for (const write of this.#unsynced) {
      if (write.region === region) this.#apply(write, write.bytes.length);
      else kept.push(write);
    }
    this.#unsynced = kept;
    return true;
  }

  crash(): void {
    const survivors = this.#random.below(this.#unsynced.length + 1);
    this.#unsynced.forEach((write, index) => {
      if (index < survivors) this.#apply(write, write.bytes.length);
      else if (index === survivors && this.faults.tornWrites) {
        this.#apply(write, this.#random.below(write.bytes.length + 1));
      }
    });
    this.#unsynced = [];
  }

  wipe(): void {
    this.version++;
    this.#durable.clear();
    this.#rotten.clear();
    this.#unsynced = [];
  }

  /** Flips one bit of one copy of one region, unless the other copy is rotten already. */
  rot(): void {
    const regions = [...this.#durable.keys()];
    if (regions.length === 0) return;
    const region = this.#random.pick(regions);
    // One fault at a time per record: a write under way may be torn, so nothing rots meanwhile.
    if (this.#unsynced.some((write) => write.region === region)) return;
    const bytes = this.#durable.get(region);
    if (bytes === undefined || bytes.length <= RECORD_COPY_BYTES) return;
    const copy = this.#rotten.get(region) ?? this.#random.below(2);
    this.#rotten.set(region, copy);
    const at = copy * RECORD_COPY_BYTES + this.#random.below(RECORD_COPY_BYTES / 8);
    this.version++;
    if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << this.#random.below(8));
  }

  #apply(write: Write, length: number): void {
    this.version++;
    const needed = write.at + length;
    let bytes = this.#durable.get(write.region) ?? new Uint8Array(0);
    if (bytes.length < needed) {
      const grown = new Uint8Array(needed);
      grown.set(bytes);
      bytes = grown;
      this.#durable.set(write.region, bytes);
    }
    bytes.set(write.bytes.subarray(0, length), write.at);
    const copy = write.at >= RECORD_COPY_BYTES ? 1 : 0;
    if (this.#rotten.get(write.region) === copy && length === write.bytes.length) {
      this.#rotten.delete(write.region);
    }
  }
}
