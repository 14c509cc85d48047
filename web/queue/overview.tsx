/** State of the queue: counts by state, and activity over the last hour or day. */

import { useMemo } from "preact/hooks";
import {
  formatCompact,
  formatCompactRate,
  formatCount,
  formatMs,
  formatRate,
} from "../../src/core/load/results/format.ts";
import type { ActivityWindow } from "../../src/core/queue/activity.ts";
import { TASK_STATES } from "../../src/core/queue/states.ts";
import type { ClusterStatus, QueueActivity } from "../../src/queue/api/types.ts";
import { ChartsContext, type ChartsState, rangeText } from "../shared/charts.ts";
import { type Fragment, useFragment } from "../shared/fragment.ts";
import { Section, Segments } from "../shared/parts.tsx";
import type { Line } from "../shared/plot.ts";
import { TimeChart } from "../shared/time-chart.tsx";
import type { Range } from "../shared/tracks.ts";
import { place } from "./address.ts";
import { call, nodeNow } from "./api.ts";
import { usePolled } from "./live.ts";
import { Moment } from "./parts.tsx";

const ACTIVITY_EVERY_MS = 5_000;
const SPANS = ["hour", "day"] as const;
type Span = (typeof SPANS)[number];
const WINDOW_SECONDS: Readonly<Record<Span, number>> = { hour: 10, day: 240 };
const SPAN_SECONDS: Readonly<Record<Span, number>> = { hour: 3_600, day: 86_400 };
/** Keeps the chart of a node that has just started from being a single point at its edge. */
const SHOWN_SECONDS_MIN: Readonly<Record<Span, number>> = { hour: 300, day: 7_200 };

export function Overview({ status }: { readonly status: ClusterStatus | undefined }) {
  return (
    <>
      <h1 class="page-title">Queue</h1>
      <Counts status={status} />
      <OverTime />
    </>
  );
}

/** Each count links to the tasks it counts. */
function Counts({ status }: { readonly status: ClusterStatus | undefined }) {
  return (
    <ul class="tiles">
      {TASK_STATES.map((state) => (
        <li key={state} class={`tile state-${state}`}>
          <a href={place("tasks", { state })}>
            <b data-count={state}>
              {status === undefined ? "–" : formatCount(status.counts[state])}
            </b>{" "}
            {state.toLowerCase()}
          </a>
        </li>
      ))}
    </ul>
  );
}

function OverTime() {
  const fragment = useFragment();
  const span = SPANS.find((one) => one === fragment.get("span")) ?? "hour";
  const { value, problem } = usePolled(`activity ${span}`, ACTIVITY_EVERY_MS, () =>
    call<QueueActivity>("queue_activity", { span }),
  );
  return (
    <Section
      id="time"
      title="Over time"
      aside={
        <Segments
          title="Stretch of time"
          choices={SPANS}
          chosen={span}
          choose={(next) => fragment.set({ span: next === "hour" ? null : next, t: null })}
        />
      }
    >
      {problem !== undefined && <p class="bad-text">{problem}</p>}
      {value !== undefined && <Charts activity={value} span={span} />}
    </Section>
  );
}

function Charts({ activity, span }: { readonly activity: QueueActivity; readonly span: Span }) {
  const fragment = useFragment();
  const { node_id: nodeId, windows } = activity;
  const [first] = windows;
  const last = windows.at(-1);
  const drawn = useMemo(() => drawnOf(windows, WINDOW_SECONDS[span]), [last?.to_ms, span]);
  const charts = useChartsState(fragment, drawn.atSeconds, span);
  if (first === undefined) {
    return (
      <p class="empty">
        {nodeId} leads since a moment ago; its first figures come after {WINDOW_SECONDS[span]} s.
      </p>
    );
  }
  const rest = { windowSeconds: WINDOW_SECONDS[span], atSeconds: drawn.atSeconds, height: 150 };
  return (
    <ChartsContext.Provider value={charts}>
      <p class="hint">
        Kept by {nodeId}, which leads, since <Moment at={first.from_ms} />, for an hour in windows
        of 10 s and for a day in windows of 4 min. Drag over a chart to look at a stretch.
      </p>
      <div class="card stack">
        <TimeChart
          id="throughput"
          title="Tasks per second"
          description="Submitted, succeeded and failed tasks per second."
          lines={drawn.rates}
          format={formatRate}
          formatTick={formatCompactRate}
          {...rest}
        />
        <TimeChart
          id="waiting"
          title="Waiting time"
          description="From when a task could start until it was handed to a worker."
          lines={drawn.waits}
          format={formatMs}
          formatTick={(ms) => formatMs(ms, 2)}
          logarithmic
          {...rest}
        />
        <TimeChart
          id="depth"
          title="Backlog"
          description="Queued and running tasks at the end of each window."
          lines={drawn.depths}
          format={formatCount}
          formatTick={formatCompact}
          {...rest}
        />
      </div>
    </ChartsContext.Provider>
  );
}

interface Drawn {
  readonly atSeconds: readonly number[];
  readonly rates: readonly Line[];
  readonly waits: readonly Line[];
  readonly depths: readonly Line[];
}

/** Seconds on the reader's local clock, so that the ticks of an axis fall on full hours. */
function localSeconds(ms: number): number {
  return ms / 1_000 - new Date(ms).getTimezoneOffset() * 60;
}

function drawnOf(windows: readonly ActivityWindow[], windowSeconds: number): Drawn {
  const points = withGaps(windows, windowSeconds * 1_000);
  const line = (
    label: string,
    color: string,
    format: (value: number) => string,
    value: (window: ActivityWindow) => number | null,
  ): Line => {
    const latest = windows.map(value).findLast((one) => one !== null);
    return {
      ...{ label, color },
      values: points.map(({ window }) => (window === null ? null : value(window))),
      rest: latest == null ? "–" : format(latest),
    };
  };
  const rate = (count: (window: ActivityWindow) => number) => (window: ActivityWindow) =>
    (count(window) * 1_000) / (window.to_ms - window.from_ms);
  return {
    atSeconds: points.map(({ atMs }) => localSeconds(atMs)),
    rates: [
      line(
        "submitted",
        "--line-5",
        formatRate,
        rate((one) => one.submitted),
      ),
      line(
        "succeeded",
        "--p95",
        formatRate,
        rate((one) => one.succeeded),
      ),
      line(
        "failed",
        "--fail",
        formatRate,
        rate((one) => one.failed),
      ),
      line(
        "retried",
        "--line-3",
        formatRate,
        rate((one) => one.retried),
      ),
    ],
    waits: [
      line("p50", "--p50", formatMs, (one) => one.wait_p50_ms),
      line("p95", "--p95", formatMs, (one) => one.wait_p95_ms),
      line("longest", "--p99", formatMs, (one) => one.wait_max_ms),
    ],
    depths: [
      line("queued", "--warn", formatCount, (one) => one.queued),
      line("running", "--line-0", formatCount, (one) => one.running),
    ],
  };
}

interface Point {
  readonly atMs: number;
  /** Null without data: the line breaks there. */
  readonly window: ActivityWindow | null;
}

function withGaps(windows: readonly ActivityWindow[], windowMs: number): readonly Point[] {
  return windows.flatMap((window, at) => {
    const point = { atMs: (window.from_ms + window.to_ms) / 2, window };
    const before = windows[at - 1];
    if (before === undefined || window.from_ms - before.to_ms < windowMs / 2) return [point];
    return [{ atMs: (before.to_ms + window.from_ms) / 2, window: null }, point];
  });
}

function useChartsState(fragment: Fragment, atSeconds: readonly number[], span: Span): ChartsState {
  const text = fragment.get("t");
  return useMemo(() => {
    const match = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "");
    const range: Range | null = match === null ? null : [Number(match[1]), Number(match[2])];
    const windowSeconds = WINDOW_SECONDS[span];
    const now = (atSeconds.at(-1) ?? localSeconds(nodeNow())) + windowSeconds / 2;
    const begun = (atSeconds[0] ?? now) - windowSeconds / 2;
    const from = Math.max(now - SPAN_SECONDS[span], Math.min(begun, now - SHOWN_SECONDS_MIN[span]));
    return {
      full: [from, now],
      range: range !== null && range[1] > range[0] ? range : null,
      windowSeconds,
      setRange: (next) =>
        fragment.set({ t: next === null ? null : rangeText(next.map(Math.round)) }),
      scale: "logarithmic",
      events: [],
      momentText: (seconds) => new Date(seconds * 1_000).toISOString().slice(11, 19),
    };
  }, [text, span, atSeconds, fragment]);
}
