/** One metric over runs: a dot per run that links to its report, crossed out where the run failed. */

import { useRef } from "preact/hooks";
import { asTick } from "../../src/core/load/results/format.ts";
import { linearTicks } from "../../src/core/load/results/ticks.ts";
import type { TrendPoint } from "../../src/reporters/trends/trends.ts";
import { useWidth } from "../shared/near.ts";

const HEIGHT = 190;
const MARGIN = { top: 12, right: 48, bottom: 30, left: 64 };

interface RunLine {
  readonly label: string;
  readonly color: string;
  readonly value: (point: TrendPoint) => number | null;
}

interface Props {
  readonly title: string;
  readonly points: readonly TrendPoint[];
  readonly lines: readonly RunLine[];
  readonly format: (value: number) => string;
}

export function RunsChart({ format, lines, points, title }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {lines.map(({ color, label }) => (
            <span key={label} class="legend-item">
              <svg width="18" height="8" aria-hidden="true">
                <line x1="0" x2="18" y1="4" y2="4" stroke-width="2.5" stroke={`var(${color})`} />
              </svg>
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="canvas" ref={holder} style={{ minHeight: `${HEIGHT}px` }}>
        {width > 0 && <Drawing {...{ format, lines, points, title, width }} />}
      </div>
    </figure>
  );
}

function Drawing({ format, lines, points, title, width }: Props & { readonly width: number }) {
  const values = points.flatMap((point) => lines.map(({ value }) => value(point) ?? 0));
  const ticks = linearTicks(Math.max(0, ...values), 4);
  const top = ticks.at(-1) ?? 1;
  const inner = width - MARGIN.left - MARGIN.right;
  const x = (at: number) =>
    MARGIN.left + (points.length < 2 ? inner / 2 : (at / (points.length - 1)) * inner);
  const y = (value: number) =>
    MARGIN.top + (1 - value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const every = Math.max(1, Math.ceil(points.length / Math.max(1, Math.floor(inner / 90))));
  return (
    <svg class="runs" width={width} height={HEIGHT}>
      <title>{title}</title>
      {ticks.map((tick) => (
        <g key={tick}>
          <line class="axis" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
          <text x={MARGIN.left - 9} y={y(tick) + 4} text-anchor="end">
            {asTick(format(tick))}
          </text>
        </g>
      ))}
      {points.map(({ folder, startedAt }, at) =>
        at % every === 0 ? (
          <text key={folder} x={x(at)} y={HEIGHT - 10} text-anchor="middle">
            {startedAt.slice(5, 16).replace("T", " ")}
          </text>
        ) : null,
      )}
      {lines.map((line) => (
        <Course key={line.label} {...{ format, line, points, x, y }} />
      ))}
    </svg>
  );
}

interface CourseProps {
  readonly line: RunLine;
  readonly points: readonly TrendPoint[];
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
  readonly format: (value: number) => string;
}

function Course({ format, line, points, x, y }: CourseProps) {
  const known = points.flatMap((point, at) => {
    const value = line.value(point);
    return value === null ? [] : [{ at, point, value }];
  });
  const path = known
    .map(({ at, value }, i) => `${i === 0 ? "M" : "L"}${x(at)} ${y(value)}`)
    .join("");
  return (
    <g style={{ "--tone": `var(${line.color})` }}>
      <path d={path} />
      {known.map(({ at, point, value }) => {
        const started = point.startedAt.slice(0, 16).replace("T", " ");
        const text = `${started}, ${point.verdict}: ${line.label} ${format(value)}`;
        return (
          <a key={point.folder} href={`./${encodeURI(point.folder)}/report.html`} aria-label={text}>
            <title>{text}</title>
            <circle
              class={point.verdict === "passed" ? "passed" : "failed"}
              cx={x(at)}
              cy={y(value)}
              r="4"
            />
          </a>
        );
      })}
    </g>
  );
}
