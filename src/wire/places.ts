/**
 * Who may hold a connection to us. A place is taken when the bytes of a connection could first arrive,
 * before any greeting or handshake, and given back when it is gone: what holds it open in silence holds
 * a place all the same.
 *
 * Places are bounded in all and per host, and some are kept for hosts where members live, so that
 * strangers, however many hosts they have, never keep a member out.
 */

import { assert } from "../core/base/assert.ts";
import { hostKey } from "./address.ts";

export interface PlacesLimits {
  readonly total: number;
  readonly perHost: number;
  /** Of the total, kept for hosts where members live. */
  readonly forMembers: number;
}

/** A place that is held; giving it back is done once. */
export interface Place {
  readonly release: () => void;
}

export class Places {
  readonly #limits: PlacesLimits;
  readonly #isMember: (host: string) => boolean;
  readonly #perHost = new Map<string, number>();
  #total = 0;
  #strangers = 0;
  #refused = 0;

  constructor(limits: PlacesLimits, isMember: (host: string) => boolean) {
    assert(limits.forMembers < limits.total, "strangers have some places too");
    this.#limits = limits;
    this.#isMember = isMember;
  }

  get open(): number {
    return this.#total;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Null: close it now. */
  take(host: string): Place | null {
    const { total, perHost, forMembers } = this.#limits;
    const key = hostKey(host);
    const held = this.#perHost.get(key) ?? 0;
    const stranger = !this.#isMember(host);
    const full = this.#total >= total || (stranger && this.#strangers >= total - forMembers);
    if (full || held >= perHost) {
      this.#refused++;
      return null;
    }
    this.#perHost.set(key, held + 1);
    this.#total++;
    if (stranger) this.#strangers++;
    return { release: () => this.#release(key, stranger) };
  }

  #release(key: string, stranger: boolean): void {
    const left = (this.#perHost.get(key) ?? 0) - 1;
    assert(left >= 0, "a place is given back once");
    if (left === 0) this.#perHost.delete(key);
    else this.#perHost.set(key, left);
    this.#total--;
    if (stranger) this.#strangers--;
  }
}
