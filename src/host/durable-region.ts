/** A small record on disk: two copies, each synced before the next, both before anyone relies on it. */

import { encodeRecord, RECORD_COPY_BYTES, recoverRecord } from "../core/base/durable-record.ts";
import type { DiskPort } from "./ports/disk.ts";

export class DurableRegion {
  readonly #disk: DiskPort;
  readonly #region: string;
  #generation: number;
  /** What the disk held when it was opened; null on a fresh one. */
  readonly found: Uint8Array | null;

  private constructor(
    disk: DiskPort,
    region: string,
    generation: number,
    found: Uint8Array | null,
  ) {
    this.#disk = disk;
    this.#region = region;
    this.#generation = generation;
    this.found = found;
  }

  static open(disk: DiskPort, region: string): Promise<DurableRegion> {
    return new Promise((resolve, reject) => {
      disk.read(region, (bytes, error) => {
        if (error !== null) {
          reject(new Error(`cannot read ${region}: ${error}`));
          return;
        }
        const record = recoverRecord(bytes);
        const { generation = 0, payload = null } = record ?? {};
        resolve(new DurableRegion(disk, region, generation, payload));
      });
    });
  }

  /** Rejects when the medium did; the process must end then. */
  async save(payload: Uint8Array): Promise<void> {
    this.#generation++;
    const bytes = encodeRecord({ generation: this.#generation, payload });
    for (const at of [0, RECORD_COPY_BYTES]) {
      await this.#call((done) => this.#disk.write(this.#region, at, bytes, done));
      await this.#call((done) => this.#disk.sync(this.#region, done));
    }
  }

  #call(start: (done: (error: string | null) => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      start((error) => {
        if (error === null) resolve();
        else reject(new Error(`cannot keep ${this.#region} on disk: ${error}`));
      });
    });
  }
}
