/** Lines that several charts share. */

import { formatMs, formatRate } from "../../src/core/load/results/format.ts";
import type { Distribution, PhaseMeans } from "../../src/core/load/results/model.ts";
import type { Percentile } from "../../src/core/load/stats/steady-percentiles.ts";
import type { Timeline } from "../../src/reporters/file/timeline.ts";
import type { Line } from "../shared/plot.ts";
import {
  PERCENTILES,
  percentileLine,
  type Range,
  stretchOf,
  type Track,
} from "../shared/tracks.ts";
import { middles, type RunView, valuesAt, windowsText } from "./run-view.ts";

/** Lines of different colour; the next ones are dashed, then dotted. */
const COLORS = 6;
const DASHES: readonly (readonly number[] | undefined)[] = [undefined, [6, 3], [2, 3]];

export function lineStyle(index: number): Pick<Line, "color"> & { dash?: readonly number[] } {
  const dash = DASHES[Math.floor(index / COLORS) % DASHES.length];
  return { color: `--line-${index % COLORS}`, ...(dash === undefined ? {} : { dash }) };
}

export function rateLines(timeline: Timeline, perSecond: number, failedPerSecond: number): Line[] {
  return [
    {
      label: "requests",
      values: timeline.ratePerSecond,
      color: "--rate",
      filled: true,
      rest: formatRate(perSecond),
    },
    {
      label: "failed",
      values: timeline.failedPerSecond,
      color: "--fail",
      filled: true,
      rest: formatRate(failedPerSecond),
    },
  ];
}

const LOOKS: Readonly<Record<Percentile, Partial<Line>>> = {
  p50: { width: 2 },
  p95: {},
  // Dashed and on top: with few values p95 and p99 are the same.
  p99: { dash: [5, 3] },
};

/** p50, p95 and p99 of a track, each where there are enough values. */
export function percentileLines(track: Track, whole: Distribution): Line[] {
  return PERCENTILES.map((percentile) => ({
    label: percentile,
    values: percentileLine(track, percentile),
    color: `--${percentile}`,
    rest: whole.count === 0 ? "–" : formatMs(whole[percentile]),
    ...LOOKS[percentile],
  }));
}

/** Legend texts of percentiles for a selected stretch, from its calls. */
export function stretchTexts(
  range: Range | null,
  tracks: readonly (readonly [label: string, track: Track, percentile: Percentile])[],
): ReadonlyMap<string, string> | undefined {
  if (range === null) return undefined;
  return new Map(
    tracks.map(([label, track, percentile]) => {
      const { all } = stretchOf(track, range);
      return [label, all.count === 0 ? "–" : formatMs(all[percentile])];
    }),
  );
}

/** The labels of `percentileLines`, and of a baseline's line. */
export function percentileTexts(
  range: Range | null,
  track: Track,
  baseline: Track | null = null,
): ReadonlyMap<string, string> | undefined {
  return stretchTexts(range, [
    ...PERCENTILES.map((percentile) => [percentile, track, percentile] as const),
    ...(baseline === null ? [] : [["baseline p95", baseline, "p95"] as const]),
  ]);
}

/** The baseline run, aligned by the time since each began. */
export function baselineLine(
  moments: readonly number[],
  baseline: Track,
  whole: Distribution,
): Line {
  const values = valuesAt(moments, baseline, percentileLine(baseline, "p95"));
  const rest = formatMs(whole.p95);
  return { label: "baseline p95", values, color: "--baseline", dash: [2, 3], rest };
}

export function baselineRate(moments: readonly number[], { timeline }: RunView): Line {
  const grid = { starts: timeline.atSeconds, windowSeconds: timeline.windowMs / 1_000 };
  const values = valuesAt(moments, grid, timeline.ratePerSecond);
  return { label: "baseline requests", values, color: "--baseline", dash: [2, 3] };
}

/** Note on the windows of a percentile. */
export function percentileNote({ windowSeconds }: Track): string {
  return `${windowsText(windowSeconds)} and wider`;
}

const PHASES = [
  ["connect", "connectMs", 4],
  ["TLS", "tlsMs", 3],
  ["first byte", "waitingMs", 0],
  ["body", "bodyMs", 2],
] as const satisfies readonly (readonly [string, keyof PhaseMeans, number])[];

/** Mean times of answered calls by phase; phases that took no time are left out. */
export function phaseLines(phases: PhaseMeans): Line[] {
  return PHASES.map(([label, key, color]) => ({
    label,
    values: phases[key],
    color: `--line-${color}`,
  })).filter(({ values }) => values.some((value) => value !== null && value > 0));
}

export function trackMiddles({ starts, windowSeconds }: Track): number[] {
  return middles(starts, windowSeconds);
}
