/**
 * Connection slots. A slot is taken when the bytes of a connection could first arrive, before any greeting or
 * handshake, and released when the connection closes: a silent connection occupies a slot as well.
 *
 * Slots are limited in total and per host, and some are reserved for hosts of members, so that strangers, however many
 * hosts they have, never keep a member out. When all are taken, the oldest connection that has not proven possession of
 * the key is closed to make space.
 */

import { assert } from "../core/base/assert.ts";
import { hostKey } from "./address.ts";

export interface PlacesLimits {
  readonly total: number;
  readonly perHost: number;
  /** Part of the total reserved for hosts of members. */
  readonly forMembers: number;
}

/** An occupied slot. */
export interface Place {
  /** Marks the connection as holding the key: it is no longer evicted. */
  readonly prove: () => void;
  readonly release: () => void;
}

interface Held {
  readonly key: string;
  readonly stranger: boolean;
  readonly close: () => void;
}

export class Places {
  readonly #limits: PlacesLimits;
  readonly #isMember: (host: string) => boolean;
  readonly #perHost = new Map<string, number>();
  readonly #held = new Set<Held>();
  /** Slots whose connection has not proven possession of the key, the oldest first. */
  readonly #unproven = new Set<Held>();
  #strangers = 0;
  #refused = 0;

  constructor(limits: PlacesLimits, isMember: (host: string) => boolean) {
    assert(limits.forMembers < limits.total, "strangers have some places too");
    this.#limits = limits;
    this.#isMember = isMember;
  }

  get open(): number {
    return this.#held.size;
  }

  /** Connections closed for lack of a slot, at once or by eviction. */
  get refused(): number {
    return this.#refused;
  }

  /** Null: close the connection now. `close` is called when it is evicted later. */
  take(host: string, close: () => void): Place | null {
    const { total, perHost, forMembers } = this.#limits;
    const held: Held = { key: hostKey(host), stranger: !this.#isMember(host), close };
    const { key, stranger } = held;
    const room =
      ((this.#perHost.get(key) ?? 0) < perHost || this.#makeRoom((it) => it.key === key)) &&
      (!stranger || this.#strangers < total - forMembers || this.#makeRoom((it) => it.stranger)) &&
      (this.#held.size < total || this.#makeRoom(() => true));
    if (!room) {
      this.#refused++;
      return null;
    }
    this.#held.add(held);
    this.#unproven.add(held);
    this.#perHost.set(key, (this.#perHost.get(key) ?? 0) + 1);
    if (stranger) this.#strangers++;
    return { prove: () => this.#unproven.delete(held), release: () => this.#release(held) };
  }

  /**
   * Evicts the oldest connection that has not greeted yet: a member that shares its host with a stranger greets within
   * milliseconds, and silence never keeps it out.
   */
  #makeRoom(matches: (held: Held) => boolean): boolean {
    for (const held of this.#unproven) {
      if (!matches(held)) continue;
      this.#release(held);
      this.#refused++;
      held.close();
      return true;
    }
    return false;
  }

  /** Runs once; an evicted slot is already released when its connection closes. */
  #release(held: Held): void {
    if (!this.#held.delete(held)) return;
    this.#unproven.delete(held);
    const left = (this.#perHost.get(held.key) ?? 0) - 1;
    if (left <= 0) this.#perHost.delete(held.key);
    else this.#perHost.set(held.key, left);
    if (held.stranger) this.#strangers--;
  }
}
