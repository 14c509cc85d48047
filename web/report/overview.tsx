/** The first screen: what came out, what to be careful about, the figures, and the run over time. */

import { useMemo, useState } from "preact/hooks";
import {
  formatBytes,
  formatCompactRate,
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../../src/core/run/results/format.ts";
import type {
  RunSummary,
  StepSummary,
  ThresholdOutcome,
} from "../../src/core/run/results/model.ts";
import { bucketsOf, mergeHistograms, quantileOf } from "../../src/reporters/file/quantiles.ts";
import { sumTimelines, worstOn } from "../../src/reporters/file/timeline.ts";
import { Chip, Section, Segments, Table, type Tone } from "./parts.tsx";
import { type Line, type Scale, TimeChart } from "./time-chart.tsx";

type SummaryProps = { readonly summary: RunSummary };

const VERDICTS = {
  passed: { word: "Passed", tone: "good", icon: "M4 10.5 8.2 15 16 5.5" },
  failed: { word: "Failed", tone: "bad", icon: "M5 5 15 15 M15 5 5 15" },
  interrupted: { word: "Interrupted", tone: "warn", icon: "M7 5 V15 M13 5 V15" },
} as const;

export function Verdict({ summary }: SummaryProps) {
  const { word, tone, icon } = VERDICTS[summary.verdict];
  const held = summary.thresholds.filter(({ passed }) => passed).length;
  return (
    <section class={`verdict ${tone}`} aria-label="Verdict">
      <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
        <path d={icon} />
      </svg>
      <div>
        <h1>
          {word} <span class="run-name">{summary.name}</span>
        </h1>
        <p class="when">
          <time dateTime={summary.startedAt}>{dateText(summary.startedAt)}</time>
          <span>{formatSeconds(summary.durationSeconds)}</span>
          {summary.title !== undefined && <span>{summary.title}</span>}
          {summary.thresholds.length > 0 && (
            <span>
              {held} of {summary.thresholds.length} thresholds held
            </span>
          )}
        </p>
        {summary.reasons.length > 0 && (
          <ul class="reasons">
            {summary.reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

export function Warnings({ summary }: SummaryProps) {
  const { generator, lost } = summary;
  return (
    <>
      {generator.limited && (
        <Alert tone="warn" title="The load generator was the limit, not the target">
          <p>{generator.reason ?? "The target might have done better than these figures say."}</p>
        </Alert>
      )}
      {lost.length > 0 && (
        <Alert tone="bad" title="Parts of this run were lost">
          <ul>
            {lost.map(({ core, atSeconds, what, cost }) => (
              <li key={`${core} ${atSeconds}`}>
                At {formatSeconds(atSeconds)}: {what} Lost: {cost}
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </>
  );
}

export function Events({ summary }: SummaryProps) {
  const events = summary.events ?? [];
  if (events.length === 0) return null;
  return (
    <Alert tone="plain" title="What happened during the run">
      <ul>
        {events.map(({ atSeconds, kind, text, workflow }) => (
          <li key={`${atSeconds} ${text}`}>
            At {formatSeconds(atSeconds)}: {kind}
            {workflow === null ? "" : ` (${workflow})`}, {text}
          </li>
        ))}
      </ul>
    </Alert>
  );
}

export function Notes({ summary }: SummaryProps) {
  if (summary.notes.length === 0) return null;
  return (
    <Alert tone="plain" title="To know when reading the numbers">
      <ul>
        {summary.notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </Alert>
  );
}

function Alert(props: { tone: Tone; title: string; children: preact.ComponentChildren }) {
  return (
    <aside class={`alert ${props.tone}`} aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.children}
    </aside>
  );
}

export function Headline({ summary }: SummaryProps) {
  const steps = summary.workflows.flatMap((workflow) => workflow.steps);
  const sum = (value: (step: (typeof steps)[number]) => number) =>
    steps.reduce((total, step) => total + value(step), 0);
  const requests = sum((step) => step.requests);
  const failed = sum((step) => step.failed);
  const buckets = bucketsOf(mergeHistograms(steps.map(({ histogram }) => histogram)));
  const { totals } = summary;
  // Results of earlier versions have only histograms of two digits.
  const quantile = (fraction: number, exact: "p50" | "p95" | "p99") => {
    if (requests === 0) return "–";
    return totals === undefined
      ? formatMs(quantileOf(buckets, fraction), 2)
      : formatMs(totals.latencyMs[exact]);
  };
  const iterations = summary.workflows.reduce((n, each) => n + each.iterations.completed, 0);
  const figures: [string, string, string][] = [
    ["Requests", formatCount(requests), `${formatCount(iterations)} iterations`],
    [
      "Rate",
      formatRate(totals?.ratePerSecond ?? sum((step) => step.ratePerSecond)),
      "all steps together",
    ],
    [
      "Failed",
      formatPercent(requests === 0 ? 0 : failed / requests),
      `${formatCount(failed)} requests`,
    ],
    ["Median", quantile(0.5, "p50"), "latency of all steps"],
    ["p95", quantile(0.95, "p95"), "latency of all steps"],
    ["p99", quantile(0.99, "p99"), "latency of all steps"],
    [
      "Received",
      formatBytes(sum((step) => step.bytesIn)),
      `${formatBytes(sum((step) => step.bytesOut))} sent`,
    ],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, value, remark]) => (
        <div key={name} class={name === "Failed" && failed > 0 ? "bad" : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          <dd class="remark">{remark}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Thresholds({ summary }: SummaryProps) {
  const { thresholds } = summary;
  const order = (threshold: ThresholdOutcome) => (threshold.passed ? 1 : 0);
  const rows = thresholds
    .toSorted((a, b) => order(a) - order(b))
    .map((threshold) => [
      <code key="expression">{threshold.expression}</code>,
      threshold.passed ? <Chip tone="good">✓ held</Chip> : <Chip tone="bad">✗ failed</Chip>,
      <b key="actual">{threshold.actualText}</b>,
      threshold.workflow ?? "whole run",
      [threshold.implicit ? "built-in gate" : "", threshold.aborted ? "ended the run early" : ""]
        .filter((text) => text !== "")
        .join(", "),
    ]);
  const columns = [
    { title: "Threshold" },
    { title: "Result" },
    { title: "Actual", numeric: true },
    { title: "Applies to" },
    { title: "Remark" },
  ];
  return (
    <Section id="thresholds" title="Thresholds">
      {rows.length === 0 ? (
        <p class="empty">
          This run has no thresholds. Add one with <code>--threshold "latency.p99&lt;200ms"</code>.
        </p>
      ) : (
        <Table caption="Thresholds and their actual values" columns={columns} rows={rows} />
      )}
    </Section>
  );
}

const SCALES: readonly Scale[] = ["logarithmic", "linear"];
const PERCENTILES = ["p50", "p95", "p99"] as const;
/** Lines of different colour; as many again are dashed. */
const COLORS = 7;
const STEP_LINES_MAX = 2 * COLORS;

interface OverviewProps extends SummaryProps {
  readonly scale: Scale;
  readonly setScale: (scale: Scale) => void;
}

export function Overview({ summary, scale, setScale }: OverviewProps) {
  const [percentile, setPercentile] = useState<(typeof PERCENTILES)[number]>("p95");
  const steps = useMemo(() => namedSteps(summary), [summary]);
  const timeline = useMemo(() => sumTimelines(steps.map(({ step }) => step.series)), [steps]);
  const rates = useMemo(() => rateLines(timeline), [timeline]);
  const latencies = useMemo(
    () =>
      busiest(steps).map(({ name, step }, index): Line => {
        const values = worstOn(timeline, step.series, percentile);
        const color = `--line-${index % COLORS}`;
        return { label: name, values, color, ...(index >= COLORS ? { dash: [5, 4] } : {}) };
      }),
    [steps, timeline, percentile],
  );
  const buttons = (
    <span class="controls">
      <Segments
        title="Percentile of the latency by step"
        choices={PERCENTILES}
        chosen={percentile}
        choose={setPercentile}
      />
      <Segments
        title="Scale of all latency charts"
        choices={SCALES}
        chosen={scale}
        choose={setScale}
      />
    </span>
  );
  return (
    <Section id="time" title="Over time" aside={buttons}>
      <div class="card stack">
        <TimeChart
          title="Requests per second"
          description="Requests and failures per second over the run, all steps together."
          atSeconds={timeline.atSeconds}
          lines={rates}
          format={formatRate}
          formatTick={formatCompactRate}
          group="all"
          height={200}
        />
        <TimeChart
          title={`Latency ${percentile} by step`}
          description={`${percentile} of the latency of each step over the run; see the tables.`}
          atSeconds={timeline.atSeconds}
          lines={latencies}
          format={formatMs}
          formatTick={formatMs}
          group="all"
          height={230}
          latency
        />
        {steps.length > STEP_LINES_MAX && (
          <p class="remark">The {STEP_LINES_MAX} steps with the most requests are drawn.</p>
        )}
      </div>
    </Section>
  );
}

interface NamedStep {
  readonly name: string;
  readonly step: StepSummary;
}

/** Two workflows may have steps of the same name. */
function namedSteps({ workflows }: RunSummary): NamedStep[] {
  return workflows.flatMap((workflow) =>
    workflow.steps.map((step) => ({
      name: workflows.length > 1 ? `${workflow.name} / ${step.name}` : step.name,
      step,
    })),
  );
}

/** Those with the most requests, in the order of the workflows. */
function busiest(steps: readonly NamedStep[]): NamedStep[] {
  const kept = new Set(
    steps.toSorted((a, b) => b.step.requests - a.step.requests).slice(0, STEP_LINES_MAX),
  );
  return steps.filter((step) => kept.has(step));
}

export function rateLines(timeline: {
  readonly ratePerSecond: readonly number[];
  readonly failedPerSecond: readonly number[];
}): Line[] {
  return [
    { label: "requests", values: timeline.ratePerSecond, color: "--rate", filled: true },
    { label: "failed", values: timeline.failedPerSecond, color: "--fail", filled: true },
  ];
}

function dateText(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
