/** The first screen: the verdict, whether to trust it, and the metrics. */

import { doubtOf, isRejected } from "../../src/core/load/results/doubt.ts";
import {
  formatBytes,
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../../src/core/load/results/format.ts";
import { generatorTitle } from "../../src/core/load/results/generator-health.ts";
import type { Distribution, RunSummary } from "../../src/core/load/results/model.ts";
import { partialOf } from "../../src/core/load/results/partial.ts";
import { bucketsOf, mergeHistograms, quantileOf } from "../../src/reporters/file/quantiles.ts";
import { useCharts } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { Alert, FAILED_MANY, Folded } from "../shared/parts.tsx";
import { type Range, stretchOf } from "../shared/tracks.ts";
import { countsIn, type RunView } from "./run-view.ts";
import { WhenBeyond } from "./thresholds.tsx";

type SummaryProps = { readonly summary: RunSummary };
type ViewProps = { readonly view: RunView };

const VERDICTS = {
  passed: { word: "Passed", tone: "good", icon: "M4 10.5 8.2 15 16 5.5" },
  failed: { word: "Failed", tone: "bad", icon: "M5 5 15 15 M15 5 5 15" },
  interrupted: { word: "Interrupted", tone: "warn", icon: "M7 5 V15 M13 5 V15" },
} as const;

export function Verdict({ view }: ViewProps) {
  const { summary } = view;
  const isOut = isRejected(summary);
  const { word, tone, icon } = VERDICTS[isOut ? "failed" : summary.verdict];
  const doubt = doubtOf(summary);
  // An untrusted result is not shown as a success.
  const shown = doubt !== null && tone === "good" ? "warn" : tone;
  const held = summary.thresholds.filter(({ passed }) => passed).length;
  return (
    <section class={`verdict ${shown}`} aria-label="Verdict">
      <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
        <path d={icon} />
      </svg>
      <div>
        <h1>
          {isOut ? "Untrusted" : word}
          {partialOf(summary) !== null && " in part"} <span class="run-name">{summary.name}</span>
        </h1>
        {summary.headline !== undefined && <p class="answer">{sentence(summary.headline)}</p>}
        {doubt !== null && <p class="doubt">Not to be trusted: {doubt}.</p>}
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
        <Reasons view={view} />
      </div>
    </section>
  );
}

/** Broken thresholds with when and by which step; then the other reasons of the verdict. */
function Reasons({ view }: ViewProps) {
  const { reasons, thresholds } = view.summary;
  const broken = thresholds.filter(({ passed }) => !passed);
  const rest = reasons.filter(
    (reason) => !broken.some(({ expression }) => reason.includes(expression)),
  );
  const several = view.summary.workflows.length > 1;
  if (broken.length + rest.length === 0) return null;
  return (
    <ul class="reasons">
      {broken.map((threshold, index) => (
        <li key={`${index} ${threshold.expression}`}>
          <code>{threshold.expression}</code>
          {several && threshold.workflow !== null ? ` of ${threshold.workflow}` : ""}:{" "}
          <b>{threshold.actualText}</b>{" "}
          <WhenBeyond {...{ threshold, view }} lead="beyond the limit " />
        </li>
      ))}
      {rest.map((reason) => (
        <li key={reason}>{sentence(reason)}</li>
      ))}
    </ul>
  );
}

export function Warnings({ summary }: SummaryProps) {
  const { generator, lost } = summary;
  const title = generatorTitle(generator);
  return (
    <>
      {title !== null && (
        <Alert tone="warn" title={title}>
          <p>
            {sentence(
              generator.reason ?? "the target might have done better than these figures say",
            )}
          </p>
        </Alert>
      )}
      {lost.length > 0 && (
        <Alert tone="bad" title="Parts of this run were lost">
          <ul>
            {lost.map(({ core, atSeconds, what, cost }) => (
              <li key={`${core} ${atSeconds}`}>
                At {formatSeconds(atSeconds)}: {sentence(what)} Lost: {sentence(cost)}
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </>
  );
}

/** Texts of a run begin in lower case. */
function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/** Notes that a reader needs once, and need not read again in each run. */
export function Notes({ summary }: SummaryProps) {
  const { notes } = summary;
  if (notes.length === 0) return null;
  const title = `${notes.length === 1 ? "A remark" : `${notes.length} remarks`} on reading these numbers`;
  return (
    <Folded title={title}>
      <ul>
        {notes.map((note) => (
          <li key={note}>{sentence(note)}</li>
        ))}
      </ul>
    </Folded>
  );
}

interface Figure {
  readonly name: string;
  readonly value: string;
  readonly remark: string;
  readonly bad?: boolean;
}

/** Metrics of the whole run, or of the selected stretch. */
export function Headline({ view }: ViewProps) {
  const { range } = useCharts();
  const figures = range === null ? wholeFigures(view) : stretchFigures(view, range);
  return (
    <dl class="figures" aria-label="Figures">
      {figures.map(({ bad, name, remark, value }) => (
        <div key={name} class={bad === true ? "bad" : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          <dd class="remark">{remark}</dd>
        </div>
      ))}
    </dl>
  );
}

function wholeFigures({ steps, summary }: RunView): Figure[] {
  const sum = (value: (view: (typeof steps)[number]) => number) =>
    steps.reduce((total, step) => total + value(step), 0);
  const requests = sum(({ step }) => step.requests);
  const failed = sum(({ step }) => step.failed);
  const { totals } = summary;
  const iterations = summary.workflows.reduce((n, each) => n + each.iterations.completed, 0);
  const [received, sent] = [sum(({ step }) => step.bytesIn), sum(({ step }) => step.bytesOut)];
  const perSecond = totals?.ratePerSecond ?? sum(({ step }) => step.ratePerSecond);
  return [
    ...countFigures(
      requests,
      failed,
      perSecond,
      {
        requests: `${formatCount(iterations)} iterations`,
        rate: "all steps together",
      },
      erring(summary),
    ),
    ...latencyFigures(totals?.latencyMs ?? earlierLatency(steps), "latency of all steps"),
    { name: "Received", value: formatBytes(received), remark: `${formatBytes(sent)} sent` },
  ];
}

/** Results of earlier versions have only histograms of two digits. */
function earlierLatency(steps: RunView["steps"]): LatencyFigures {
  const buckets = bucketsOf(mergeHistograms(steps.map(({ step }) => step.histogram)));
  const count = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const quantile = (fraction: number) => Number(quantileOf(buckets, fraction).toPrecision(2));
  return { count, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
}

function stretchFigures({ steps, track }: RunView, range: Range): Figure[] {
  let [requests, failed] = [0, 0];
  for (const { step } of steps) {
    const counts = countsIn(step, range);
    requests += counts.requests;
    failed += counts.failed;
  }
  const { all } = stretchOf(track, range);
  const seconds = range[1] - range[0];
  const remark = `${clockAt(range[0], track.windowSeconds)} to ${clockAt(range[1], track.windowSeconds)}`;
  return [
    ...countFigures(
      requests,
      failed,
      requests / seconds,
      { requests: remark, rate: remark },
      false,
    ),
    ...latencyFigures(all, remark),
    { name: "Max", value: all.count === 0 ? "–" : formatMs(all.max), remark },
  ];
}

function countFigures(
  requests: number,
  failed: number,
  perSecond: number,
  remarks: { readonly requests: string; readonly rate: string },
  alarming: boolean,
): Figure[] {
  const share = requests === 0 ? 0 : failed / requests;
  return [
    { name: "Requests", value: formatCount(requests), remark: remarks.requests },
    { name: "Rate", value: formatRate(perSecond), remark: remarks.rate },
    {
      name: "Failed",
      value: requests === 0 ? "–" : formatPercent(share),
      remark: `${formatCount(failed)} requests`,
      bad: failed > 0 && (alarming || share >= FAILED_MANY),
    },
  ];
}

type LatencyFigures = Pick<Distribution, "count" | "p50" | "p95" | "p99">;

function latencyFigures(latency: LatencyFigures, remark: string): Figure[] {
  const value = (ms: number) => (latency.count === 0 ? "–" : formatMs(ms));
  return [
    { name: "Median", value: value(latency.p50), remark },
    { name: "p95", value: value(latency.p95), remark },
    { name: "p99", value: value(latency.p99), remark },
  ];
}

/** Failures beyond a threshold stand out however few they are. */
function erring({ thresholds }: RunSummary): boolean {
  return thresholds.some(({ expression, passed }) => !passed && /\berrors\b/.test(expression));
}

function dateText(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}
