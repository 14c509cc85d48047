/**
 * A node's disk: durable bytes, and writes not yet synced. A crash keeps a random prefix of the unsynced writes and
 * tears the next one at a random byte. Faults are drawn from the disk's own randomness: slow syncs, EIO, ENOSPC, and
 * bit rot that never spoils both copies of a record (the run claims that every record can be recovered).
 */

import {
  type DurableRecord,
  decodeRecord,
  RECORD_COPY_BYTES,
} from "../../src/core/base/durable-record.ts";
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
  #unsynced: Write[] = [];
  /** Increases whenever anything durable changes. */
  version = 0;
  faults: DiskFaults = NO_DISK_FAULTS;
  /** Power fails during the next sync. */
  cutNextSync = false;

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

  /** False: EIO, and it is unknown what is durable now; the process must exit. */
  sync(region: string): boolean {
    if (this.cutNextSync || this.#random.chance(this.faults.syncErrorChance)) {
      this.cutNextSync = false;
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
    this.#unsynced = [];
  }

  /**
   * Flips one bit of one copy of one region, never of the only whole newest one: a crash may have torn the other, and a
   * pending write may still be torn. One fault at a time per record.
   */
  rot(only: string | null = null): void {
    const regions = [...this.#durable.keys()];
    if (regions.length === 0) return;
    const region = only ?? this.#random.pick(regions);
    if (this.#unsynced.some((write) => write.region === region)) return;
    const bytes = this.#durable.get(region);
    if (bytes === undefined || bytes.length <= RECORD_COPY_BYTES) return;
    const copy = this.#random.below(2);
    const [hit, other] = [copyOf(bytes, copy), copyOf(bytes, 1 - copy)];
    if (hit !== null && hit.generation > (other?.generation ?? -1)) return;
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
  }
}

function copyOf(region: Uint8Array, copy: number): DurableRecord | null {
  const at = copy * RECORD_COPY_BYTES;
  return decodeRecord(region.subarray(at, at + RECORD_COPY_BYTES));
}
