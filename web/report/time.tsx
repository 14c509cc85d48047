/** The run over time: load, requests, failures by kind, latencies, phases. */

import { useMemo } from "preact/hooks";
import {
  formatCompactNumber,
  formatCompactRate,
  formatMs,
  formatNumber,
  formatRate,
  formatSeconds,
} from "../../src/core/load/results/format.ts";
import type { LoadSeries, PhaseMeans } from "../../src/core/load/results/model.ts";
import type { Percentile } from "../../src/core/load/stats/steady-percentiles.ts";
import { CHART_WINDOW_MS, sumErrors, sumTimelines } from "../../src/reporters/file/timeline.ts";
import { type Scale, useCharts } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { useFragment } from "../shared/fragment.ts";
import { Section, Segments } from "../shared/parts.tsx";
import type { Line } from "../shared/plot.ts";
import { TimeChart } from "../shared/time-chart.tsx";
import { PERCENTILES, percentileLine } from "../shared/tracks.ts";
import { LatencyHeatMap } from "./heat-map.tsx";
import { runLimits } from "./limits.ts";
import {
  baselineLine,
  baselineRate,
  lineStyle,
  percentileLines,
  percentileNote,
  percentileTexts,
  phaseLines,
  rateLines,
  stretchTexts,
  trackMiddles,
} from "./lines.ts";
import {
  meansAround,
  meansOf,
  middles,
  type RunView,
  type StepView,
  valuesAt,
  windowsText,
} from "./run-view.ts";
import { LoadScatter } from "./scatter.tsx";
import { distributionOf, failedPerSecond, ratePerSecond } from "./totals.ts";

interface Props {
  readonly view: RunView;
  readonly baseline: RunView | null;
}

const SCALES: readonly Scale[] = ["logarithmic", "linear"];

export function OverTime({ baseline, view }: Props) {
  const fragment = useFragment();
  const { scale } = useCharts();
  const chosen = PERCENTILES.find((one) => one === fragment.get("p")) ?? "p95";
  return (
    <Section
      id="time"
      title="Over time"
      aside={
        <span class="controls">
          <Segments
            title="Percentile by step"
            choices={PERCENTILES}
            chosen={chosen}
            choose={(p) => fragment.set({ p: p === "p95" ? null : p })}
          />
          <Segments
            title="Scale of latencies"
            choices={SCALES}
            chosen={scale}
            choose={(y) => fragment.set({ y: y === "linear" ? y : null })}
          />
        </span>
      }
    >
      <p class="hint">
        Drag over a chart to look at a stretch; all charts and figures follow. Double-click shows
        all. By keyboard: arrows, + and −, Escape.
      </p>
      <div class="card stack">
        <Load view={view} />
        <Rates {...{ baseline, view }} />
        <Kinds view={view} />
        <Latencies {...{ baseline, view }} />
        <BySteps view={view} percentile={chosen} />
        <Phases view={view} />
        <LoadScatter track={view.track} of="all steps" />
      </div>
      <Events view={view} />
    </Section>
  );
}

function gridOf({ timeline }: RunView) {
  const windowSeconds = timeline.windowMs / 1_000;
  return { windowSeconds, moments: middles(timeline.atSeconds, windowSeconds) };
}

/** Virtual users and arrivals: planned and actual. */
function Load({ view }: { readonly view: RunView }) {
  const { moments, windowSeconds } = useMemo(() => gridOf(view), [view]);
  const { iterations, users } = useMemo(
    () => loadLines(view, moments, windowSeconds),
    [view, moments],
  );
  const rest = {
    note: windowsText(windowSeconds),
    atSeconds: moments,
    windowSeconds,
    height: 130,
  };
  return (
    <>
      {users.length > 0 && (
        <TimeChart
          id="users"
          title="Virtual users"
          description="Virtual users at work and, in closed models, planned."
          lines={users}
          format={formatNumber}
          formatTick={formatCompactNumber}
          {...rest}
        />
      )}
      {iterations.length > 0 && (
        <TimeChart
          id="iterations"
          title="Iterations per second"
          description="Iterations that were completed and, in open models, that began and were planned."
          lines={iterations}
          format={formatRate}
          formatTick={formatCompactRate}
          {...rest}
        />
      )}
    </>
  );
}

function loadLines({ summary }: RunView, moments: readonly number[], windowSeconds: number) {
  const loads = summary.workflows.flatMap(({ loadSeries, model }) =>
    loadSeries === undefined ? [] : [{ load: loadSeries, open: model === "open" }],
  );
  const sum = (
    some: readonly { readonly load: LoadSeries }[],
    pick: (load: LoadSeries) => readonly number[],
  ) => {
    const parts = some.map(({ load }) =>
      meansAround(
        moments,
        windowSeconds,
        { starts: load.atSeconds, windowSeconds: load.windowMs / 1_000 },
        pick(load),
      ),
    );
    return moments.map((_, at) =>
      parts.reduce<number | null>((all, part) => {
        const value = part[at] ?? null;
        return value === null ? all : (all ?? 0) + value;
      }, null),
    );
  };
  const open = loads.filter((one) => one.open);
  const closed = loads.filter((one) => !one.open);
  const pickUsers = (load: LoadSeries) => load.users;
  const planned = { color: "--baseline", dash: [5, 3] };
  const users: Line[] = [
    ...(closed.length === 0
      ? []
      : [
          { label: "users", values: sum(closed, pickUsers), color: "--line-0", filled: true },
          { label: "planned", values: sum(closed, ({ target }) => target), ...planned },
        ]),
    // For a rate only arrivals are planned, not the number of users.
    ...(open.length === 0
      ? []
      : [{ label: "users of rates", values: sum(open, pickUsers), color: "--line-2" }]),
  ];
  const perSecond = (pick: (load: LoadSeries) => readonly number[]) => (load: LoadSeries) =>
    pick(load).map((count) => (count * 1_000) / load.windowMs);
  const completed = sum(
    loads,
    perSecond(({ iterations }) => iterations),
  );
  const iterations: Line[] = [
    { label: "completed", values: completed, color: "--line-2" },
    ...(open.length === 0
      ? []
      : [
          {
            label: "arrivals",
            values: sum(
              open,
              perSecond(({ arrivals }) => arrivals),
            ),
            color: "--line-0",
            filled: true,
          },
          { label: "planned arrivals", values: sum(open, ({ target }) => target), ...planned },
        ]),
  ];
  return loads.length === 0 ? { users: [], iterations: [] } : { users, iterations };
}

function Rates({ baseline, view }: Props) {
  const { moments, windowSeconds } = useMemo(() => gridOf(view), [view]);
  const lines = useMemo(
    () => [
      ...rateLines(view.timeline, ratePerSecond(view), failedPerSecond(view)),
      ...(baseline === null ? [] : [baselineRate(moments, baseline)]),
    ],
    [view, baseline],
  );
  return (
    <TimeChart
      id="rate"
      title="Requests per second"
      note={windowsText(windowSeconds)}
      description="Requests and failures per second over the run, all steps together."
      windowSeconds={windowSeconds}
      atSeconds={moments}
      lines={lines}
      format={formatRate}
      formatTick={formatCompactRate}
    />
  );
}

/** On a scale of its own: a few failures in a thousand are a line at zero beside all requests. */
function Kinds({ view }: { readonly view: RunView }) {
  const all = useMemo(() => view.steps.map(({ step }) => step.series), [view]);
  return <KindsOverTime id="kinds" all={all} of="all steps" windowMs={view.timeline.windowMs} />;
}

interface KindsProps {
  readonly id: string;
  readonly all: readonly StepView["step"]["series"][];
  readonly of: string;
  /** Windows at least so wide. */
  readonly windowMs: number;
}

/** With fewer failures than this per window, ones and zeros alternate and nothing is visible. */
const FAILURES_PER_WINDOW_MIN = 5;
const FEW_FAILURES_POINTS = 60;

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

export function KindsOverTime({ all, id, of, windowMs }: KindsProps) {
  const { lines, moments, windowSeconds } = useMemo(() => {
    const timeline = sumTimelines(all, CHART_WINDOW_MS);
    const failed = all.reduce((sum, series) => sum + sumOf(series.failed), 0);
    const few = failed < FAILURES_PER_WINDOW_MIN * timeline.atSeconds.length;
    const widest = few ? Math.ceil(timeline.atSeconds.length / FEW_FAILURES_POINTS) : 1;
    const factor = Math.max(widest, Math.round(windowMs / timeline.windowMs));
    const seconds = (timeline.windowMs * factor) / 1_000;
    const starts = timeline.atSeconds.filter((_, at) => at % factor === 0);
    const kinds = [...sumErrors(all, timeline)].map(
      ([kind, values], index): Line => ({
        label: kind,
        values: meansOf(values, factor),
        ...lineStyle(index + 1),
        filled: true,
      }),
    );
    return { lines: kinds, moments: middles(starts, seconds), windowSeconds: seconds };
  }, [all, windowMs]);
  if (lines.length === 0) return null;
  return (
    <TimeChart
      id={id}
      title="Failures per second by kind"
      note={windowsText(windowSeconds)}
      description={`Failures of ${of} per second, by kind.`}
      windowSeconds={windowSeconds}
      atSeconds={moments}
      lines={lines}
      format={formatRate}
      formatTick={formatCompactRate}
      height={140}
    />
  );
}

function Latencies({ baseline, view }: Props) {
  const { summary, track } = view;
  const moments = useMemo(() => trackMiddles(track), [track]);
  const limits = useMemo(() => runLimits(summary), [summary]);
  const whole = useMemo(() => distributionOf(view), [view]);
  const lines = useMemo(
    () => [
      ...percentileLines(track, whole),
      ...(baseline === null
        ? []
        : [baselineLine(moments, baseline.track, distributionOf(baseline))]),
    ],
    [view, baseline],
  );
  const { range } = useCharts();
  const stretch = useMemo(
    () => percentileTexts(range, track, baseline?.track),
    [range, track, baseline],
  );
  if (track.starts.length === 0) return null;
  return (
    <>
      <LatencyHeatMap id="heat" {...{ track, whole, limits }} of="all steps" />
      <TimeChart
        id="latency"
        title="Latency of all steps"
        note={percentileNote(track)}
        description="Percentiles of all requests together over the run."
        windowSeconds={track.windowSeconds}
        atSeconds={moments}
        {...{ lines, limits, stretch }}
        format={formatMs}
        formatTick={formatMs}
        height={210}
        latency
      />
    </>
  );
}

/** Most lines that remain distinguishable. */
const STEP_LINES_MAX = 12;

/** Failing steps first, then the slowest: the ones that matter are drawn, however many there are. */
function worstSteps(steps: readonly StepView[]): StepView[] {
  const rank = ({ step }: StepView) => (step.failed > 0 ? 1e9 : 0) + step.latencyMs.p95;
  const kept = new Set(steps.toSorted((a, b) => rank(b) - rank(a)).slice(0, STEP_LINES_MAX));
  return steps.filter((step) => kept.has(step));
}

function BySteps({
  percentile,
  view,
}: {
  readonly view: RunView;
  readonly percentile: Percentile;
}) {
  const { steps, track } = view;
  const moments = useMemo(() => trackMiddles(track), [track]);
  const lines = useMemo(
    () =>
      worstSteps(steps).map(
        ({ name, step, track: own }, index): Line => ({
          label: name,
          values: valuesAt(moments, own, percentileLine(own, percentile)),
          rest: step.requests === 0 ? "–" : formatMs(step.latencyMs[percentile]),
          ...lineStyle(index),
        }),
      ),
    [view, percentile],
  );
  const { range } = useCharts();
  const stretch = useMemo(
    () =>
      stretchTexts(
        range,
        worstSteps(steps).map(({ name, track: own }) => [name, own, percentile] as const),
      ),
    [range, steps, percentile],
  );
  if (steps.length < 2 || track.starts.length === 0) return null;
  const some =
    steps.length > STEP_LINES_MAX
      ? `the ${STEP_LINES_MAX} of ${steps.length} steps that failed or are slowest`
      : windowsText(track.windowSeconds);
  return (
    <TimeChart
      id="steps-latency"
      title={`Latency ${percentile} by step`}
      note={some}
      description={`${percentile} of the latency of each step over the run.`}
      windowSeconds={track.windowSeconds}
      atSeconds={moments}
      {...{ lines, stretch }}
      format={formatMs}
      formatTick={formatMs}
      height={210}
      latency
    />
  );
}

/** Means of the steps' means, weighted by calls. */
function sumPhases(view: RunView, moments: readonly number[]): PhaseMeans | null {
  const parts = view.steps.flatMap(({ step, track }) => {
    const phases = step.windows?.phases;
    if (phases === undefined) return [];
    const calls = valuesAt(
      moments,
      track,
      track.latency.map(({ total }) => total),
    );
    const at = (values: readonly (number | null)[]) => valuesAt(moments, track, values);
    return [
      {
        calls,
        connectMs: at(phases.connectMs),
        tlsMs: at(phases.tlsMs),
        waitingMs: at(phases.waitingMs),
        bodyMs: at(phases.bodyMs),
      },
    ];
  });
  if (parts.length === 0) return null;
  const mean = (key: keyof PhaseMeans) =>
    moments.map((_, at) => {
      let [sum, calls] = [0, 0];
      for (const part of parts) {
        const value = part[key][at] ?? null;
        const count = part.calls[at] ?? 0;
        if (value === null) continue;
        sum += value * count;
        calls += count;
      }
      return calls === 0 ? null : sum / calls;
    });
  return {
    connectMs: mean("connectMs"),
    tlsMs: mean("tlsMs"),
    waitingMs: mean("waitingMs"),
    bodyMs: mean("bodyMs"),
  };
}

function Phases({ view }: { readonly view: RunView }) {
  const { track } = view;
  const moments = useMemo(() => trackMiddles(track), [track]);
  const phases = useMemo(() => sumPhases(view, moments), [view]);
  return phases === null ? null : (
    <PhasesOverTime id="phases" {...{ phases, moments }} track={track} of="all steps" />
  );
}

interface PhasesProps {
  readonly id: string;
  readonly phases: PhaseMeans;
  readonly moments: readonly number[];
  readonly track: RunView["track"];
  readonly of: string;
}

export function PhasesOverTime({ id, moments, of, phases, track }: PhasesProps) {
  const lines = useMemo(() => phaseLines(phases), [phases]);
  if (lines.length === 0) return null;
  return (
    <TimeChart
      id={id}
      title="Where the time went"
      note={`means of answered calls, ${windowsText(track.windowSeconds)}`}
      description={`Mean time that answered calls of ${of} spent on each part.`}
      windowSeconds={track.windowSeconds}
      atSeconds={moments}
      lines={lines}
      format={formatMs}
      formatTick={formatMs}
      height={150}
    />
  );
}

function Events({ view }: { readonly view: RunView }) {
  const { setRange } = useCharts();
  const { events } = view;
  if (events.length === 0) return null;
  const around = (at: number) => {
    const width = Math.max(10 * view.track.windowSeconds, (view.full[1] - view.full[0]) / 12);
    setRange([Math.max(view.full[0], at - width / 2), Math.min(view.full[1], at + width / 2)]);
  };
  return (
    <div class="events">
      <h3>What happened, marked in every chart</h3>
      <ul>
        {events.map(({ atSeconds, kind, text, workflow }) => (
          <li key={`${atSeconds} ${text}`}>
            <button type="button" class="plain-button" onClick={() => around(atSeconds)}>
              {clockAt(atSeconds, 0.1)}
              <span class="hidden"> ({formatSeconds(atSeconds)}): look at it</span>
            </button>{" "}
            <b>{kind}</b>
            {workflow === null ? "" : ` (${workflow})`}: {text}
          </li>
        ))}
      </ul>
    </div>
  );
}
