/** Series of a step from its windows: columns over time, and the last seconds. */

import { SparseCells } from "./sparse-cells.ts";
import { SteadyLine } from "./steady-percentiles.ts";
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

/** Placeholder where no series is read. */
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

const SERIES_FRACTIONS = [0.5, 0.95, 0.99] as const;

function quantilesMs([p50, p95, p99]: readonly number[]): Quantiles {
  const ms = (micros: number | undefined): number | null =>
    micros === undefined ? null : micros / 1_000;
  return [ms(p50), ms(p95), ms(p99)];
}

/** There are no gaps between windows here: empty ones are in the list. */
const ALWAYS = (): boolean => true;

/**
 * Columns of a series, updated incrementally from the windows of a step: only entries at or after a change are
 * recomputed.
 */
class SeriesColumns {
  readonly #windows: (StepWindow | undefined)[] = [];
  readonly #cells: SparseCells[] = [];
  readonly #requests: number[] = [];
  readonly #failed: number[] = [];
  readonly #percentiles = new PercentileColumns();
  /** Failures by kind, of kinds that happened. */
  readonly #kinds = new Map<number, number[]>();
  #widthMs = 0;
  #firstMs = 0;

  update(store: WindowStore<StepWindow>): void {
    const { endMs, widthMs } = store;
    const firstMs = Math.floor(store.startMs / widthMs) * widthMs;
    const unchanged = (store.takeChangedFromMs() - firstMs) / widthMs;
    const settled = widthMs === this.#widthMs && firstMs === this.#firstMs;
    let at = settled ? Math.min(this.#windows.length, unchanged) : 0;
    [this.#widthMs, this.#firstMs] = [widthMs, firstMs];
    this.#cut(at);
    for (; firstMs + at * widthMs < endMs; at++) this.#push(this.#at(store, at));
  }

  #at(store: WindowStore<StepWindow>, at: number): StepWindow | undefined {
    return store.foldedAt(this.#firstMs + at * this.#widthMs);
  }

  #cut(length: number): void {
    const columns = [this.#windows, this.#cells, this.#requests, this.#failed];
    for (const column of [...columns, ...this.#kinds.values()]) column.length = length;
  }

  #push(window: StepWindow | undefined): void {
    const before = this.#windows.length;
    this.#windows.push(window);
    this.#cells.push(window?.latency ?? SparseCells.EMPTY);
    this.#requests.push(window?.calls ?? 0);
    this.#failed.push(window?.failed ?? 0);
    for (const [kind, count] of (window?.kinds ?? []).entries())
      if (count > 0 && !this.#kinds.has(kind))
        this.#kinds.set(kind, new Array<number>(before).fill(0));
    for (const [kind, counts] of this.#kinds) counts.push(window?.kinds[kind] ?? 0);
  }

  summary(secondsAt: (ms: number) => number, errorKinds: readonly string[]): SeriesSummary {
    const errors = errorKinds
      .map((name, kind) => [name, this.#kinds.get(kind)?.slice() ?? []] as const)
      .filter(([, counts]) => counts.some((count) => count > 0));
    const cells = this.#cells.slice();
    let made: Percentiles | undefined;
    const percentiles = (): Percentiles => {
      made ??= this.#percentiles.of(cells);
      return made;
    };
    return {
      windowMs: this.#widthMs,
      atSeconds: momentsOf(secondsAt, this.#firstMs, this.#widthMs, this.#windows.length),
      requests: this.#requests.slice(),
      failed: this.#failed.slice(),
      get p50() {
        return percentiles().p50;
      },
      get p95() {
        return percentiles().p95;
      },
      get p99() {
        return percentiles().p99;
      },
      get steady() {
        return percentiles().steady;
      },
      errors: Object.fromEntries(errors),
    };
  }
}

type Percentiles = Pick<SeriesSummary, "p50" | "p95" | "p99" | "steady">;

/** Percentiles computed on read: a screen shows those of the steps that fit on it. Computed values are kept. */
class PercentileColumns {
  /** Cells that the percentiles were computed from. */
  #cells: readonly SparseCells[] = [];
  readonly #p50: (number | null)[] = [];
  readonly #p95: (number | null)[] = [];
  readonly #p99: (number | null)[] = [];
  readonly #steady = { p95: new SteadyLine("p95"), p99: new SteadyLine("p99") };

  of(cells: readonly SparseCells[]): Percentiles {
    const changed = cells.findIndex((one, at) => one !== this.#cells[at]);
    const from = changed < 0 ? cells.length : changed;
    for (const column of [this.#p50, this.#p95, this.#p99]) column.length = from;
    for (let at = from; at < cells.length; at++) {
      const [p50, p95, p99] = quantilesMs(cells[at]?.quantiles(SERIES_FRACTIONS) ?? []);
      this.#p50.push(p50);
      this.#p95.push(p95);
      this.#p99.push(p99);
    }
    for (const line of Object.values(this.#steady)) line.update(cells, from, ALWAYS);
    this.#cells = cells;
    return {
      p50: this.#p50.slice(),
      p95: this.#p95.slice(),
      p99: this.#p99.slice(),
      steady: { p95: this.#steady.p95.values, p99: this.#steady.p99.values },
    };
  }
}

interface Moments {
  readonly firstMs: number;
  readonly widthMs: number;
  readonly list: readonly number[];
}

/** Times of the previous step in the same summary: steps of one workflow mostly share them. */
const lastMoments = new WeakMap<(ms: number) => number, Moments>();

/** Positions of windows in the run. */
function momentsOf(
  secondsAt: (ms: number) => number,
  firstMs: number,
  widthMs: number,
  length: number,
): readonly number[] {
  const last = lastMoments.get(secondsAt);
  const isSame = last?.firstMs === firstMs && last.widthMs === widthMs;
  if (isSame && last.list.length === length) return last.list;
  const list = Array.from({ length }, (_, at) => secondsAt(firstMs + at * widthMs));
  lastMoments.set(secondsAt, { firstMs, widthMs, list });
  return list;
}

/** Columns of the steps that were read. */
const columnsOf = new WeakMap<WindowStore<StepWindow>, SeriesColumns>();

/** The whole time, including windows without calls; `secondsAt` maps it to the run. */
export function summariseSeries(
  windows: WindowStore<StepWindow>,
  secondsAt: (ms: number) => number,
  errorKinds: readonly string[],
): SeriesSummary {
  const columns = columnsOf.get(windows) ?? new SeriesColumns();
  columnsOf.set(windows, columns);
  columns.update(windows);
  return columns.summary(secondsAt, errorKinds);
}

/** Rates of the last `ms` before a time, in whole windows; less when the measurement began later. */
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
  return quantilesMs(SparseCells.quantilesOfSum(cells, SERIES_FRACTIONS));
}

function recent(ms: number, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const toMs = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  return { fromMs: Math.max(0, toMs - ms), toMs };
}
