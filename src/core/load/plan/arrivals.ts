/**
 * Times at which an open model starts iterations.
 *
 * Let N(t) be the area under the rate. Arrival j (from 0) happens at the first time after which N exceeds j; a rate of
 * zero therefore has no arrivals, and a constant rate begins at time 0. There are as many arrivals as the area of the
 * whole plan (rounded up).
 *
 * Independent visitors come at random times. Then arrival j happens when N passes the sum of j + 1 draws from the
 * exponential distribution of mean 1: a Poisson process of exactly that rate, ramps included. Every core draws the same
 * sequence and keeps its own part.
 */

import { assert } from "../../base/assert.ts";
import { Random } from "../../base/random.ts";
import type { Share, Stage } from "./load.ts";
import { PoissonPositions } from "./poisson.ts";

/** A stretch of the plan with its rate per millisecond at both ends. */
interface Segment {
  readonly startMs: number;
  readonly lengthMs: number;
  readonly first: number;
  readonly last: number;
  /** N at the start and at the end. */
  readonly before: number;
  readonly after: number;
}

/** Tolerance for rounding in sums of products of doubles, far below one arrival. */
const AREA_SLACK = 1e-6;

export class ArrivalClock {
  readonly #index: number;
  readonly #count: number;
  #segments: Segment[];
  /** N of the next arrival: its number in the schedule of all cores, or a random position. */
  #next: number;
  readonly #random: PoissonPositions | null;
  /** First segment that may contain the next arrival. */
  #cursor = 0;
  #nextMs: number | null;

  /** `seed` makes the times random; null: evenly spaced. */
  constructor(stages: readonly Stage[], share: Share, seed: string | null = null) {
    assert(share.index >= 0 && share.index < share.count, "a core is one of its count");
    this.#index = share.index;
    this.#count = share.count;
    this.#segments = segmentsOf(stages);
    this.#random = seed === null ? null : new PoissonPositions(new Random(seed), share);
    this.#next = this.#random === null ? this.#index : this.#random.first();
    this.#nextMs = this.#find();
  }

  /** Plan time (ms) of the next arrival of this core, or null when none is left. */
  peek(): number | null {
    return this.#nextMs;
  }

  /** Consumes the next arrival. */
  advance(): void {
    this.#next = this.#random === null ? this.#next + this.#count : this.#random.advance();
    this.#nextMs = this.#find();
  }

  /** Drops arrivals that were due before plan time `atMs`. */
  skipTo(atMs: number): void {
    if (this.#nextMs === null || this.#nextMs >= atMs) return;
    if (this.#random === null) {
      // Jumps to the last one that is certainly due by then, and continues one by one.
      const reached = areaAt(this.#segments, atMs) - 1;
      const turns = Math.floor((reached - this.#next) / this.#count);
      this.#next += Math.max(0, turns) * this.#count;
    }
    this.#nextMs = this.#find();
    while (this.#nextMs !== null && this.#nextMs < atMs) this.advance();
  }

  /** Multiplies the rate from plan time `atMs` on; what was due before stays due. */
  scale(factor: number, atMs: number): void {
    assert(factor > 0 && Number.isFinite(factor), "a rate is scaled by a positive factor");
    const scaled: Segment[] = [];
    let area = 0;
    const push = (startMs: number, lengthMs: number, first: number, last: number): void => {
      if (lengthMs <= 0) return;
      const after = area + ((first + last) / 2) * lengthMs;
      scaled.push({ startMs, lengthMs, first, last, before: area, after });
      area = after;
    };
    for (const { startMs, lengthMs, first, last } of this.#segments) {
      const kept = Math.min(Math.max(atMs - startMs, 0), lengthMs);
      const middle = first + ((last - first) * kept) / lengthMs;
      push(startMs, kept, first, middle);
      push(startMs + kept, lengthMs - kept, middle * factor, last * factor);
    }
    this.#segments = scaled;
    this.#cursor = 0;
    this.#nextMs = this.#find();
  }

  /** Arrivals of this core due up to `atMs` that were not advanced over. */
  overdue(atMs: number): number {
    if (this.#nextMs === null || this.#nextMs > atMs) return 0;
    if (this.#random !== null) return this.#random.upTo(areaAt(this.#segments, atMs));
    const reached = Math.floor(areaAt(this.#segments, atMs) + AREA_SLACK);
    let last = reached - ((((reached - this.#index) % this.#count) + this.#count) % this.#count);
    // Where the rate is zero, or at the very end, the arrival of that number comes later or never.
    while (last > this.#next && !this.#isDue(last, atMs)) last -= this.#count;
    return Math.max(1, (last - this.#next) / this.#count + 1);
  }

  #isDue(arrival: number, atMs: number): boolean {
    const segment = this.#segments.find(({ after }) => after > arrival + AREA_SLACK);
    return segment !== undefined && timeIn(segment, arrival) <= atMs;
  }

  #find(): number | null {
    const segments = this.#segments;
    for (;;) {
      const segment = segments[this.#cursor];
      if (segment === undefined) return null;
      if (segment.after > this.#next + AREA_SLACK) return timeIn(segment, this.#next);
      this.#cursor++;
    }
  }
}

function segmentsOf(stages: readonly Stage[]): Segment[] {
  const segments: Segment[] = [];
  let startMs = 0;
  let before = 0;
  for (const { durationMs, from, to } of stages) {
    assert(
      durationMs >= 0 && from >= 0 && to >= 0,
      "a stage has a length and rates of zero or more",
    );
    if (durationMs === 0) continue;
    const after = before + ((from + to) / 2) * (durationMs / 1_000);
    const [first, last] = [from / 1_000, to / 1_000];
    segments.push({ startMs, lengthMs: durationMs, first, last, before, after });
    startMs += durationMs;
    before = after;
  }
  return segments;
}

/** first·t + slope·t²/2 = due, in the form that loses no digits when the slope or the start is zero. */
function timeIn(segment: Segment, arrival: number): number {
  const due = Math.max(0, arrival - segment.before);
  if (due === 0) return segment.startMs;
  const slope = (segment.last - segment.first) / segment.lengthMs;
  const root = Math.sqrt(Math.max(0, segment.first * segment.first + 2 * slope * due));
  return segment.startMs + Math.min(segment.lengthMs, (2 * due) / (segment.first + root));
}

function areaAt(segments: readonly Segment[], atMs: number): number {
  let area = 0;
  for (const { startMs, lengthMs, first, last, before } of segments) {
    if (atMs < startMs) break;
    const inside = Math.min(atMs - startMs, lengthMs);
    area = before + first * inside + ((last - first) / lengthMs) * (inside * inside) * 0.5;
  }
  return area;
}
