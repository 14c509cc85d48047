/** Files by hash on a simulated disk: durable once synced, lost when the process dies before. */

import { hexOf } from "../../src/core/base/hex.ts";
import type { Random } from "../../src/core/base/random.ts";
import { sha256 } from "../../src/core/base/sha256.ts";
import type { World } from "../kernel/world.ts";

export class BlobDisk {
  readonly #world: World;
  readonly #random: Random;
  readonly #index: number;
  readonly #kept = new Map<string, Uint8Array>();
  readonly #syncMsMax: number;
  /** Extra time for every sync. */
  slowMs = 0;
  /** The disk is full and rejects every write. */
  isFull = false;
  #crashes = 0;

  constructor(world: World, index: number, syncMsMax: number, random: Random) {
    this.#world = world;
    this.#index = index;
    this.#syncMsMax = syncMsMax;
    this.#random = random;
  }

  get hashes(): readonly string[] {
    return [...this.#kept.keys()];
  }

  has(hash: string): boolean {
    return this.#kept.has(hash);
  }

  read(hash: string): Uint8Array | null {
    return this.#kept.get(hash) ?? null;
  }

  drawSyncMs(): number {
    return this.#random.float() * (this.#syncMsMax + this.slowMs);
  }

  /** `done`: called with null once the file is durable, or with the reason; never when the process dies before. */
  keep(hash: string, bytes: Uint8Array, done: (problem: string | null) => void): void {
    const crashes = this.#crashes;
    const at = this.#world.now + this.drawSyncMs();
    this.#world.schedule(at, "synced", this.#index, () => {
      if (this.#crashes !== crashes) return;
      if (this.isFull) {
        done("ENOSPC: no space left on device");
        return;
      }
      const isWhole = hexOf(sha256(bytes)) === hash;
      if (isWhole) this.#kept.set(hash, bytes);
      done(isWhole ? null : "what came is not what its hash says");
    });
  }

  wipe(): void {
    this.#kept.clear();
  }

  /** Drops pending writes. */
  crash(): void {
    this.#crashes++;
  }
}
