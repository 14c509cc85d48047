/** All latencies over time: one column per window, darker with more calls. */

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { formatMs } from "../../src/core/load/results/format.ts";
import type { Distribution } from "../../src/core/load/results/model.ts";
import { useCharts } from "../shared/charts.ts";
import type { Limit } from "../shared/plot.ts";
import { cssColor, useTheme } from "../shared/theme.ts";
import { TimeChart } from "../shared/time-chart.tsx";
import { bandEdgeMs, type HeatMap, heatMapOf, type Track } from "../shared/tracks.ts";
import { percentileLines, percentileTexts, trackMiddles } from "./lines.ts";
import { windowsText } from "./run-view.ts";

interface Props {
  readonly id: string;
  readonly track: Track;
  readonly whole: Distribution;
  readonly limits: readonly Limit[];
  readonly of: string;
  readonly height?: number;
}

export function LatencyHeatMap({ height, id, limits, of, track, whole }: Props) {
  const theme = useTheme();
  const heat = useMemo(() => heatMapOf(track), [track]);
  const lines = useMemo(
    () => percentileLines(track, whole).map((line) => ({ ...line, width: 1.5 })),
    [track, whole],
  );
  const moments = useMemo(() => trackMiddles(track), [track]);
  const paint = useMemo(() => (chart: uPlot) => paintHeat(chart, track, heat), [heat, theme]);
  const { range } = useCharts();
  const stretch = useMemo(() => percentileTexts(range, track), [range, track]);
  if (track.starts.length === 0) return null;
  return (
    <TimeChart
      id={id}
      title="Latency heat map"
      note={windowsText(track.windowSeconds)}
      description={`All latencies of ${of} over time, logarithmic; the lines are percentiles.`}
      windowSeconds={track.windowSeconds}
      atSeconds={moments}
      {...{ lines, limits, paint, stretch }}
      format={formatMs}
      formatTick={formatMs}
      height={height ?? 230}
      ends={[bandEdgeMs(heat, 0) / 1.05, bandEdgeMs(heat, heat.bands) * 1.05]}
      logarithmic
    />
  );
}

/** Lightest visible value. */
const ALPHA_MIN = 0.1;

function paintHeat(chart: uPlot, { starts, windowSeconds }: Track, heat: HeatMap): void {
  const { bbox, ctx, valToPos } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = cssColor("--heat");
  const edges = Array.from({ length: heat.bands + 1 }, (_, band) =>
    Math.round(valToPos(bandEdgeMs(heat, band), "y", true)),
  );
  const strongest = Math.log1p(heat.most);
  for (const [at, column] of heat.columns.entries()) {
    const start = starts[at] ?? 0;
    const left = Math.round(valToPos(start, "x", true));
    const right = Math.round(valToPos(start + windowSeconds, "x", true));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    for (let band = 0; band < column.length; band++) {
      const count = column[band] ?? 0;
      if (count === 0) continue;
      ctx.globalAlpha = ALPHA_MIN + (1 - ALPHA_MIN) * (Math.log1p(count) / strongest) ** 1.5;
      const [bottom = 0, top = 0] = [edges[band], edges[band + 1]];
      ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top);
    }
  }
  ctx.restore();
}
