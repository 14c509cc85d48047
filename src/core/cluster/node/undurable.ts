/**
 * What was handed to the log and is not safe yet. When the disk falls this far behind, clients are told to
 * retry and peers are not heard: memory is bounded, and replication repeats what it needs. Cancels are taken
 * a little longer than all else. (G-12)
 */

import type { Millis } from "../../base/brand.ts";

/** More than the log's own queue holds. */
const RECORDS_MAX = 60_000;
const BYTES_MAX = 64 * 1_048_576;
/** Latest times from a record's way to the log until it was durable, sampled once per sync. */
const SAMPLES_MAX = 1_024;
/** Syncs before that say nothing of the disk as it is now. */
const FRESH_MS = 10_000;

interface Turn {
  /** Records up to the end of this turn, since the start of the process. */
  readonly count: number;
  readonly bytes: number;
  readonly at: Millis;
}

export class Undurable {
  /** One entry per turn with records, the oldest first. */
  readonly #turns: Turn[] = [];
  #first = 0;
  #count = 0;
  #durable = 0;
  #bytes = 0;
  readonly #samples: { readonly tookMs: number; readonly at: Millis }[] = [];
  #sampled = 0;

  /** From the way to the log until durable, the slowest of a hundred. */
  get p99Ms(): number {
    return slowestOfHundred(this.#samples.map(({ tookMs }) => tookMs));
  }

  /** How long the log takes now: the slowest of a hundred of late, or what waits for it already. (G-20) */
  delayMs(now: Millis): number {
    const fresh = this.#samples.filter(({ at }) => at >= now - FRESH_MS);
    const oldest = this.#turns[this.#first];
    const waitedMs = oldest === undefined ? 0 : now - oldest.at;
    return Math.max(waitedMs, slowestOfHundred(fresh.map(({ tookMs }) => tookMs)));
  }

  /** More than this share of what may ever be undurable. */
  exceeds(share: number): boolean {
    const records = this.#count - this.#durable;
    return records > RECORDS_MAX * share || this.#bytes > BYTES_MAX * share;
  }

  onAppended(records: number, bytes: number, at: Millis): void {
    this.#count += records;
    this.#bytes += bytes;
    this.#turns.push({ count: this.#count, bytes, at });
  }

  onDurable(count: number, now: Millis): void {
    this.#durable = Math.max(this.#durable, count);
    const oldest = this.#turns[this.#first];
    if (oldest !== undefined && oldest.count <= count) {
      this.#samples[this.#sampled++ % SAMPLES_MAX] = { tookMs: now - oldest.at, at: now };
    }
    for (;;) {
      const turn = this.#turns[this.#first];
      if (turn === undefined || turn.count > count) break;
      this.#bytes -= turn.bytes;
      this.#first++;
    }
    if (this.#first < 1_024 && this.#first < this.#turns.length) return;
    this.#turns.splice(0, this.#first);
    this.#first = 0;
  }
}

function slowestOfHundred(values: readonly number[]): number {
  // Of plain numbers: twice a second, and without a call for each comparison.
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
}
