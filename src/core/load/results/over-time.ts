/** Results over time: windows of latencies, the load, cores, stalls. */

import { cellHigh, type Histogram } from "../stats/histogram.ts";
import type { SparseCells } from "../stats/sparse-cells.ts";
import type { Window, WindowStore } from "../stats/window-store.ts";
import { type LoadWindow, STEP_RULES, type StepWindow, windowCells } from "../stats/windows.ts";
import { formatMs } from "./format.ts";
import type {
  CoreHealth,
  HistogramSummary,
  LatencyWindows,
  LoadSeries,
  PhaseMeans,
} from "./model.ts";

/** Maximum histogram cells of all steps of a run: about 6 MB of text. With more, windows become wider. */
export const CELLS_TOLD_MAX = 400_000;
const WINDOW_MS_MIN = 1_000;
/** A lag from which an event loop counts as stalled. */
const STALL_MS_MIN = 200;
/** Stalls of one core that are listed individually, the longest first. */
const STALLS_MAX = 20;

/** Maps measured time of a workflow, in milliseconds, to seconds of the run. */
export type SecondsAt = (ms: number) => number;

/** Latencies in windows of a second or more; `steps` share the available cells. */
export function latencyWindows(
  store: WindowStore<StepWindow>,
  secondsAt: SecondsAt,
  steps: number,
): LatencyWindows {
  let widthMs = Math.ceil(WINDOW_MS_MIN / store.widthMs) * store.widthMs;
  let windows = widened(store.folded(), widthMs);
  const cells = (): number => windows.reduce((sum, { content }) => sum + windowCells(content), 0);
  while (cells() > CELLS_TOLD_MAX / steps && windows.length > 1) {
    widthMs *= 2;
    windows = widened(windows, widthMs);
  }
  const filled = windows.filter(({ content }) => content.latency.size > 0);
  return {
    windowMs: widthMs,
    atSeconds: filled.map(({ startMs }) => secondsAt(startMs)),
    histograms: filled.map(({ content }) => cellsSummary(content.latency)),
    ...(filled.some(({ content }) => content.failedLatency.size > 0)
      ? { failures: filled.map(({ content }) => cellsSummary(content.failedLatency)) }
      : {}),
    phases: phaseMeans(filled.map(({ content }) => content)),
  };
}

/** All of a step's latencies so far as one window, with exactly the cells that its windows add up to. */
export function wholeLatencies(
  latency: Histogram,
  secondsAt: SecondsAt,
  elapsedSeconds: number,
): LatencyWindows {
  const upToMs: number[] = [];
  const count: number[] = [];
  latency.forEachCell((cell, times) => {
    upToMs.push(cellUpToMs(cell));
    count.push(times);
  });
  return {
    windowMs: Math.max(1, elapsedSeconds * 1_000),
    atSeconds: [secondsAt(0)],
    histograms: [{ upToMs, count }],
  };
}

function phaseMeans(windows: readonly StepWindow[]): PhaseMeans {
  const mean = (us: (window: StepWindow) => number): (number | null)[] =>
    windows.map((one) =>
      // Connection times include calls that were never answered, and may exceed the time of answered ones.
      one.answers === 0 ? null : rounded(Math.max(0, us(one)) / one.answers / 1_000),
    );
  return {
    connectMs: mean(({ connectUs }) => connectUs),
    tlsMs: mean(({ tlsUs }) => tlsUs),
    waitingMs: mean(({ connectUs, firstByteUs, tlsUs }) => firstByteUs - connectUs - tlsUs),
    bodyMs: mean(({ answeredUs, firstByteUs }) => answeredUs - firstByteUs),
  };
}

function widened(windows: readonly Window<StepWindow>[], widthMs: number): Window<StepWindow>[] {
  const wide = new Map<number, StepWindow[]>();
  for (const { content, startMs } of windows) {
    const index = Math.floor(startMs / widthMs);
    const held = wide.get(index);
    if (held === undefined) wide.set(index, [content]);
    else held.push(content);
  }
  return [...wide].map(([index, contents]) => ({
    startMs: index * widthMs,
    widthMs,
    content: STEP_RULES.sum(contents),
  }));
}

function cellsSummary(sparse: SparseCells): HistogramSummary {
  return {
    upToMs: Array.from(sparse.cells(), cellUpToMs),
    count: Array.from(sparse.counts()),
  };
}

function cellUpToMs(cell: number): number {
  return cellHigh(cell) / 1_000;
}

/** `planned`: the mean load of the plan in a window, where lost cores do not report theirs; null: all cores do. */
export function loadSeries(
  store: WindowStore<LoadWindow>,
  secondsAt: SecondsAt,
  planned: ((fromMs: number, toMs: number) => number) | null,
): LoadSeries {
  const windows = store.folded();
  const mean = (sum: number, widthMs: number): number => rounded(sum / widthMs);
  return {
    windowMs: store.widthMs,
    atSeconds: windows.map(({ startMs }) => secondsAt(startMs)),
    users: windows.map(({ content, widthMs }) => mean(content.userMs, widthMs)),
    target: windows.map(({ content, startMs, widthMs }) =>
      planned === null
        ? mean(content.targetMs, widthMs)
        : rounded(planned(startMs, startMs + widthMs)),
    ),
    arrivals: windows.map(({ content }) => content.arrivals),
    iterations: windows.map(({ content }) => content.iterations),
  };
}

/** Series of one core over the workflows it ran, each at the time it ran in. */
export function coreSeries(
  ran: readonly { readonly store: WindowStore<LoadWindow>; readonly secondsAt: SecondsAt }[],
): CoreHealth["series"] {
  const windows = ran
    .flatMap(({ secondsAt, store }) =>
      store.folded().map((window) => ({ ...window, atSeconds: secondsAt(window.startMs) })),
    )
    .sort((a, b) => a.atSeconds - b.atSeconds);
  if (windows.length === 0) return undefined;
  return {
    windowMs: Math.max(...windows.map(({ widthMs }) => widthMs)),
    atSeconds: windows.map(({ atSeconds }) => atSeconds),
    cpu: windows.map(({ content, widthMs }) => rounded(content.cpuMs / widthMs)),
    lagMs: windows.map(({ content }) => rounded(content.lagMsMax)),
  };
}

/** When the event loop of a core stalled, and for how long. */
export function stallsOf(
  core: number,
  store: WindowStore<LoadWindow>,
  secondsAt: SecondsAt,
): { readonly atSeconds: number; readonly text: string }[] {
  return store
    .folded()
    .filter(({ content }) => content.lagMsMax >= STALL_MS_MIN)
    .sort((a, b) => b.content.lagMsMax - a.content.lagMsMax)
    .slice(0, STALLS_MAX)
    .map(({ content, startMs }) => ({
      atSeconds: secondsAt(startMs),
      text: `executor core ${core} was blocked for ${formatMs(content.lagMsMax)}`,
    }));
}

/** Three decimals: more only bloat the file. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
