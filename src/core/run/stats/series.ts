/**
 * Numbers over time in bounded memory.
 *
 *   past, folded to at most 600 windows of equal width         the last 12.8 s, 100 ms each
 *   ├────┼────┼────┼────┼────┼────┼────┼────┼────┤             │││││││││││││││││││││
 *
 * New numbers go into 100 ms windows; one that leaves the ring is added to the past. When the whole
 * would need more than 600 windows, neighbours of the past are folded and its windows are twice as
 * wide: 100 ms for a minute, 6.4 s for an hour. A series is at most some megabytes, whatever its
 * age; an ordinary one is some hundred kilobytes.
 */

import { CoarseCells, coarseOf } from "./coarse.ts";
import type { WindowSink } from "./step-stats.ts";

const WINDOW_MS = 100;
export const WINDOWS_MAX = 600;
const RING = 128;
/** How far back `recent` knows every window: 12.8 s. */
const RECENT_MS_MAX = RING * WINDOW_MS;

/** The shape of a series in results: parallel arrays, one entry per window, latencies in milliseconds. */
interface SeriesSummary {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  readonly requests: readonly number[];
  readonly failed: readonly number[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

interface Recent {
  readonly requests: number;
  readonly failed: number;
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
  /** Milliseconds; null when there was nothing. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

class Window {
  /** Number of the window: its start divided by its width. */
  index: number;
  requests = 0;
  failed = 0;
  readonly latency = new CoarseCells();
  #quantiles: readonly (number | null)[] | undefined;

  constructor(index: number) {
    this.index = index;
  }

  /** p50, p95, p99 in milliseconds, computed once per change. */
  get quantiles(): readonly (number | null)[] {
    this.#quantiles ??= [0.5, 0.95, 0.99].map((fraction) => this.latency.quantileMs(fraction));
    return this.#quantiles;
  }

  addRequests(requests: number, failed: number): void {
    this.requests += requests;
    this.failed += failed;
  }

  addLatency(coarseCell: number, count: number): void {
    this.latency.add(coarseCell, count);
    this.#quantiles = undefined;
  }

  addAll(other: Window): void {
    this.addRequests(other.requests, other.failed);
    this.latency.addAll(other.latency);
    this.#quantiles = undefined;
  }
}

export class Series implements WindowSink {
  /** By window number modulo its length. */
  readonly #ring: (Window | undefined)[] = new Array(RING).fill(undefined);
  /** By number, of width `#pastMs`; insertion is not in order. */
  #past = new Map<number, Window>();
  #pastMs = WINDOW_MS;
  /** Numbers of the first and last 100 ms window that holds anything. */
  #first = Number.POSITIVE_INFINITY;
  #last = -1;
  #current: Window | undefined;

  /** Where the next numbers belong: milliseconds since the run began. */
  at(ms: number): this {
    const index = Math.max(0, Math.floor(ms / WINDOW_MS));
    this.#current = index <= this.#last - RING ? this.#pastWindow(index) : this.#ringWindow(index);
    if (index < this.#first) this.#first = index;
    if (index > this.#last) this.#last = index;
    while (this.#span() > WINDOWS_MAX) this.#foldPast();
    return this;
  }

  addRequests(requests: number, failed: number): void {
    this.#current?.addRequests(requests, failed);
  }

  addLatency(cell: number, count: number): void {
    this.#current?.addLatency(coarseOf(cell), count);
  }

  clear(): void {
    this.#ring.fill(undefined);
    this.#past.clear();
    this.#pastMs = WINDOW_MS;
    this.#first = Number.POSITIVE_INFINITY;
    this.#last = -1;
    this.#current = undefined;
  }

  /**
   * The last `ms` before `nowMs` (by default the end of the newest window), in whole windows. Beyond
   * `RECENT_MS_MAX` the windows are those of the folded past, so the span is exact to one of them.
   */
  recent(ms: number, nowMs = this.endMs): Recent {
    const { sum, seconds } = this.#over(ms, nowMs);
    const [p50 = null, p95 = null, p99 = null] = sum.quantiles;
    return {
      requests: sum.requests,
      failed: sum.failed,
      ratePerSecond: sum.requests / seconds,
      failedPerSecond: sum.failed / seconds,
      p50,
      p95,
      p99,
    };
  }

  /** Latency quantile (ms) over the last `ms`; null when there was nothing. */
  recentQuantileMs(fraction: number, ms: number, nowMs = this.endMs): number | null {
    return this.#over(ms, nowMs).sum.latency.quantileMs(fraction);
  }

  /** Milliseconds since the run began at the end of the newest window. */
  get endMs(): number {
    return (this.#last + 1) * WINDOW_MS;
  }

  toSummary(): SeriesSummary {
    const merged = new Map(this.#past);
    const fold = this.#pastMs / WINDOW_MS;
    const copied = new Set<number>();
    for (const window of this.#ring) {
      if (window === undefined) continue;
      const index = Math.floor(window.index / fold);
      const held = merged.get(index);
      if (held === undefined && fold === 1) {
        merged.set(index, window);
        continue;
      }
      // Windows of the past must not change by being looked at: add the ring's to a copy.
      const target = held !== undefined && copied.has(index) ? held : copyOf(held, index);
      target.addAll(window);
      merged.set(index, target);
      copied.add(index);
    }
    return this.#columns(merged);
  }

  #columns(windows: ReadonlyMap<number, Window>): SeriesSummary {
    const fold = this.#pastMs / WINDOW_MS;
    const columns = {
      atSeconds: [] as number[],
      requests: [] as number[],
      failed: [] as number[],
      p50: [] as (number | null)[],
      p95: [] as (number | null)[],
      p99: [] as (number | null)[],
    };
    if (this.#last >= 0) {
      const last = Math.floor(this.#last / fold);
      for (let index = Math.floor(this.#first / fold); index <= last; index++) {
        const window = windows.get(index);
        const [p50 = null, p95 = null, p99 = null] = window?.quantiles ?? [];
        columns.atSeconds.push((index * this.#pastMs) / 1_000);
        columns.requests.push(window?.requests ?? 0);
        columns.failed.push(window?.failed ?? 0);
        columns.p50.push(p50);
        columns.p95.push(p95);
        columns.p99.push(p99);
      }
    }
    return { windowMs: this.#pastMs, ...columns };
  }

  #over(ms: number, nowMs: number): { readonly sum: Window; readonly seconds: number } {
    const width = ms > RECENT_MS_MAX ? this.#pastMs : WINDOW_MS;
    const firstMs = this.#last < 0 ? 0 : this.#first * WINDOW_MS;
    const from = Math.max(firstMs, Math.round((nowMs - ms) / width) * width);
    const sum = new Window(0);
    const take = (window: Window, widthMs: number): void => {
      const start = window.index * widthMs;
      if (start >= Math.floor(from / widthMs) * widthMs && start < nowMs) sum.addAll(window);
    };
    for (const window of this.#ring) if (window !== undefined) take(window, WINDOW_MS);
    if (ms > RECENT_MS_MAX) for (const window of this.#past.values()) take(window, this.#pastMs);
    return { sum, seconds: Math.max(WINDOW_MS, nowMs - from) / 1_000 };
  }

  /** Windows that the whole takes at the width of the past. */
  #span(): number {
    if (this.#last < 0) return 0;
    const fold = this.#pastMs / WINDOW_MS;
    return Math.floor(this.#last / fold) - Math.floor(this.#first / fold) + 1;
  }

  #ringWindow(index: number): Window {
    const held = this.#ring[index % RING];
    if (held?.index === index) return held;
    const fresh = new Window(index);
    this.#ring[index % RING] = fresh;
    if (held !== undefined) this.#pastWindow(held.index).addAll(held);
    return fresh;
  }

  #pastWindow(index: number): Window {
    const folded = Math.floor(index / (this.#pastMs / WINDOW_MS));
    let window = this.#past.get(folded);
    if (window === undefined) {
      window = new Window(folded);
      this.#past.set(folded, window);
    }
    return window;
  }

  #foldPast(): void {
    const folded = new Map<number, Window>();
    for (const window of this.#past.values()) {
      const index = Math.floor(window.index / 2);
      const held = folded.get(index);
      if (held === undefined) {
        window.index = index;
        folded.set(index, window);
      } else {
        held.addAll(window);
      }
      if (this.#current === window && held !== undefined) this.#current = held;
    }
    this.#past = folded;
    this.#pastMs *= 2;
  }
}

function copyOf(window: Window | undefined, index: number): Window {
  const copy = new Window(index);
  if (window !== undefined) copy.addAll(window);
  return copy;
}
