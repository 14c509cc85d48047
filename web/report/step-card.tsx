/** One step: its metrics, over time, its distribution, its phases, and samples of its failures. */

import { useMemo } from "preact/hooks";
import {
  formatBytes,
  formatCompactRate,
  formatCount,
  formatMs,
  formatRate,
} from "../../src/core/load/results/format.ts";
import type { Distribution, StepSummary } from "../../src/core/load/results/model.ts";
import { CHART_WINDOW_MS, sumTimelines } from "../../src/reporters/file/timeline.ts";
import { useCharts } from "../shared/charts.ts";
import { useFragment } from "../shared/fragment.ts";
import { Facts, Tags } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { TimeChart } from "../shared/time-chart.tsx";
import { stretchOf } from "../shared/tracks.ts";
import { Samples } from "./errors.tsx";
import { LatencyHeatMap } from "./heat-map.tsx";
import { Histogram } from "./histogram.tsx";
import { stepLimits } from "./limits.ts";
import {
  baselineLine,
  percentileLines,
  percentileNote,
  percentileTexts,
  rateLines,
  trackMiddles,
} from "./lines.ts";
import { middles, type RunView, type StepView, widened, windowsText } from "./run-view.ts";
import { LoadScatter } from "./scatter.tsx";
import { KindsOverTime, PhasesOverTime } from "./time.tsx";

interface Props {
  readonly step: StepView;
  readonly view: RunView;
  /** The same step of the baseline run. */
  readonly baseline: StepView | null;
  readonly close: () => void;
}

export function StepCard(props: Props) {
  const { close, step: shown } = props;
  const { id, name, step } = shown;
  const fragment = useFragment();
  return (
    <article class="card step" id={`step-${id}`} aria-label={`Step ${name}`}>
      <h3>
        <a href={fragment.link({ open: id }, `step-${id}`)}>{name}</a>{" "}
        <span class="tag">{step.protocol}</span>
        <Tags tags={step.tags} />
        <button type="button" class="plain-button close" onClick={close}>
          fold<span class="hidden"> {name}</span>
        </button>
      </h3>
      <Facts facts={stepFacts(step)} />
      {step.requests === 0 ? (
        <p class="empty">No request of this step finished.</p>
      ) : (
        <StepCharts {...props} />
      )}
    </article>
  );
}

/** Memoised lines of a card's charts. */
function useStepLines({ baseline, step: shown, view }: Props) {
  const { step, track } = shown;
  const timeline = useMemo(() => widened(sumTimelines([step.series], CHART_WINDOW_MS)), [step]);
  const windowSeconds = timeline.windowMs / 1_000;
  const rates = useMemo(() => {
    const share = step.requests === 0 ? 0 : step.failed / step.requests;
    return rateLines(timeline, step.ratePerSecond, step.ratePerSecond * share);
  }, [timeline]);
  const moments = useMemo(() => trackMiddles(track), [track]);
  const rateMoments = useMemo(() => middles(timeline.atSeconds, windowSeconds), [timeline]);
  const limits = useMemo(() => stepLimits(view.summary, shown), [shown]);
  const latencies = useMemo(
    () => [
      ...percentileLines(track, step.latencyMs),
      ...(baseline === null
        ? []
        : [baselineLine(moments, baseline.track, baseline.step.latencyMs)]),
    ],
    [track, baseline],
  );
  const { range } = useCharts();
  const stretch = useMemo(
    () => percentileTexts(range, track, baseline?.track),
    [range, track, baseline],
  );
  return { latencies, stretch, limits, moments, rateMoments, rates, timeline, windowSeconds };
}

function StepCharts(props: Props) {
  const { id, name, step, track } = props.step;
  const { latencies, limits, moments, rateMoments, rates, stretch, timeline, windowSeconds } =
    useStepLines(props);
  const series = useMemo(() => [step.series], [step]);
  return (
    <>
      <div class="pair">
        <TimeChart
          id={`rate-${id}`}
          title="Rate"
          note={windowsText(windowSeconds)}
          description={`Requests per second of ${name}: ${formatRate(step.ratePerSecond)} on average.`}
          windowSeconds={windowSeconds}
          atSeconds={rateMoments}
          lines={rates}
          format={formatRate}
          formatTick={formatCompactRate}
        />
        <TimeChart
          id={`latency-${id}`}
          title="Latency"
          note={percentileNote(track)}
          description={`Percentiles of the latency of ${name} over time.`}
          windowSeconds={track.windowSeconds}
          atSeconds={moments}
          lines={latencies}
          {...{ limits, stretch }}
          format={formatMs}
          formatTick={formatMs}
          latency
        />
      </div>
      <LatencyHeatMap
        id={`heat-${id}`}
        {...{ track, limits }}
        whole={step.latencyMs}
        of={name}
        height={190}
      />
      <div class="pair">
        <Histogram step={step} />
        <LoadScatter track={track} of={name} />
      </div>
      {step.windows?.phases !== undefined && (
        <PhasesOverTime
          id={`phases-${id}`}
          phases={step.windows.phases}
          {...{ moments, track }}
          of={name}
        />
      )}
      <KindsOverTime id={`kinds-${id}`} all={series} of={name} windowMs={timeline.windowMs} />
      <Timings step={props.step} />
      <Samples steps={[props.step]} caption={`Some failures of ${name}`} />
    </>
  );
}

function stepFacts(step: StepSummary): [string, string][] {
  return [
    ["Requests", formatCount(step.requests)],
    ["Rate", formatRate(step.ratePerSecond)],
    ["Ok", formatCount(step.ok)],
    ["Failed", formatCount(step.failed)],
    ["Interrupted", formatCount(step.interrupted)],
    ...(step.sent === undefined
      ? []
      : [["On the wire", formatCount(step.sent)] satisfies [string, string]]),
    ["Received", formatBytes(step.bytesIn)],
    ["Sent", formatBytes(step.bytesOut)],
  ];
}

const FIGURES = [
  ...(["min", "mean", "p50", "p75", "p90", "p95"] as const),
  ...(["p99", "p99_9", "p99_99", "max"] as const),
];

/** Timings of the whole run; latencies of a selected stretch are above, successes and failures apart. */
function Timings({ step: { name, step, track } }: { readonly step: StepView }) {
  const { range } = useCharts();
  const whole: [string, Distribution][] = [
    ["Latency", step.latencyMs],
    ...failedApart(
      step,
      stretchOf(track, [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]).failed,
    ),
    ["Service time", step.serviceMs],
    ["First byte", step.firstByteMs],
    ["Connect", step.connectMs],
    ["TLS", step.tlsMs],
  ];
  const stretch = range === null ? null : stretchOf(track, range);
  const parts: [string, Distribution][] = [
    ...(stretch === null
      ? []
      : [
          ["In this stretch", stretch.all] satisfies [string, Distribution],
          ["In this stretch, failed", stretch.failed] satisfies [string, Distribution],
        ]),
    ...whole,
  ];
  const columns = [
    { title: "Time" },
    { title: "Count", numeric: true },
    ...FIGURES.map((figure) => ({ title: figure.replace("_", "."), numeric: true })),
  ];
  const rows = parts
    .filter(([, times]) => times.count > 0)
    .map(([title, times]) => ({
      key: title,
      cells: [
        { text: title },
        { text: formatCount(times.count) },
        ...FIGURES.map((figure) => ({ text: formatMs(times[figure]) })),
      ],
    }));
  return <Table caption={`Times of ${name}`} columns={columns} rows={rows} />;
}

function failedApart(step: StepSummary, failed: Distribution): [string, Distribution][] {
  if (step.okLatencyMs === undefined || step.failed === 0) return [];
  return [
    ["Latency of successes", step.okLatencyMs],
    ["Latency of failures", failed],
  ];
}
