/** Trends for a terminal: one line per run, the newest last. */

import { clean } from "../../core/base/terminal-text.ts";
import { type Align, tableLines } from "../../core/base/text-table.ts";
import {
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
} from "../../core/load/results/format.ts";
import { changeText } from "../compare/comparison-text.ts";
import { breakpointText, changeOf, type TrendPoint, type Trends } from "./trends.ts";

const HEADERS = ["requests", "rate", "failed", "p50", "p95", "change", "p99"];

export function trendsText({ name, points }: Trends): string {
  const searched = points.some(({ breakpoint }) => breakpoint !== null);
  const breakpoint = (text: string): string[] => (searched ? [text] : []);
  const rows = points.map((point, at) => [
    ...nameOf(point),
    ...breakpoint(breakpointText(point)),
    ...figuresOf(point, changeOf(points, at)),
    clean(point.folder),
  ]);
  const headers = ["started (UTC)", "verdict", ...breakpoint("breakpoint"), ...HEADERS, "folder"];
  const first = headers.indexOf("requests");
  const aligns = headers.map(
    (_, at): Align => (at >= first && at < first + HEADERS.length ? "right" : "left"),
  );
  const doubtful = points.some(({ doubt }) => doubt !== null);
  return [
    `${clean(name)}: ${points.length === 1 ? "1 run" : `the last ${points.length} runs`}`,
    "",
    ...tableLines([headers, ...rows], aligns),
    ...(doubtful
      ? ["", "? not to be trusted: the generator was the limit, or parts were lost"]
      : []),
    "",
  ].join("\n");
}

function nameOf({ doubt, startedAt, verdict }: TrendPoint): string[] {
  const started = startedAt.slice(0, 16).replace("T", " ");
  return [started, `${VERDICTS[verdict]}${doubt === null ? "" : " ?"}`];
}

function figuresOf(point: TrendPoint, change: number | null): string[] {
  const ms = (value: number | null) => (value === null ? "–" : formatMs(value));
  return [
    formatCount(point.requests),
    formatRate(point.ratePerSecond),
    formatPercent(point.failed),
    ms(point.p50),
    ms(point.p95),
    change === null ? "" : changeText("p95", change),
    ms(point.p99),
  ];
}

const VERDICTS = { passed: "✓ passed", failed: "✗ failed", interrupted: "‖ interrupted" } as const;
