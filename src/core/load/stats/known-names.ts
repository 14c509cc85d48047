/** Steps, checks or groups received from one sender, and their rows in the merged stats. */

import type { NewNames } from "./frames.ts";
import { GivenUpNames } from "./given-up-names.ts";
import type { Name, NameTable } from "./names.ts";
import type { TallyShape } from "./tally.ts";
import { ToldTallies } from "./told-tallies.ts";

export class KnownNames {
  /** Rows of the merged stats, by the sender's numbers. */
  readonly merged: number[] = [];
  readonly received: ToldTallies;
  #givenUp: GivenUpNames | null = null;
  /** Number of applied folds of the sender. */
  #folds = 0;

  constructor(shape: TallyShape) {
    this.received = new ToldTallies(shape);
  }

  /** Number of known names including those of a frame; null when the frame does not follow them. */
  countWith({ folds, foldsFrom, from, list }: NewNames): number | null {
    if (from > this.merged.length || foldsFrom > this.#folds) return null;
    const count = Math.max(this.merged.length, from + list.length);
    const isKnown = (number: number): boolean => number < count;
    const areKnown = folds.every(({ from, into }) => isKnown(from) && isKnown(into));
    return areKnown ? count : null;
  }

  /** Applies new names; returns the rows that miss calls of this sender. */
  learn({ folds, foldsFrom, from, givenUp, list }: NewNames, names: NameTable): number[] {
    for (let at = this.merged.length - from; at < list.length; at++) {
      const { name, protocol, tags } = list[at] as Name;
      this.merged.push(names.numberOf(name, protocol, tags));
      this.received.push();
    }
    const rows: number[] = [];
    for (const fold of folds.slice(this.#folds - foldsFrom)) {
      this.#folds++;
      this.received.fold(fold.from, fold.into);
      rows.push(this.merged[fold.from] as number);
    }
    if (givenUp === null) return rows;
    this.#givenUp ??= new GivenUpNames();
    this.#givenUp.union(givenUp);
    names.givenUp ??= new GivenUpNames();
    names.givenUp.union(givenUp);
    return [...rows, ...this.missedRows(names)];
  }

  /** Rows of others whose name this sender gave up. */
  missedRows(names: NameTable): number[] {
    if (this.#givenUp === null) return [];
    return [...names.among(this.#givenUp)].filter((row) => !this.merged.includes(row));
  }

  /** Moves the received values of folded rows to the rows that count them now. */
  follow({ folds }: NameTable): void {
    const into = new Map(folds.map((fold) => [fold.from, fold.into]));
    for (const [at, row] of this.merged.entries()) this.merged[at] = into.get(row) ?? row;
  }
}
