/** Latencies of one step: bars over a logarithmic axis, with the percentiles marked. */

import { useRef, useState } from "preact/hooks";
import { asTick, formatCount, formatMs } from "../../src/core/load/results/format.ts";
import type { StepSummary } from "../../src/core/load/results/model.ts";
import { logTicks } from "../../src/core/load/results/ticks.ts";
import { type Bucket, bucketsOf } from "../../src/reporters/file/quantiles.ts";
import { useNear, useWidth } from "../shared/near.ts";
import { Table, TableToggle } from "../shared/table.tsx";

const HEIGHT = 200;
/** Above the bars there is room for a line of labels per percentile. */
const MARGIN = { top: 62, right: 12, bottom: 26, left: 12 };
const LABEL_LINE = 14;
const LABEL_LINES = 4;
/** The axis spans at least this factor. */
const AXIS_RATIO_MIN = 1.5;
/** A non-empty bar stays visible, however tall its neighbours are. */
const BAR_HEIGHT_MIN = 1.5;

interface Bar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

export function Histogram({ step }: { readonly step: StepSummary }) {
  const holder = useRef<HTMLDivElement>(null);
  const near = useNear(holder);
  const width = useWidth(holder);
  const buckets = bucketsOf(step.histogram);
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">Latency histogram</span>
        <span class="legend">whole run, {formatCount(step.latencyMs.count)} requests</span>
        <span class="chart-side">
          <TableToggle of={"the histogram"} on={asTable} set={setAsTable} />
        </span>
      </figcaption>
      <div class="canvas" ref={holder} style={{ minHeight: `${HEIGHT}px` }}>
        {near && width > 0 && buckets.length > 0 && (
          <Bars step={step} buckets={buckets} width={width} />
        )}
      </div>
      {asTable && (
        <div class="chart-table">
          <Table
            caption={`Latencies of ${step.name}`}
            captioned
            columns={[
              { title: "Above" },
              { title: "Up to", numeric: true },
              { title: "Requests", numeric: true },
            ]}
            rows={buckets.map(({ count, fromMs, upToMs }) => ({
              key: String(upToMs),
              cells: [
                { text: formatMs(fromMs) },
                { text: formatMs(upToMs) },
                { text: formatCount(count) },
              ],
            }))}
          />
        </div>
      )}
    </figure>
  );
}

function Bars(props: { step: StepSummary; buckets: readonly Bucket[]; width: number }) {
  const { step, buckets, width } = props;
  const least = Math.max(buckets[0]?.fromMs ?? 0, 0.001);
  const most = Math.max(buckets.at(-1)?.upToMs ?? 1, least);
  // A narrow distribution is centred on the axis, with room for its labels on both sides.
  const room = Math.max(1, Math.sqrt(AXIS_RATIO_MIN / (most / least)));
  const [low, high] = [least / room, most * room];
  const inner = width - MARGIN.left - MARGIN.right;
  const span = Math.log(high / low);
  const x = (ms: number) => MARGIN.left + (Math.log(Math.max(ms, low) / low) / span) * inner;
  const bars = rebin(buckets, low, high, Math.max(20, Math.floor(inner / 9)));
  const tallest = Math.max(...bars.map(({ count }) => count));
  const floor = HEIGHT - MARGIN.bottom;
  const height = (count: number) =>
    Math.max((count / tallest) * (floor - MARGIN.top), BAR_HEIGHT_MIN);
  const { p50, p95, p99, max } = step.latencyMs;
  const label =
    `Histogram of latencies of ${step.name}: half are below ${formatMs(p50)}, ` +
    `95 % below ${formatMs(p95)}, 99 % below ${formatMs(p99)}, the longest took ${formatMs(max)}.`;
  return (
    <svg width={width} height={HEIGHT} role="img" aria-label={label} class="histogram">
      {bars.map(({ from, to, count }) => (
        <rect
          key={from}
          x={x(from) + 0.5}
          y={floor - height(count)}
          width={Math.max(x(to) - x(from) - 1, 1)}
          height={height(count)}
        >
          <title>{`${formatMs(from)} – ${formatMs(to)}: ${formatCount(count)}`}</title>
        </rect>
      ))}
      <line class="axis" x1={MARGIN.left} x2={width - MARGIN.right} y1={floor} y2={floor} />
      {logTicks(low, high, Math.max(3, inner / 56)).map((ms) => (
        <g key={ms}>
          <line class="axis" x1={x(ms)} x2={x(ms)} y1={floor} y2={floor + 4} />
          <text
            x={Math.max(2, Math.min(x(ms), width - 2))}
            y={HEIGHT - 8}
            text-anchor={x(ms) > width - 24 ? "end" : x(ms) < 24 ? "start" : "middle"}
          >
            {asTick(formatMs(ms))}
          </text>
        </g>
      ))}
      <Markers step={step} x={x} right={width - MARGIN.right} floor={floor} />
    </svg>
  );
}

interface MarkersProps {
  readonly step: StepSummary;
  readonly x: (ms: number) => number;
  readonly right: number;
  readonly floor: number;
}

function Markers({ step, x, right, floor }: MarkersProps) {
  const { p50, p95, p99, p99_9 } = step.latencyMs;
  const marks: [string, number][] = [
    ["p50", p50],
    ["p95", p95],
    ["p99", p99],
    ["p99.9", p99_9],
  ];
  // A label that would touch a previous one moves down a line.
  const ends = new Array<number>(LABEL_LINES).fill(Number.NEGATIVE_INFINITY);
  return (
    <>
      {marks.map(([name, ms]) => {
        const text = `${name} ${formatMs(ms)}`;
        const size = text.length * 6.1 + 8;
        // To the right of its marker, or to the left where there is no room.
        const start = x(ms) + size > right + 8 ? x(ms) - size + 2 : x(ms) + 3;
        const row = ends.findIndex((end) => start > end);
        if (row >= 0) ends[row] = Math.max(x(ms), start + size);
        return (
          <g key={name} class="marker">
            <line x1={x(ms)} x2={x(ms)} y1={4 + Math.max(row, 0) * LABEL_LINE} y2={floor} />
            {row >= 0 && (
              <text x={start} y={13 + row * LABEL_LINE}>
                {text}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** Bars of equal width on the logarithmic axis; a bucket across an edge is shared by its parts. */
function rebin(buckets: readonly Bucket[], low: number, high: number, wanted: number): Bar[] {
  // Never finer than the buckets themselves, or the bars would show a comb.
  const finest = Math.max(1, Math.floor(Math.log(high / low) / Math.log(1.105)));
  const count = Math.min(wanted, finest);
  const edge = (i: number) => low * (high / low) ** (i / count);
  const bars = Array.from({ length: count }, (_, i) => ({
    from: edge(i),
    to: edge(i + 1),
    count: 0,
  }));
  for (const bucket of buckets) {
    const width = bucket.upToMs - bucket.fromMs;
    for (const bar of bars) {
      const shared = Math.min(bar.to, bucket.upToMs) - Math.max(bar.from, bucket.fromMs);
      if (shared > 0) bar.count += width > 0 ? (bucket.count * shared) / width : bucket.count;
    }
  }
  return bars.filter((bar) => bar.count > 0);
}
