/**
 * Tallies received from one sender for its steps, checks or groups: just enough to compute by how much the next frame
 * raises the whole. Hundreds of senders report dozens of steps ten times a second, and all data has left the caches
 * since the last frame: so everything is packed into few arrays, where one lookup need not wait for another.
 *
 *   numbers   counts, then sums of histograms                                of each tally
 *   keyed     key, count, key, count …                                       of each tally
 *   places    where in `narrow` a page of cells begins, below zero in `wide` of each tally, histogram and page
 */

import { cellsAt } from "./cell-buffer.ts";
import { PAGES_MAX, pageOf } from "./histogram.ts";
import { CELLS_PER_PAGE, endOfPage, raiseNarrow, raiseWide } from "./histogram-page.ts";
import type { Tally, TallyChanges, TallyShape } from "./tally.ts";
import type { CellChanges } from "./tracked-histogram.ts";

/** Position of a page without values. */
const NOWHERE = 0;
/** Initial capacity in pages; grows by a quarter each time, so that little of it is unused. */
const PAGES_AT_FIRST = 15;
const GROWTH = 1.25;

export class ToldTallies {
  readonly #shape: TallyShape;
  #numbers: Float64Array = new Float64Array(0);
  readonly #keyed: number[][] = [];
  #places: Int32Array = new Int32Array(0);
  /** The first page is reserved. */
  #narrow = new Uint16Array(0);
  #narrowUsed = CELLS_PER_PAGE;
  /** Pages with a cell that exceeds 16 bits. */
  readonly #wide: Float64Array[] = [];

  constructor(shape: TallyShape) {
    this.#shape = shape;
  }

  get size(): number {
    return this.#keyed.length;
  }

  /** Appends an empty tally. */
  push(): void {
    this.#keyed.push([]);
    const { histograms } = this.#shape;
    this.#numbers = grownNumbers(this.#numbers, this.size * this.#numbersEach);
    this.#places = grownPlaces(this.#places, this.size * histograms * PAGES_MAX);
  }

  get #numbersEach(): number {
    return this.#shape.counts + this.#shape.histograms;
  }

  /** Counts of one tally; must not be kept. */
  countsOf(number: number): Float64Array {
    const from = number * this.#numbersEach;
    return this.#numbers.subarray(from, from + this.#shape.counts);
  }

  /** Raises one to the values of a frame, and the whole that it is a part of by the same differences. */
  raise(number: number, changes: TallyChanges, whole: Tally, frame: number): void {
    const { counts, histograms } = this.#shape;
    const first = number * this.#numbersEach;
    this.#raiseCounts(first, changes.counts, whole.counts);
    this.#raiseKeyed(number, changes.keyed, whole.keyed);
    for (let at = 0; at < histograms; at++) {
      const cells = changes.histograms[at];
      const into = whole.histograms[at];
      if (cells === undefined || into === undefined || cells.stretch === null) continue;
      const sum = this.#raiseSum(first + counts + at, cells.sum);
      this.#raiseCells((number * histograms + at) * PAGES_MAX, cells);
      into.addRaised(cells, sum, frame);
    }
    whole.changedIn = frame;
  }

  /** Adds one tally to another: its sender has folded them. */
  fold(from: number, into: number): void {
    const each = this.#numbersEach;
    for (let at = 0; at < each; at++) {
      const [source, target] = [from * each + at, into * each + at];
      this.#numbers[target] = (this.#numbers[target] as number) + (this.#numbers[source] as number);
      this.#numbers[source] = 0;
    }
    this.#foldKeyed(from, into);
    const pages = this.#shape.histograms * PAGES_MAX;
    for (let page = 0; page < pages; page++)
      this.#foldPage(from * pages + page, into * pages + page);
  }

  #foldKeyed(from: number, into: number): void {
    const [source = [], target = []] = [this.#keyed[from], this.#keyed[into]];
    for (let at = 0; at < source.length; at += 2) {
      const place = placeOf(target, source[at] as number);
      target[place] = source[at] as number;
      target[place + 1] = (target[place + 1] ?? 0) + (source[at + 1] as number);
    }
    this.#keyed[from] = [];
  }

  /** The space of the source is not released. */
  #foldPage(from: number, into: number): void {
    const place = this.#places[from] as number;
    if (place === NOWHERE) return;
    const cells =
      place < NOWHERE
        ? (this.#wide[-place - 1] as Float64Array)
        : this.#narrow.slice(place, place + CELLS_PER_PAGE);
    if (this.#places[into] === NOWHERE) this.#open(into);
    const wide = this.#widened(into);
    for (let cell = 0; cell < CELLS_PER_PAGE; cell++)
      wide[cell] = (wide[cell] as number) + (cells[cell] as number);
    this.#places[from] = NOWHERE;
  }

  #raiseCounts(first: number, reported: readonly number[], whole: Float64Array): void {
    const numbers = this.#numbers;
    for (let at = 0; at < reported.length; at++) {
      const count = reported[at] as number;
      const more = count - (numbers[first + at] as number);
      if (more <= 0) continue;
      numbers[first + at] = count;
      whole[at] = (whole[at] as number) + more;
    }
  }

  /** A sender reports its keys in the same order each time: new ones come last. */
  #raiseKeyed(number: number, reported: TallyChanges["keyed"], whole: Map<number, number>): void {
    const keyed = this.#keyed[number] as number[];
    for (let i = 0; i < reported.length; i++) {
      const [key, count] = reported[i] as readonly [number, number];
      const at = keyed[2 * i] === key ? 2 * i : placeOf(keyed, key);
      const more = count - (keyed[at + 1] ?? 0);
      if (more <= 0) continue;
      keyed[at] = key;
      keyed[at + 1] = count;
      whole.set(key, (whole.get(key) ?? 0) + more);
    }
  }

  #raiseSum(at: number, reported: number): number {
    const more = Math.max(0, reported - (this.#numbers[at] as number));
    this.#numbers[at] = (this.#numbers[at] as number) + more;
    return more;
  }

  /** The counts of the changes are replaced by the differences. */
  #raiseCells(row: number, { stretch }: CellChanges): void {
    if (stretch === null) return;
    const { cells, counts } = cellsAt(stretch);
    const { to } = stretch;
    for (let at = stretch.from; at < to; ) {
      const end = endOfPage(cells, at, to);
      const page = row + pageOf(cells[at] as number);
      const held = this.#places[page] as number;
      const place = held === NOWHERE ? this.#open(page) : held;
      const raised = place > 0 ? raiseNarrow(this.#narrow, place, cells, counts, at, end) : at;
      if (raised < end) raiseWide(this.#widened(page), cells, counts, raised, end);
      at = end;
    }
  }

  #open(page: number): number {
    const place = this.#narrowUsed;
    this.#narrowUsed += CELLS_PER_PAGE;
    if (this.#narrowUsed > this.#narrow.length) {
      const pages = Math.ceil((GROWTH * this.#narrowUsed) / CELLS_PER_PAGE);
      const more = new Uint16Array(Math.max(PAGES_AT_FIRST, pages) * CELLS_PER_PAGE);
      more.set(this.#narrow);
      this.#narrow = more;
    }
    this.#places[page] = place;
    return place;
  }

  /** The page widened for any count; its space in `narrow` is not released. */
  #widened(page: number): Float64Array {
    const place = this.#places[page] as number;
    if (place < NOWHERE) return this.#wide[-place - 1] as Float64Array;
    const wide = Float64Array.from(this.#narrow.subarray(place, place + CELLS_PER_PAGE));
    this.#places[page] = -this.#wide.push(wide);
    return wide;
  }
}

function placeOf(keyed: readonly number[], key: number): number {
  for (let at = 0; at < keyed.length; at += 2) if (keyed[at] === key) return at;
  return keyed.length;
}

function grownNumbers(held: Float64Array, length: number): Float64Array {
  if (length <= held.length) return held;
  const more = new Float64Array(2 * length);
  more.set(held);
  return more;
}

function grownPlaces(held: Int32Array, length: number): Int32Array {
  if (length <= held.length) return held;
  const more = new Int32Array(2 * length);
  more.set(held);
  return more;
}
