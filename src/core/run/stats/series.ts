/** What is shown of a step's windows: columns over time, and the last seconds. */

import { SparseCells } from "./sparse-cells.ts";
import { steadyPercentile } from "./steady-percentiles.ts";
import { WINDOW_MS, type WindowStore } from "./window-store.ts";
import type { StepWindow } from "./windows.ts";

/** The shape of a series in results: parallel arrays, one entry per window, latencies in milliseconds. */
interface SeriesSummary {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  readonly requests: readonly number[];
  readonly failed: readonly number[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
  /** p95 and p99 of enough values each, over wider stretches where calls are few: for charts. */
  readonly steady: {
    readonly p95: readonly (number | null)[];
    readonly p99: readonly (number | null)[];
  };
  /** By kind; kinds that never happened are left out. */
  readonly errors: Readonly<Record<string, readonly number[]>>;
}

/** Nobody looks at it. */
export const NO_SERIES: SeriesSummary = {
  ...{ windowMs: WINDOW_MS, atSeconds: [], requests: [], failed: [], p50: [], p95: [], p99: [] },
  ...{ steady: { p95: [], p99: [] }, errors: {} },
};

interface RecentRates {
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
}

/** In milliseconds; null where there was nothing. */
type Quantiles = readonly [p50: number | null, p95: number | null, p99: number | null];

/** Of windows that did not change since they were last looked at. */
const known = new WeakMap<SparseCells, Quantiles>();

function quantilesMs(cells: SparseCells): Quantiles {
  let found = known.get(cells);
  if (found === undefined) {
    const ms = (fraction: number): number | null => {
      const micros = cells.quantile(fraction);
      return micros === null ? null : micros / 1_000;
    };
    found = [ms(0.5), ms(0.95), ms(0.99)];
    known.set(cells, found);
  }
  return found;
}

/** All of the time, windows without calls included; `secondsAt` says where a moment of it lies. */
export function summariseSeries(
  windows: WindowStore<StepWindow>,
  secondsAt: (ms: number) => number,
  errorKinds: readonly string[],
): SeriesSummary {
  const { endMs, widthMs } = windows;
  const columns = {
    atSeconds: [] as number[],
    requests: [] as number[],
    failed: [] as number[],
    p50: [] as (number | null)[],
    p95: [] as (number | null)[],
    p99: [] as (number | null)[],
  };
  const kinds: number[][] = errorKinds.map(() => []);
  const cells: SparseCells[] = [];
  const first = Math.floor(windows.startMs / widthMs) * widthMs;
  for (let startMs = first; startMs < endMs; startMs += widthMs) {
    const window = windows.foldedAt(startMs);
    const latency = window?.latency ?? SparseCells.EMPTY;
    cells.push(latency);
    const [p50, p95, p99] = quantilesMs(latency);
    columns.atSeconds.push(secondsAt(startMs));
    columns.requests.push(window?.calls ?? 0);
    columns.failed.push(window?.failed ?? 0);
    columns.p50.push(p50);
    columns.p95.push(p95);
    columns.p99.push(p99);
    for (const [kind, counts] of kinds.entries()) counts.push(window?.kinds[kind] ?? 0);
  }
  const errors = errorKinds
    .map((name, kind) => [name, kinds[kind] ?? []] as const)
    .filter(([, counts]) => counts.some((count) => count > 0));
  // No two windows have a gap between them here: empty ones are in the list.
  const steady = (percentile: "p95" | "p99") => steadyPercentile(cells, percentile, () => true);
  return {
    windowMs: widthMs,
    ...columns,
    steady: { p95: steady("p95"), p99: steady("p99") },
    errors: Object.fromEntries(errors),
  };
}

/** Of the last `ms` before a moment, in whole windows; less when it all began later. */
export function recentRates(
  windows: WindowStore<StepWindow>,
  ms: number,
  nowMs: number,
): RecentRates {
  const { fromMs, toMs } = recent(ms, nowMs);
  const within = windows.over(fromMs, toMs);
  const sum = (value: (content: StepWindow) => number): number =>
    within.reduce((all, { content }) => all + value(content), 0);
  const seconds = Math.max(WINDOW_MS, toMs - fromMs) / 1_000;
  return {
    ratePerSecond: sum(({ calls }) => calls) / seconds,
    failedPerSecond: sum(({ failed }) => failed) / seconds,
  };
}

/** Latency in the same stretch. */
export function recentLatency(
  windows: WindowStore<StepWindow>,
  ms: number,
  nowMs: number,
): Quantiles {
  const { fromMs, toMs } = recent(ms, nowMs);
  const cells = windows.over(fromMs, toMs).map(({ content }) => content.latency);
  return quantilesMs(SparseCells.sum(cells));
}

function recent(ms: number, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const toMs = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  return { fromMs: Math.max(0, toMs - ms), toMs };
}
