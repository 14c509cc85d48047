/**
 * The driver's contract about order, for one machine: its effects are carried out one after the
 * other, and nothing passes a durable write that is still under way. A record is written as two
 * copies, each synced before the next step (see core/base).
 */

import { Defect } from "../../src/core/base/assert.ts";
import {
  TWO_COPIES_RULES,
  TwoCopies,
  type TwoCopiesInput,
  type TwoCopiesRules,
} from "../../src/core/base/two-copies.ts";
import type { SimDisk } from "../kernel/disk.ts";

export interface LaneHost {
  readonly disk: SimDisk;
  /** Calls back after a sync's time, if the process still lives then. */
  afterSync(delayMs: number, run: () => void): void;
  /** The disk failed: nobody knows what it holds, the process ends. */
  die(why: string): void;
}

/** What a driver must get right, and the machine it drives; each can be broken to plant a mutant. */
export interface LaneRules extends TwoCopiesRules {
  /** Nothing passes a write that is not durable yet. */
  readonly waitForSync: boolean;
}

export const LANE_RULES: LaneRules = { ...TWO_COPIES_RULES, waitForSync: true };

export class Lane<Effect> {
  readonly #host: LaneHost;
  readonly #region: string;
  readonly #carryOut: (effect: Effect) => void;
  readonly #rules: LaneRules;
  readonly #copies: TwoCopies;
  #onOpened: (found: Uint8Array | null) => void = () => {};
  /** Only a lane that does not wait for its syncs ever has more than one. */
  readonly #saves: Uint8Array[] = [];
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
    this.#copies = new TwoCopies(rules);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Tells what a former process left on the disk, once a damaged copy of it has been mended. */
  open(done: (found: Uint8Array | null) => void): void {
    this.#onOpened = done;
    this.#drive({ kind: "open" });
  }

  push(effect: Effect): void {
    if (this.#writing) this.#waiting.push(effect);
    else this.#carryOut(effect);
  }

  /** To be called from `carryOut`: what follows waits until this is durable. */
  persist(payload: Uint8Array): void {
    this.#writing = this.#rules.waitForSync;
    this.#saves.push(payload);
    if (this.#saves.length === 1) this.#drive({ kind: "save", payload });
  }

  #drive(input: TwoCopiesInput): void {
    const { disk } = this.#host;
    const effect = this.#copies.step(input);
    switch (effect.kind) {
      case "read":
        this.#drive({ kind: "contents", region: disk.read(this.#region) });
        return;
      case "write":
        if (disk.write(this.#region, effect.at, effect.bytes)) this.#drive({ kind: "written" });
        else this.#host.die("disk full");
        return;
      case "sync":
        this.#host.afterSync(disk.drawSyncMs(), () => {
          if (disk.sync(this.#region)) this.#drive({ kind: "synced" });
          else this.#host.die("sync failed");
        });
        return;
      case "opened":
        this.#onOpened(effect.found);
        return;
      case "saved":
        this.#onSaved();
        return;
      case "unreadable":
        // The disk's faults leave one whole copy of every record: whoever lost both wrote them wrongly.
        throw new Defect(`${this.#region}: both copies are damaged`);
      case "broken":
        this.#host.die(effect.problem);
    }
  }

  #onSaved(): void {
    this.#saves.shift();
    const [next] = this.#saves;
    if (next !== undefined) this.#drive({ kind: "save", payload: next });
    this.#writing = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const effect of waiting) this.push(effect);
  }
}
