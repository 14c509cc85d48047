/**
 * How often `compare` is right, measured on synthetic runs: comparisons of equal runs that raise any
 * alarm (should be about 5 %), and how often a known change is seen. The table of docs/guide/compare.md
 * comes from `npx tsx tools/calibrate-compare.ts 100 fresh`: seeds the method was not adjusted on.
 */

import {
  type SyntheticOptions,
  syntheticRun,
} from "../src/core/run/results/testing/synthetic-run.ts";
import { compareRuns, METRICS } from "../src/reporters/compare/compare.ts";

const count = Number(process.argv[2] ?? 40);
const seeds = process.argv[3] ?? "";
const base: SyntheticOptions = { healthy: true, seconds: 20 };
const cases: readonly (readonly [string, SyntheticOptions, SyntheticOptions])[] = [
  ["equal, steady", { drift: 0 }, { drift: 0 }],
  ["equal, 6 % drift over 1 s", {}, {}],
  ["equal, 20 % drift over 1 s", { drift: 0.2 }, { drift: 0.2 }],
  ["equal, 6 % drift over 5 s", { memory: 0.9 }, { memory: 0.9 }],
  ["equal, each with a stall", { healthy: false }, { healthy: false }],
  ["10 % slower", {}, { slowdown: 1.1 }],
  ["20 % slower, errors doubled, rate -10 %", {}, { slowdown: 1.2, errors: 2, rate: 0.9 }],
];

for (const [name, before, after] of cases) {
  let alarms = 0;
  const seen = new Map<string, number>();
  for (let i = 0; i < count; i++) {
    const comparison = compareRuns(
      syntheticRun({ ...base, ...before, seed: `${seeds}a${i}` }),
      syntheticRun({ ...base, ...after, seed: `${seeds}b${i}` }),
      { limit: 0, errorLimit: 0, metrics: METRICS },
    );
    if (comparison.regressions + comparison.improvements > 0) alarms++;
    for (const { metric, interval } of comparison.rows) {
      const excludesZero = interval !== null && (interval[0] > 0 || interval[1] < 0);
      seen.set(metric, (seen.get(metric) ?? 0) + (excludesZero ? 1 : 0));
    }
  }
  const rows = count * 7;
  const shares = [...seen].map(
    ([metric, times]) => `${metric} ${((times / rows) * 100).toFixed(1)} %`,
  );
  process.stdout.write(
    `${name}: any alarm ${alarms}/${count}; single rows: ${shares.join(", ")}\n`,
  );
}
