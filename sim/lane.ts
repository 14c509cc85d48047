/**
 * The driver's contract about order, for one machine: its effects are carried out one after the
 * other, and nothing passes a durable write that is still under way. A record is written as two
 * copies, each synced before the next step (see core/durable).
 */

import { encodeRecord, RECORD_COPY_BYTES, recoverRecord } from "../src/core/durable/record.ts";
import type { SimDisk } from "./disk.ts";

export interface LaneHost {
  readonly disk: SimDisk;
  /** Calls back after a sync's time, if the process still lives then. */
  afterSync(delayMs: number, run: () => void): void;
  /** The disk failed: nobody knows what it holds, the process ends. */
  die(why: string): void;
}

export class Lane<Effect> {
  readonly #host: LaneHost;
  readonly #region: string;
  readonly #carryOut: (effect: Effect) => void;
  #generation = 0;
  #writing = false;
  #waiting: Effect[] = [];

  constructor(host: LaneHost, region: string, carryOut: (effect: Effect) => void) {
    this.#host = host;
    this.#region = region;
    this.#carryOut = carryOut;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** What a former process left on the disk. */
  recover(): Uint8Array | null {
    const record = recoverRecord(this.#host.disk.read(this.#region));
    this.#generation = record?.generation ?? 0;
    return record?.payload ?? null;
  }

  push(effect: Effect): void {
    if (this.#writing) this.#waiting.push(effect);
    else this.#carryOut(effect);
  }

  /** To be called from `carryOut`: what follows waits until this is durable. */
  persist(payload: Uint8Array): void {
    this.#writing = true;
    this.#generation++;
    const bytes = encodeRecord({ generation: this.#generation, payload });
    this.#writeCopy(0, bytes, () =>
      this.#writeCopy(RECORD_COPY_BYTES, bytes, () => {
        this.#writing = false;
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const effect of waiting) this.push(effect);
      }),
    );
  }

  #writeCopy(at: number, bytes: Uint8Array, done: () => void): void {
    const { disk } = this.#host;
    if (!disk.write(this.#region, at, bytes)) {
      this.#host.die("disk full");
      return;
    }
    this.#host.afterSync(disk.drawSyncMs(), () => {
      if (disk.sync(this.#region)) done();
      else this.#host.die("sync failed");
    });
  }
}
