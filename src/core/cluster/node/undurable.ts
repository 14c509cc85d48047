/**
 * Records handed to the log that are not durable yet. When the disk falls too far behind, clients must retry and
 * messages of peers are dropped: memory is bounded, and replication repeats what it needs. Cancels are accepted a
 * little longer than everything else. (G-12)
 */

import type { Millis } from "../../base/brand.ts";

/** Limits of undurable records, above the capacity of the log queue. */
const RECORDS_MAX = 60_000;
const BYTES_MAX = 64 * 1_048_576;
/** Recent durations from append to durable, sampled once per sync. */
const SAMPLES_MAX = 1_024;
/** Age limit of samples for the current delay. */
const FRESH_MS = 10_000;

interface Turn {
  /** Records up to the end of this turn, since the start of the process. */
  readonly count: number;
  readonly bytes: number;
  readonly at: Millis;
}

export class Undurable {
  /** One entry per turn with records, oldest first. */
  readonly #turns: Turn[] = [];
  #first = 0;
  #count = 0;
  #durable = 0;
  #bytes = 0;
  readonly #samples: { readonly tookMs: number; readonly at: Millis }[] = [];
  #sampled = 0;

  /** 99th percentile of the time from append to durable. */
  get p99Ms(): number {
    return p99Of(this.#samples.map(({ tookMs }) => tookMs));
  }

  /** Current delay of the log: recent 99th percentile, or the age of the oldest waiting record. (G-20) */
  delayMs(now: Millis): number {
    const fresh = this.#samples.filter(({ at }) => at >= now - FRESH_MS);
    const oldest = this.#turns[this.#first];
    const waitedMs = oldest === undefined ? 0 : now - oldest.at;
    return Math.max(waitedMs, p99Of(fresh.map(({ tookMs }) => tookMs)));
  }

  /** Whether more than this share of the limits is undurable. */
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

function p99Of(values: readonly number[]): number {
  // A typed array sorts without a callback; this runs twice a second.
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
}
