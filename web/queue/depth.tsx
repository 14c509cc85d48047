/** Queue depth over the last minutes: queued and running as two lines on one scale. */

import { formatCount, formatMs } from "../../src/core/run/results/format.ts";

export interface DepthPoint {
  readonly at: number;
  readonly queued: number;
  readonly running: number;
}

const WIDTH = 1_000;
const HEIGHT = 90;
const PAD = 6;

export function DepthChart({ points }: { readonly points: readonly DepthPoint[] }) {
  const [first] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined || points.length < 2) return null;
  const most = Math.max(1, ...points.map((point) => Math.max(point.queued, point.running)));
  const span = Math.max(1, last.at - first.at);
  const path = (of: (point: DepthPoint) => number): string =>
    points
      .map((point, index) => {
        const x = ((point.at - first.at) / span) * WIDTH;
        const y = HEIGHT - PAD - (of(point) / most) * (HEIGHT - 2 * PAD);
        return `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
      })
      .join("");
  return (
    <>
      <svg class="depth" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img">
        <title>Queue depth</title>
        <line x1="0" x2={WIDTH} y1={HEIGHT - PAD} y2={HEIGHT - PAD} stroke="var(--line)" />
        <path
          d={path((point) => point.queued)}
          fill="none"
          stroke="var(--queued)"
          stroke-width="2"
          vector-effect="non-scaling-stroke"
        />
        <path
          d={path((point) => point.running)}
          fill="none"
          stroke="var(--running)"
          stroke-width="2"
          vector-effect="non-scaling-stroke"
        />
      </svg>
      <div class="dim">
        <span class="state QUEUED">queued</span> and <span class="state RUNNING">running</span> over
        the last {formatMs(span)}, at most {formatCount(most)}
      </div>
    </>
  );
}
