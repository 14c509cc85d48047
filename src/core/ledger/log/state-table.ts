/**
 * The state of every retained entry after folding the advances. States only go up; what is unknown is
 * ignored. (WAL-8) One byte per entry in pages of LSNs, and three watermarks; pages that hold only
 * records outside the commit pipeline are never made.
 */

import type { StateAdvance } from "./control.ts";
import { STATE_APPLIED, STATE_COMPACTED, STATE_GLOBAL, STATE_REGIONAL } from "./record.ts";

const PAGE_ENTRIES = 4_096;
/** Stored as state + 1, so that zero means: no pipeline entry here. */
const ABSENT = 0;

export class StateTable {
  readonly #pages = new Map<number, Uint8Array>();
  #regionalLsn = 0;
  #globalLsn = 0;
  #appliedLsn = 0;

  /** A pipeline entry exists with this initial state. */
  add(lsn: number, state: number): void {
    const page = Math.floor(lsn / PAGE_ENTRIES);
    let bytes = this.#pages.get(page);
    if (bytes === undefined) {
      bytes = new Uint8Array(PAGE_ENTRIES);
      this.#pages.set(page, bytes);
    }
    bytes[lsn % PAGE_ENTRIES] = state + 1;
  }

  /** False: the entry is unknown or is there already. */
  advance(lsn: number, state: number): boolean {
    const known = this.stateOf(lsn);
    if (known === null || state <= known || state > STATE_COMPACTED) return false;
    this.add(lsn, state);
    return true;
  }

  fold(advance: StateAdvance): void {
    this.#regionalLsn = Math.max(this.#regionalLsn, advance.regionalLsn);
    this.#globalLsn = Math.max(this.#globalLsn, advance.globalLsn);
    this.#appliedLsn = Math.max(this.#appliedLsn, advance.appliedLsn);
    for (const { lsn, state } of advance.exact) this.advance(lsn, state);
  }

  stateOf(lsn: number): number | null {
    const byte = this.#pages.get(Math.floor(lsn / PAGE_ENTRIES))?.[lsn % PAGE_ENTRIES] ?? ABSENT;
    return byte === ABSENT ? null : Math.max(byte - 1, this.#floorOf(lsn));
  }

  watermarks(): Omit<StateAdvance, "exact"> {
    return {
      regionalLsn: this.#regionalLsn,
      globalLsn: this.#globalLsn,
      appliedLsn: this.#appliedLsn,
    };
  }

  /** LSNs of entries below GLOBAL, ascending. (WAL-16) */
  *pending(): Generator<number> {
    for (const page of [...this.#pages.keys()].sort((a, b) => a - b)) {
      const bytes = this.#pages.get(page);
      const first = page * PAGE_ENTRIES;
      if (bytes === undefined || first + PAGE_ENTRIES <= this.#globalLsn) continue;
      for (let i = 0; i < PAGE_ENTRIES; i++) {
        const byte = bytes[i] ?? ABSENT;
        if (byte === ABSENT || byte - 1 >= STATE_GLOBAL || first + i <= this.#globalLsn) continue;
        if (first + i > this.#appliedLsn) yield first + i;
      }
    }
  }

  pendingCount(): number {
    let count = 0;
    for (const _ of this.pending()) count++;
    return count;
  }

  /** Entries up to here are gone from the disk. */
  forget(lsn: number): void {
    for (const page of this.#pages.keys()) {
      if ((page + 1) * PAGE_ENTRIES - 1 <= lsn) this.#pages.delete(page);
    }
  }

  #floorOf(lsn: number): number {
    if (lsn <= this.#appliedLsn) return STATE_APPLIED;
    if (lsn <= this.#globalLsn) return STATE_GLOBAL;
    return lsn <= this.#regionalLsn ? STATE_REGIONAL : 0;
  }
}
