/**
 * Order in which a durable record is read and written: one machine for the process and for the simulator. It requests
 * one operation at a time from its driver and receives the result.
 *
 *     open:  read · [write the copy that is missing, damaged or older · sync] · opened
 *     save:  read · write one copy · sync · write the other · sync · saved
 *
 * - The copy that could be lost without harm is written first: a damaged or older one if there is one. So a power cut
 *   during a save leaves one intact copy, even if the other was corrupt before.
 * - Opening repairs the record before it is used: every record in use has two copies.
 * - A region that exists without an intact copy is `unreadable`, which is not a fresh disk: its promises are unknown.
 *   Only a torn first save counts as fresh, because nothing can depend on it yet.
 */

import { assert } from "./assert.ts";
import {
  type DurableRecord,
  decodeRecord,
  encodeRecord,
  RECORD_COPY_BYTES,
  RECORD_HEAD_BYTES,
  recoverRecord,
} from "./durable-record.ts";

export type TwoCopiesInput =
  | { readonly kind: "open" }
  | { readonly kind: "save"; readonly payload: Uint8Array }
  /** Answers `read`; null when the region does not exist. */
  | { readonly kind: "contents"; readonly region: Uint8Array | null }
  | { readonly kind: "written" }
  | { readonly kind: "synced" }
  | { readonly kind: "failed"; readonly problem: string };

export type TwoCopiesEffect =
  | { readonly kind: "read" }
  | { readonly kind: "write"; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: "sync" }
  /** Null on a fresh disk. */
  | { readonly kind: "opened"; readonly found: Uint8Array | null }
  | { readonly kind: "unreadable" }
  | { readonly kind: "saved" }
  /** The content of the disk is unknown now; the process must exit. */
  | { readonly kind: "broken"; readonly problem: string };

/** Rules that can be disabled to plant a mutant; production runs with all of them. */
export interface TwoCopiesRules {
  /** Both copies are written, one after the other. */
  readonly writeBothCopies: boolean;
  /** A copy whose checksum does not match is ignored. */
  readonly verifyChecksum: boolean;
  /** A spoiled or older copy is written first. */
  readonly spoiledFirst: boolean;
}

export const TWO_COPIES_RULES: TwoCopiesRules = {
  writeBothCopies: true,
  verifyChecksum: true,
  spoiledFirst: true,
};

/** Where each copy begins. */
type Offsets = readonly number[];

interface Writing {
  readonly bytes: Uint8Array;
  /** The copy under way first. */
  readonly offsets: Offsets;
  readonly done: TwoCopiesEffect;
}

const BOTH: Offsets = [0, RECORD_COPY_BYTES];

export class TwoCopies {
  readonly #rules: TwoCopiesRules;
  #generation = 0;
  #state: "closed" | "opening" | "idle" | "saving" | "writing" | "over" = "closed";
  #payload: Uint8Array | null = null;
  #writing: Writing | null = null;

  constructor(rules: TwoCopiesRules = TWO_COPIES_RULES) {
    this.#rules = rules;
  }

  /** Returns the next operation. One is in progress at a time. */
  step(input: TwoCopiesInput): TwoCopiesEffect {
    switch (input.kind) {
      case "open":
        assert(this.#state === "closed", "a record is opened once");
        this.#state = "opening";
        return { kind: "read" };
      case "save":
        assert(this.#state === "idle", "a record is saved by one at a time, after it was opened");
        this.#state = "saving";
        this.#payload = input.payload;
        return { kind: "read" };
      case "contents":
        return this.#state === "opening" ? this.#open(input.region) : this.#save(input.region);
      case "written":
        assert(this.#state === "writing", "only what was asked for is written");
        return { kind: "sync" };
      case "synced":
        return this.#next();
      case "failed":
        this.#state = "over";
        return { kind: "broken", problem: input.problem };
    }
  }

  #open(region: Uint8Array | null): TwoCopiesEffect {
    const record = this.#recover(region);
    if (record === null && region !== null && !isTornFirstSave(region)) {
      this.#state = "over";
      return { kind: "unreadable" };
    }
    this.#generation = record?.generation ?? 0;
    const done: TwoCopiesEffect = { kind: "opened", found: record?.payload ?? null };
    const behind = record === null ? [] : behindOf(region, record.generation);
    if (record === null || behind.length === 0 || !this.#rules.writeBothCopies) {
      this.#state = "idle";
      return done;
    }
    return this.#write({ bytes: encodeRecord(record), offsets: behind, done });
  }

  #save(region: Uint8Array | null): TwoCopiesEffect {
    assert(this.#state === "saving" && this.#payload !== null, "a save reads before it writes");
    const [spoiled] = behindOf(region, this.#generation);
    this.#generation++;
    const bytes = encodeRecord({ generation: this.#generation, payload: this.#payload });
    const order = this.#rules.spoiledFirst && spoiled === RECORD_COPY_BYTES;
    const offsets = order ? [RECORD_COPY_BYTES, 0] : BOTH;
    return this.#write({
      bytes,
      offsets: this.#rules.writeBothCopies ? offsets : [0],
      done: { kind: "saved" },
    });
  }

  #write(writing: Writing): TwoCopiesEffect {
    this.#state = "writing";
    this.#writing = writing;
    return { kind: "write", at: writing.offsets[0] ?? 0, bytes: writing.bytes };
  }

  #next(): TwoCopiesEffect {
    const writing = this.#writing;
    assert(writing !== null && this.#state === "writing", "only what was written is synced");
    const [, ...rest] = writing.offsets;
    if (rest.length > 0) return this.#write({ ...writing, offsets: rest });
    this.#writing = null;
    this.#payload = null;
    this.#state = "idle";
    return writing.done;
  }

  #recover(region: Uint8Array | null): DurableRecord | null {
    return this.#rules.verifyChecksum ? recoverRecord(region) : believeAnything(region);
  }
}

/** The copies that do not hold this generation whole. */
function behindOf(region: Uint8Array | null, generation: number): Offsets {
  return BOTH.filter((at) => {
    const copy = region?.subarray(at, at + RECORD_COPY_BYTES) ?? null;
    return copy === null || decodeRecord(copy)?.generation !== generation;
  });
}

/**
 * The first save ever writes copy 0, and copy 1 only once that is durable: a region without a second copy whose head,
 * as far as it goes, is that of generation 1 was torn before anything relied on it. Some file systems leave zeros where
 * the torn part would be.
 */
function isTornFirstSave(region: Uint8Array): boolean {
  if (region.length > RECORD_COPY_BYTES) return false;
  const first = encodeRecord({ generation: 1, payload: new Uint8Array(0) });
  // Magic and generation; the length and what follows depend on the payload.
  const known = first.subarray(0, RECORD_HEAD_BYTES - 4);
  const zeroFrom = region.findLastIndex((byte) => byte !== 0) + 1;
  return known.every((byte, at) => at >= zeroFrom || region[at] === byte);
}

/** The mutant of `verifyChecksum`: whatever lies in the first copy is taken for a record. */
function believeAnything(region: Uint8Array | null): DurableRecord | null {
  if (region === null || region.length < RECORD_HEAD_BYTES + 4) return null;
  const generation = new DataView(region.buffer, region.byteOffset).getUint32(8);
  return { generation, payload: region.slice(RECORD_HEAD_BYTES, RECORD_COPY_BYTES) };
}
