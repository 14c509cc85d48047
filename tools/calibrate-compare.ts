/**
 * How often `compare` is right, measured on synthetic runs and judged: comparisons of equal runs that raise any
 * alarm, and how often a known change is seen. `npm run calibrate:compare` runs nightly and fails when a share is
 * outside its bound. The table of docs/guide/compare.md comes from `npm run calibrate:compare -- 100 fresh`: seeds
 * the method was not adjusted on.
 */

import {
  type SyntheticOptions,
  syntheticRun,
} from "../src/core/load/results/testing/synthetic-run.ts";
import { compareRuns, METRICS } from "../src/reporters/compare/compare.ts";

const count = Number(process.argv[2] ?? 45);
const seeds = process.argv[3] ?? "";
const base: SyntheticOptions = { healthy: true, seconds: 20 };

interface Case {
  readonly name: string;
  readonly before: SyntheticOptions;
  readonly after: SyntheticOptions;
  /** Bounds of the share of comparisons with any alarm; of equal runs an upper one, of changed runs a lower one. */
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** The nominal share of false alarms is 5 %; the bounds leave room for the chance of 45 comparisons. */
const FALSE_ALARMS_MAX = 0.14;

const cases: readonly Case[] = [
  { name: "equal, steady", before: { drift: 0 }, after: { drift: 0 }, atMost: FALSE_ALARMS_MAX },
  { name: "equal, 6 % drift over 1 s", before: {}, after: {}, atMost: FALSE_ALARMS_MAX },
  {
    name: "equal, 20 % drift over 1 s",
    before: { drift: 0.2 },
    after: { drift: 0.2 },
    atMost: FALSE_ALARMS_MAX,
  },
  // Documented as the case with too many alarms: it must not get worse.
  {
    name: "equal, 6 % drift over 5 s",
    before: { memory: 0.9 },
    after: { memory: 0.9 },
    atMost: 0.35,
  },
  {
    name: "equal, each with a stall",
    before: { healthy: false },
    after: { healthy: false },
    atMost: FALSE_ALARMS_MAX,
  },
  { name: "5 % slower", before: {}, after: { slowdown: 1.05 }, atLeast: 0.5 },
  { name: "10 % slower", before: {}, after: { slowdown: 1.1 }, atLeast: 0.95 },
  {
    name: "20 % slower, errors doubled, rate -10 %",
    before: {},
    after: { slowdown: 1.2, errors: 2, rate: 0.9 },
    atLeast: 0.95,
  },
];

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** Runs one case; returns whether its share of alarms is inside the bound. */
function calibrate({ after, atLeast = 0, atMost = 1, before, name }: Case): boolean {
  let alarms = 0;
  let rows = 0;
  const seen = new Map<string, number>();
  for (let i = 0; i < count; i++) {
    const comparison = compareRuns(
      syntheticRun({ ...base, ...before, seed: `${seeds}a${i}` }),
      syntheticRun({ ...base, ...after, seed: `${seeds}b${i}` }),
      { limit: 0, errorLimit: 0, metrics: METRICS, allowUntrusted: true },
    );
    if (comparison.regressions + comparison.improvements > 0) alarms++;
    rows += comparison.rows.length / METRICS.length;
    for (const { interval, metric } of comparison.rows) {
      const excludesZero = interval !== null && (interval[0] > 0 || interval[1] < 0);
      seen.set(metric, (seen.get(metric) ?? 0) + (excludesZero ? 1 : 0));
    }
  }
  const shares = [...seen].map(([metric, times]) => `${metric} ${percent(times / rows)}`);
  const holds = alarms / count >= atLeast && alarms / count <= atMost;
  const bound = atLeast > 0 ? `at least ${percent(atLeast)}` : `at most ${percent(atMost)}`;
  process.stdout.write(
    `${holds ? "✓" : "✗"} ${name}: any alarm ${alarms}/${count} (${bound}); single rows: ${shares.join(", ")}\n`,
  );
  return holds;
}

const failed = cases.filter((one) => !calibrate(one));
process.stdout.write(
  failed.length === 0
    ? `compare is calibrated: all ${cases.length} cases inside their bounds\n`
    : `compare is not calibrated: ${failed.map(({ name }) => name).join("; ")}\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
