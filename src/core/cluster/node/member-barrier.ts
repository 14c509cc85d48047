/**
 * Effects of one state machine in order, and the record that some of them depend on.
 *
 * No effect passes a write that is not durable yet: effects after `persist` wait until both
 * copies of the record are synced (E2, E3, M1). Inputs do not wait: a slow disk delays what must be
 * durable, never the answers to probes of others. (B-52f)
 *
 *     machine ──▶ push ──▶ executed at once, or ── behind a write ──▶ after `saved`
 *                            └─ persist ──▶ TwoCopies ──▶ read, write, sync ──▶ the disk
 */

import { assert } from "../../base/assert.ts";
import {
  TWO_COPIES_RULES,
  TwoCopies,
  type TwoCopiesEffect,
  type TwoCopiesInput,
  type TwoCopiesRules,
} from "../../base/two-copies.ts";

export type Region = "swim" | "vote";

/** Disk requests; each is answered by one `RegionResult`, in order. */
export type RegionEffect =
  | { readonly kind: "readRegion"; readonly region: Region }
  | {
      readonly kind: "writeRegion";
      readonly region: Region;
      readonly at: number;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: "syncRegion"; readonly region: Region };

export type RegionResult = Extract<
  TwoCopiesInput,
  { readonly kind: "contents" | "written" | "synced" | "failed" }
>;

/** Rules for the order of writes; tests break them one at a time. */
export interface BarrierRules extends TwoCopiesRules {
  /** No effect passes a write that is not durable yet. */
  readonly waitForSync: boolean;
}

export const BARRIER_RULES: BarrierRules = { ...TWO_COPIES_RULES, waitForSync: true };

/** Effects waiting for the disk, minutes of a busy member. Beyond this the disk counts as failed. */
const WAITING_MAX = 16_384;

interface BarrierOptions<Effect> {
  readonly region: Region;
  readonly rules: BarrierRules;
  /** Executes one effect of the state machine. */
  readonly run: (effect: Effect) => void;
  readonly ask: (effect: RegionEffect) => void;
  /** Called once with the record of the previous process; null on a fresh disk. */
  readonly onOpened: (found: Uint8Array | null) => void;
  /** The region exists but has no intact copy. */
  readonly onUnreadable: () => void;
  /** The content of the disk is unknown; the process must terminate. */
  readonly onBroken: (problem: string) => void;
}

export class WriteBarrier<Effect> {
  readonly #options: BarrierOptions<Effect>;
  readonly #copies: TwoCopies;
  /** More than one only if the barrier does not wait for syncs. */
  readonly #saves: Uint8Array[] = [];
  #writing = false;
  #waiting: Effect[] = [];

  constructor(options: BarrierOptions<Effect>) {
    this.#options = options;
    this.#copies = new TwoCopies(options.rules);
  }

  open(): void {
    this.#drive({ kind: "open" });
  }

  onResult(result: RegionResult): void {
    this.#drive(result);
  }

  push(effect: Effect): void {
    const { run, onBroken } = this.#options;
    if (!this.#writing) run(effect);
    else if (this.#waiting.push(effect) > WAITING_MAX) onBroken("it does not answer");
  }

  /** Call from `run`: later effects wait until this is durable. */
  persist(payload: Uint8Array): void {
    const { rules } = this.#options;
    assert(!this.#writing, "effects behind a write are not carried out");
    this.#writing = rules.waitForSync;
    this.#saves.push(payload);
    if (this.#saves.length === 1) this.#drive({ kind: "save", payload });
  }

  #drive(input: TwoCopiesInput): void {
    const { region, ask, onOpened, onUnreadable, onBroken } = this.#options;
    const effect: TwoCopiesEffect = this.#copies.step(input);
    switch (effect.kind) {
      case "read":
        ask({ kind: "readRegion", region });
        return;
      case "write":
        ask({ kind: "writeRegion", region, at: effect.at, bytes: effect.bytes });
        return;
      case "sync":
        ask({ kind: "syncRegion", region });
        return;
      case "opened":
        onOpened(effect.found);
        return;
      case "saved":
        this.#onSaved();
        return;
      case "unreadable":
        onUnreadable();
        return;
      case "broken":
        onBroken(effect.problem);
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
