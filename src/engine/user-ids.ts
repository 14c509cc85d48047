/**
 * Numbers of virtual users, unique over all cores of all places. A core uses the numbers of its share first; users
 * beyond it (a load that was scaled up manually) are numbered after those of all cores. The number of a finished user
 * is reused by the next that begins.
 */

import type { Share } from "../core/load/plan/load.ts";

export class UserIds {
  readonly #share: Share;
  readonly #free: number[] = [];
  #given = 0;

  constructor(share: Share) {
    this.#share = share;
  }

  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const { count, index, part, users } = this.#share;
    const at = this.#given++;
    const own = users[index] ?? 0;
    const sum = (list: readonly number[]): number => list.reduce((all, each) => all + each, 0);
    if (at < own) return (part?.firstUser ?? 0) + sum(users.slice(0, index)) + at;
    const beyond = (at - own) * count + index;
    return part === undefined ? sum(users) + beyond : part.users + beyond * part.count + part.index;
  }

  giveBack(id: number): void {
    this.#free.push(id);
  }
}
