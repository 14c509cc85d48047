/** What is shown of a step's windows: columns over time, and the last seconds. */

import { SparseCells } from "./sparse-cells.ts";
import { WINDOW_MS, type Window, type WindowStore } from "./window-store.ts";
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
  /** By kind; kinds that never happened are left out. */
  readonly errors: Readonly<Record<string, readonly number[]>>;
}

interface Recent {
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
  /** Milliseconds; null when there was nothing. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

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
  const first = Math.floor(windows.startMs / widthMs) * widthMs;
  for (let startMs = first; startMs < endMs; startMs += widthMs) {
    const window = windows.foldedAt(startMs);
    const [p50, p95, p99] = quantilesMs(window?.latency ?? SparseCells.EMPTY);
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
  return { windowMs: widthMs, ...columns, errors: Object.fromEntries(errors) };
}

/** The last `ms` before a moment, in whole windows; less when it all began later. */
export function recentOf(windows: WindowStore<StepWindow>, ms: number, nowMs: number): Recent {
  const toMs = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  const fromMs = Math.max(0, toMs - ms);
  const within = windows.over(fromMs, toMs);
  const sum = (value: (content: StepWindow) => number): number =>
    within.reduce((all, { content }) => all + value(content), 0);
  const seconds = Math.max(WINDOW_MS, toMs - fromMs) / 1_000;
  const [p50, p95, p99] = quantilesMs(latencyOver(within));
  return {
    ratePerSecond: sum(({ calls }) => calls) / seconds,
    failedPerSecond: sum(({ failed }) => failed) / seconds,
    p50,
    p95,
    p99,
  };
}

/** Two and two, so that no cell is copied more often than the logarithm of the windows. */
function latencyOver(windows: readonly Window<StepWindow>[]): SparseCells {
  let cells = windows.map(({ content }) => content.latency);
  while (cells.length > 1) {
    const pairs: SparseCells[] = [];
    for (let at = 0; at < cells.length; at += 2)
      pairs.push(cells[at]?.plus(cells[at + 1] ?? SparseCells.EMPTY) ?? SparseCells.EMPTY);
    cells = pairs;
  }
  return cells[0] ?? SparseCells.EMPTY;
}
