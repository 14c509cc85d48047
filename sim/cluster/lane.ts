/**
 * The driver's contract about order, for one machine: its effects are carried out one after the
 * other, and nothing passes a durable write that is still under way. A record is written as two
 * copies, each synced before the next step (see core/base).
 */

import type { DurableRecord } from "../../src/core/base/durable-record.ts";
import {
  copyOrder,
  encodeRecord,
  RECORD_COPY_BYTES,
  recoverRecord,
} from "../../src/core/base/durable-record.ts";
import type { SimDisk } from "../kernel/disk.ts";

export interface LaneHost {
  readonly disk: SimDisk;
  /** Calls back after a sync's time, if the process still lives then. */
  afterSync(delayMs: number, run: () => void): void;
  /** The disk failed: nobody knows what it holds, the process ends. */
  die(why: string): void;
}

/** What a driver must get right; each can be broken to plant a mutant. */
export interface LaneRules {
  /** Nothing passes a write that is not durable yet. */
  readonly waitForSync: boolean;
  /** Both copies are written, one after the other. */
  readonly writeBothCopies: boolean;
  /** A copy whose checksum does not hold is not believed. */
  readonly verifyChecksum: boolean;
}

export const LANE_RULES: LaneRules = {
  waitForSync: true,
  writeBothCopies: true,
  verifyChecksum: true,
};

export class Lane<Effect> {
  readonly #host: LaneHost;
  readonly #region: string;
  readonly #carryOut: (effect: Effect) => void;
  readonly #rules: LaneRules;
  #generation = 0;
  #writing = false;
  #waiting: Effect[] = [];

  constructor(
    host: LaneHost,
    region: string,
    carryOut: (effect: Effect) => void,
    rules: LaneRules,
  ) {
    this.#host = host;
    this.#region = region;
    this.#carryOut = carryOut;
    this.#rules = rules;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** What a former process left on the disk. */
  recover(): Uint8Array | null {
    const region = this.#host.disk.read(this.#region);
    const record = this.#rules.verifyChecksum ? recoverRecord(region) : believeAnything(region);
    this.#generation = record?.generation ?? 0;
    return record?.payload ?? null;
  }

  push(effect: Effect): void {
    if (this.#writing) this.#waiting.push(effect);
    else this.#carryOut(effect);
  }

  /** To be called from `carryOut`: what follows waits until this is durable. */
  persist(payload: Uint8Array): void {
    this.#writing = this.#rules.waitForSync;
    this.#generation++;
    const bytes = encodeRecord({ generation: this.#generation, payload });
    const finish = (): void => {
      this.#writing = false;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const effect of waiting) this.push(effect);
    };
    const [first, second] = copyOrder(this.#host.disk.read(this.#region));
    if (this.#rules.writeBothCopies) {
      this.#writeCopy(first, bytes, () => this.#writeCopy(second, bytes, finish));
    } else this.#writeCopy(0, bytes, finish);
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

/** The mutant of `verifyChecksum`: whatever lies in the first copy is taken for a record. */
function believeAnything(region: Uint8Array | null): DurableRecord | null {
  if (region === null || region.length < 20) return null;
  const generation = new DataView(region.buffer, region.byteOffset).getUint32(8);
  return { generation, payload: region.slice(16, RECORD_COPY_BYTES) };
}
