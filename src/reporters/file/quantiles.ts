/**
 * Reading distributions back from a summary: the histogram of a step (two significant digits) as a
 * cumulative curve, and several of them as one.
 */

import type { HistogramSummary } from "../../core/load/results/model.ts";

/** Two significant digits: no bucket is wider than a tenth of its upper edge. */
const BUCKET_WIDTH_MAX = 0.1;

export interface Bucket {
  readonly fromMs: number;
  readonly upToMs: number;
  readonly count: number;
}

/** Non-empty buckets with both edges. Gaps between buckets are not part of any of them. */
export function bucketsOf(histogram: HistogramSummary): Bucket[] {
  const buckets: Bucket[] = [];
  let previous = 0;
  histogram.upToMs.forEach((upToMs, index) => {
    const count = histogram.count[index] ?? 0;
    const fromMs = Math.max(previous, upToMs * (1 - BUCKET_WIDTH_MAX));
    if (count > 0) buckets.push({ fromMs: Math.min(fromMs, upToMs), upToMs, count });
    previous = upToMs;
  });
  return buckets;
}

/** Several histograms as one; exact where their buckets agree, as those of one run do. */
export function mergeHistograms(histograms: readonly HistogramSummary[]): HistogramSummary {
  const counts = new Map<number, number>();
  for (const { upToMs, count } of histograms) {
    upToMs.forEach((edge, index) => {
      counts.set(edge, (counts.get(edge) ?? 0) + (count[index] ?? 0));
    });
  }
  const edges = [...counts.keys()].sort((a, b) => a - b);
  return { upToMs: edges, count: edges.map((edge) => counts.get(edge) ?? 0) };
}

/** Returns the value below which `fraction` of all lie, interpolated inside its bucket; 0 when empty. */
export function quantileOf(buckets: readonly Bucket[], fraction: number): number {
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  const rank = Math.min(Math.max(fraction, 0), 1) * total;
  let seen = 0;
  for (const { fromMs, upToMs, count } of buckets) {
    if (seen + count >= rank) return fromMs + ((upToMs - fromMs) * (rank - seen)) / count;
    seen += count;
  }
  return buckets.at(-1)?.upToMs ?? 0;
}

/** Inverse of `quantileOf`: the share of all values that lie at or below `ms`. */
export function shareAt(buckets: readonly Bucket[], ms: number): number {
  let below = 0;
  let total = 0;
  for (const { fromMs, upToMs, count } of buckets) {
    total += count;
    if (ms >= upToMs) below += count;
    else if (ms > fromMs) below += (count * (ms - fromMs)) / (upToMs - fromMs);
  }
  return total === 0 ? 0 : below / total;
}
