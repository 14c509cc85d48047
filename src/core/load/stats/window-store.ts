/**
 * Windows over time in bounded memory, on the measured time of their sender.
 *
 *   all of it, folded to at most 600 windows of equal width
 *   ├────┼────┼────┼────┼────┼────┼────┼────┼────┼────┼────┤
 *                                   the last 64 s once more, 100 ms each
 *                                   │││││││││││││││││││││││
 *
 * When the whole would need more than 600 windows, neighbours are folded and windows become twice as wide: 100 ms for a
 * minute, 6.4 s for an hour. The recent windows stay as they were, for readers of the last seconds and for frames that
 * must be repeated. (AD-23.1)
 */

import type { WindowRules } from "./windows.ts";

export const WINDOW_MS = 100;
export const WINDOWS_MAX = 600;
/** Recent windows that are kept as they were: 64 s. */
const RECENT_MAX = 640;
/** Recent windows left unfolded for parts that are behind and may still add to them. */
const UNFOLDED_MIN = 8;
/** Parts of one recent window that may wait to be summed; a read sums them earlier. */
const UNSUMMED_MAX = 16;
/** With fewer recent windows than this, dropping more gains nothing. */
const RECENT_MIN = 20;

export interface Window<Content> {
  readonly startMs: number;
  readonly widthMs: number;
  readonly content: Content;
}

export class WindowStore<Content> {
  readonly #rules: WindowRules<Content>;
  /** By number of a window of width `#foldedMs`. */
  #folded = new Map<number, Content>();
  #foldedMs = WINDOW_MS;
  /** Number of the first folded window that changed since the last query. */
  #changedFrom = Number.POSITIVE_INFINITY;
  /**
   * Recent windows from this number on are not in the folded ones yet, so that the parts of a window are summed once,
   * and those of one folded window cost one copy of it.
   */
  #unfoldedFrom = 0;
  /** Upper bound of their size when they are folded. */
  #unfoldedBytes = 0;
  /** By number of a window of width `WINDOW_MS`; none below `#recentFrom`. */
  readonly #recent = new Map<number, Content>();
  #recentFrom = 0;
  /** Unsummed contents of recent windows, in order. Each sum is a copy of all its parts. */
  readonly #unsummed = new Map<number, Content[]>();
  /** Numbers of the first and last non-empty 100 ms window. */
  #first = Number.POSITIVE_INFINITY;
  #last = -1;
  /** Size of both; shared content counts twice. */
  #bytes = 0;

  constructor(rules: WindowRules<Content>) {
    this.#rules = rules;
  }

  /** Approximate upper bound of its size in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Width of the folded windows. */
  get widthMs(): number {
    return this.#foldedMs;
  }

  /** End of the last non-empty window. */
  get endMs(): number {
    return (this.#last + 1) * WINDOW_MS;
  }

  /** Start of the first non-empty window. */
  get startMs(): number {
    return this.#last < 0 ? 0 : this.#first * WINDOW_MS;
  }

  /** Start of the first non-empty window; null when there is none. */
  get firstMs(): number | null {
    return this.#last < 0 ? null : this.#first * WINDOW_MS;
  }

  /** Adds a part's content of a stretch of time; stretches are whole windows, single or folded. */
  add({ content, startMs, widthMs }: Window<Content>): void {
    const index = Math.floor(startMs / WINDOW_MS);
    const last = index + Math.max(1, Math.round(widthMs / WINDOW_MS)) - 1;
    this.#first = Math.min(this.#first, index);
    this.#last = Math.max(this.#last, last);
    while (this.#foldedMs < widthMs || this.#span() > WINDOWS_MAX) this.#foldAll();
    const isRecent = last === index && index >= this.#recentFrom;
    if (isRecent) this.#putRecent(index, content);
    if (isRecent && index >= this.#unfoldedFrom) this.#awaitFolding(content);
    else this.#put(this.#folded, Math.floor(startMs / this.#foldedMs), content);
    if (last === index) this.#dropRecent(this.#last - RECENT_MAX + 1);
  }

  #putRecent(index: number, content: Content): void {
    if (!this.#recent.has(index)) {
      this.#put(this.#recent, index, content);
      return;
    }
    this.#bytes += this.#rules.bytes(content);
    const waiting = this.#unsummed.get(index);
    if (waiting === undefined) this.#unsummed.set(index, [content]);
    else if (waiting.push(content) >= UNSUMMED_MAX) this.#recentAt(index);
  }

  /** Summed content of a recent window. */
  #recentAt(index: number): Content | undefined {
    const waiting = this.#unsummed.get(index);
    if (waiting !== undefined) {
      this.#unsummed.delete(index);
      for (const one of waiting) this.#bytes -= this.#rules.bytes(one);
      this.#put(this.#recent, index, ...waiting);
    }
    return this.#recent.get(index);
  }

  #awaitFolding(content: Content): void {
    const bytes = this.#rules.bytes(content);
    this.#bytes += bytes;
    this.#unfoldedBytes += bytes;
    const waiting = this.#last + 1 - this.#unfoldedFrom;
    if (waiting >= 2 * Math.max(UNFOLDED_MIN, this.#foldedMs / WINDOW_MS))
      this.#settle(this.#last + 1 - UNFOLDED_MIN);
  }

  /** Folds recent windows below a number: all of them before folded ones are read. */
  #settle(below = this.#last + 1): void {
    if (this.#unfoldedFrom >= below) return;
    const fold = this.#foldedMs / WINDOW_MS;
    let index = Math.max(this.#unfoldedFrom, this.#recentFrom);
    while (index < below) {
      const key = Math.floor(index / fold);
      const contents: Content[] = [];
      for (; index < below && index < (key + 1) * fold; index++) {
        const content = this.#recentAt(index);
        if (content !== undefined) contents.push(content);
      }
      if (contents.length > 0) this.#put(this.#folded, key, ...contents);
    }
    this.#unfoldedFrom = below;
    this.#bytes -= this.#unfoldedBytes;
    this.#unfoldedBytes = 0;
    for (; index <= this.#last; index++) {
      const content = this.#recentAt(index);
      if (content !== undefined) this.#unfoldedBytes += this.#rules.bytes(content);
    }
    this.#bytes += this.#unfoldedBytes;
  }

  #put(into: Map<number, Content>, key: number, ...contents: readonly Content[]): void {
    const held = into.get(key);
    const next = this.#rules.sum(held === undefined ? contents : [held, ...contents]);
    into.set(key, next);
    if (into === this.#folded) this.#changedFrom = Math.min(this.#changedFrom, key);
    this.#bytes += this.#rules.bytes(next) - (held === undefined ? 0 : this.#rules.bytes(held));
  }

  #dropRecent(below: number): void {
    this.#settle(Math.min(below, this.#last + 1));
    for (; this.#recentFrom < below; this.#recentFrom++) {
      const held = this.#recentAt(this.#recentFrom);
      if (held !== undefined) this.#bytes -= this.#rules.bytes(held);
      this.#recent.delete(this.#recentFrom);
    }
  }

  /** Releases memory: half of the recent windows, or wider folded ones; false when nothing is left to release. */
  shrink(): boolean {
    const recent = this.#last - this.#recentFrom + 1;
    if (recent > RECENT_MIN) {
      this.#dropRecent(this.#recentFrom + Math.ceil(recent / 2));
      return true;
    }
    this.#settle();
    if (this.#folded.size < 2) return false;
    this.#foldAll();
    return true;
  }

  /** Windows from a time on, in order: recent ones as they were, earlier ones folded. */
  list(fromMs = 0): Window<Content>[] {
    const found: Window<Content>[] = [];
    const recentMs = this.#recentFrom * WINDOW_MS;
    // Where folded and recent windows meet, no folded one may reach into the recent ones.
    const cutMs =
      fromMs >= recentMs ? recentMs : Math.ceil(recentMs / this.#foldedMs) * this.#foldedMs;
    if (fromMs < recentMs) {
      for (const window of this.folded())
        if (window.startMs >= fromMs && window.startMs < cutMs) found.push(window);
    }
    const first = Math.ceil(Math.max(fromMs, cutMs) / WINDOW_MS);
    for (let index = first; index <= this.#last; index++) {
      const content = this.#recentAt(index);
      if (content !== undefined)
        found.push({ startMs: index * WINDOW_MS, widthMs: WINDOW_MS, content });
    }
    return found;
  }

  /** The whole time in windows of `widthMs`, in order; empty windows are left out. */
  folded(): Window<Content>[] {
    this.#settle();
    return [...this.#folded]
      .sort(([a], [b]) => a - b)
      .map(([index, content]) => ({
        startMs: index * this.#foldedMs,
        widthMs: this.#foldedMs,
        content,
      }));
  }

  /** Start of the first folded window that changed since the last call; infinite when none did. Supports one caller. */
  takeChangedFromMs(): number {
    this.#settle();
    const changedFromMs = this.#changedFrom * this.#foldedMs;
    this.#changedFrom = Number.POSITIVE_INFINITY;
    return changedFromMs;
  }

  /** The folded window that begins at a time. */
  foldedAt(startMs: number): Content | undefined {
    this.#settle();
    return this.#folded.get(Math.round(startMs / this.#foldedMs));
  }

  /** Windows in a stretch of time: 100 ms each where they are still known, else folded. */
  over(fromMs: number, toMs: number): Window<Content>[] {
    return this.list(fromMs).filter(({ startMs, widthMs }) => startMs + widthMs <= toMs);
  }

  /** Number of windows of the whole at the width of the folded ones. */
  #span(): number {
    if (this.#last < 0) return 0;
    const fold = this.#foldedMs / WINDOW_MS;
    return Math.floor(this.#last / fold) - Math.floor(this.#first / fold) + 1;
  }

  #foldAll(): void {
    this.#settle();
    const before = this.#folded;
    this.#folded = new Map();
    for (const content of before.values()) this.#bytes -= this.#rules.bytes(content);
    for (const [index, content] of [...before].sort(([a], [b]) => a - b))
      this.#put(this.#folded, Math.floor(index / 2), content);
    this.#foldedMs *= 2;
  }
}
