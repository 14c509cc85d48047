/** The result of a load test in a few lines, for lists: the queue's page and its commands. */

import { doubtOf } from "./doubt.ts";
import { formatCount, formatMs, formatPercent, formatRate, formatSeconds } from "./format.ts";
import type { RunSummary } from "./model.ts";

interface RunDigest {
  readonly verdict: "passed" | "failed";
  /** Why the metrics are untrusted; null when they are trusted. */
  readonly doubt: string | null;
  readonly reasons: readonly string[];
  /** Name and text of each metric, as shown. */
  readonly figures: readonly (readonly [name: string, text: string])[];
}

/** Digest of a load test's result; null for any other value. */
export function digestOf(result: unknown): RunDigest | null {
  const { verdict, summary } = Object(result) as Readonly<Record<string, unknown>>;
  if (verdict !== "passed" && verdict !== "failed") return null;
  if (typeof summary !== "object" || summary === null) return null;
  // Parts of a large summary may be missing.
  const known = summary as Partial<RunSummary>;
  const { generator, lost, cluster, trust } = known;
  const doubt =
    generator === undefined || lost === undefined
      ? null
      : doubtOf({ generator, lost, cluster, trust });
  return { verdict, doubt, reasons: known.reasons ?? [], figures: figuresOf(known) };
}

/** "passed", "passed, not to be trusted". */
export function verdictText({ verdict, doubt }: RunDigest): string {
  return doubt === null ? verdict : `${verdict}, not to be trusted`;
}

function figuresOf({
  durationSeconds,
  headline,
  totals,
}: Partial<RunSummary>): RunDigest["figures"] {
  const known: (readonly [string, string])[] = [];
  if (headline !== undefined) known.push(["result", headline]);
  if (durationSeconds !== undefined) known.push(["duration", formatSeconds(durationSeconds)]);
  if (totals === undefined) return known;
  const { failed, latencyMs, ratePerSecond, requests } = totals;
  const share = requests === 0 ? "" : ` (${formatPercent(failed / requests)})`;
  const { p50, p95, p99, max } = latencyMs;
  return [
    ...known,
    ["requests", `${formatCount(requests)} (${formatRate(ratePerSecond)})`],
    ["failed", failed === 0 ? "none" : `${formatCount(failed)}${share}`],
    [
      "latency",
      `p50 ${formatMs(p50)}, p95 ${formatMs(p95)}, p99 ${formatMs(p99)}, max ${formatMs(max)}`,
    ],
  ];
}
