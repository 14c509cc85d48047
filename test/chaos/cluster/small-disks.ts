/** Data directories on disks of their own, small enough to be filled. */

import { execFileSync } from "node:child_process";
import { closeSync, cpSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isApart } from "./sites.ts";

/** Room for what a manager keeps of some jobs. */
const DISK_MIB = 192;
const FILLING = "filling";
const CHUNK = Buffer.alloc(1_048_576, 1);

export class SmallDisks {
  readonly #mounted: string[] = [];

  /** Nothing but our own may be mounted upon. */
  static get isPossible(): boolean {
    return isApart();
  }

  /** Mounts a small disk; the directory's content is preserved. */
  mount(dataDir: string): void {
    const aside = `${dataDir}.aside`;
    cpSync(dataDir, aside, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}m`, "tmpfs", dataDir]);
    cpSync(aside, dataDir, { recursive: true });
    rmSync(aside, { recursive: true });
    this.#mounted.push(dataDir);
  }

  has(dataDir: string): boolean {
    return this.#mounted.includes(dataDir);
  }

  /** To the last byte. */
  fill(dataDir: string): void {
    const file = openSync(join(dataDir, FILLING), "w");
    try {
      for (let chunk = CHUNK; chunk.length > 0; ) {
        try {
          writeSync(file, chunk);
        } catch {
          chunk = chunk.subarray(0, Math.floor(chunk.length / 2));
        }
      }
    } finally {
      closeSync(file);
    }
  }

  free(dataDir: string): void {
    rmSync(join(dataDir, FILLING), { force: true });
  }

  unmount(): void {
    for (const dataDir of this.#mounted.splice(0)) execFileSync("umount", ["-l", dataDir]);
  }
}
