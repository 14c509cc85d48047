/** Response time against load: one dot per window, so that a knee in the curve is visible. */

import { useMemo, useRef, useState } from "preact/hooks";
import {
  asTick,
  formatCompactRate,
  formatMs,
  formatRate,
} from "../../src/core/load/results/format.ts";
import { linearTicks } from "../../src/core/load/results/ticks.ts";
import { useCharts } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { useNear, useWidth } from "../shared/near.ts";
import { Table, TableToggle } from "../shared/table.tsx";
import { percentileLine, type Track } from "../shared/tracks.ts";

const HEIGHT = 220;
const MARGIN = { top: 10, right: 26, bottom: 30, left: 64 };

interface Dot {
  readonly at: number;
  readonly perSecond: number;
  readonly ms: number;
}

function dotsOf(track: Track): Dot[] {
  const p95 = percentileLine(track, "p95");
  return track.starts.flatMap((at, index) => {
    const ms = p95[index] ?? null;
    const perSecond = (track.latency[index]?.total ?? 0) / track.windowSeconds;
    return ms === null || perSecond === 0 ? [] : [{ at, perSecond, ms }];
  });
}

export function LoadScatter({ of, track }: { readonly of: string; readonly track: Track }) {
  const holder = useRef<HTMLDivElement>(null);
  const near = useNear(holder);
  const width = useWidth(holder);
  const [asTable, setAsTable] = useState(false);
  const { full, range } = useCharts();
  const [from, to] = range ?? full;
  const all = useMemo(() => dotsOf(track), [track]);
  const dots = all.filter(({ at }) => at >= from - 1e-6 && at < to);
  if (all.length < 3) return null;
  const title = "Response time against load";
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">p95 of each window over its requests per second</span>
        <span class="chart-side">
          <TableToggle of={title} on={asTable} set={setAsTable} />
        </span>
      </figcaption>
      <div class="canvas" ref={holder} style={{ minHeight: `${HEIGHT}px` }}>
        {near && width > 0 && <Dots {...{ dots, of, width }} windowSeconds={track.windowSeconds} />}
      </div>
      {asTable && (
        <div class="chart-table">
          <Table
            caption={`${title} of ${of}`}
            captioned
            columns={[
              { title: "At" },
              { title: "Requests", numeric: true },
              { title: "p95", numeric: true },
            ]}
            rows={dots.map(({ at, ms, perSecond }) => ({
              key: String(at),
              cells: [
                { text: clockAt(at, track.windowSeconds) },
                { text: formatRate(perSecond) },
                { text: formatMs(ms) },
              ],
            }))}
          />
        </div>
      )}
    </figure>
  );
}

interface DotsProps {
  readonly dots: readonly Dot[];
  readonly of: string;
  readonly width: number;
  readonly windowSeconds: number;
}

function Dots({ dots, of, width, windowSeconds }: DotsProps) {
  const across = linearTicks(Math.max(0, ...dots.map(({ perSecond }) => perSecond)), 5);
  const upwards = linearTicks(Math.max(0, ...dots.map(({ ms }) => ms)), 4);
  const [right = 1, top = 1] = [across.at(-1), upwards.at(-1)];
  const [plotWidth, plotHeight] = [
    width - MARGIN.left - MARGIN.right,
    HEIGHT - MARGIN.top - MARGIN.bottom,
  ];
  const x = (perSecond: number) => MARGIN.left + (perSecond / right) * plotWidth;
  const y = (ms: number) => MARGIN.top + (1 - ms / top) * plotHeight;
  const label =
    `p95 of ${of} over its requests per second, ${dots.length} windows: ` +
    `up to ${formatRate(right)} and ${formatMs(top)}. The table has every window.`;
  return (
    <svg width={width} height={HEIGHT} role="img" aria-label={label} class="scatter">
      {upwards.map((tick) => (
        <g key={tick}>
          <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
          <text x={MARGIN.left - 9} y={y(tick) + 4} text-anchor="end">
            {asTick(formatMs(tick))}
          </text>
        </g>
      ))}
      {across.map((tick) => (
        <text key={tick} x={x(tick)} y={HEIGHT - 10} text-anchor="middle">
          {asTick(formatCompactRate(tick))}
        </text>
      ))}
      {dots.map(({ at, ms, perSecond }) => (
        <circle key={at} cx={x(perSecond)} cy={y(ms)} r="3">
          <title>
            {`${clockAt(at, windowSeconds)}: ${formatRate(perSecond)}, p95 ${formatMs(ms)}`}
          </title>
        </circle>
      ))}
    </svg>
  );
}
