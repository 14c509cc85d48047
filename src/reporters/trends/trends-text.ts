/** Trends for a terminal: one line per run, the newest last. */

import { type Align, tableLines } from "../../core/base/text-table.ts";
import { formatCount, formatMs, formatPercent, formatRate } from "../../core/run/results/format.ts";
import { changeText } from "../compare/comparison-text.ts";
import { changeOf, type TrendPoint, type Trends } from "./trends.ts";

const HEADERS = [
  ...["started", "verdict", "requests", "rate", "failed"],
  ...["p50", "p95", "change", "p99", "folder"],
];
const ALIGNS: readonly Align[] = HEADERS.map((_, at) => (at >= 2 && at <= 8 ? "right" : "left"));

export function trendsText({ name, points }: Trends): string {
  const rows = points.map((point, at) => rowOf(point, changeOf(points, at)));
  const doubtful = points.some(({ doubt }) => doubt !== null);
  return [
    `${name}: the last ${points.length} ${points.length === 1 ? "run" : "runs"}`,
    "",
    ...tableLines([HEADERS, ...rows], ALIGNS),
    ...(doubtful
      ? ["", "? not to be trusted: the generator was the limit, or parts were lost"]
      : []),
    "",
  ].join("\n");
}

function rowOf(point: TrendPoint, change: number | null): string[] {
  const ms = (value: number | null) => (value === null ? "–" : formatMs(value));
  return [
    point.startedAt.slice(0, 16).replace("T", " "),
    `${VERDICTS[point.verdict]}${point.doubt === null ? "" : " ?"}`,
    formatCount(point.requests),
    formatRate(point.ratePerSecond),
    formatPercent(point.failed),
    ms(point.p50),
    ms(point.p95),
    change === null ? "" : changeText("p95", change),
    ms(point.p99),
    point.folder,
  ];
}

const VERDICTS = { passed: "✓ passed", failed: "✗ failed", interrupted: "‖ interrupted" } as const;
