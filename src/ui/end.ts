/**
 * The end result, in the order of a reader's questions: did it pass and by how much, can I trust the numbers, what are
 * they per step, what went wrong, where are the files. Pure: summary in, styled lines out; full mode prints them in
 * colour, ci mode plain.
 */

import { clean, shorten, wrap } from "../core/base/terminal-text.ts";
import { doubtOf, isRejected, trustOf } from "../core/load/results/doubt.ts";
import {
  formatCount,
  formatCounted,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../core/load/results/format.ts";
import { generatorTitle } from "../core/load/results/generator-health.ts";
import type { RunEnd } from "../core/load/results/live.ts";
import { marginText } from "../core/load/results/margin.ts";
import type {
  Loss,
  RunSummary,
  ThresholdOutcome,
  Totals,
  Verdict,
} from "../core/load/results/model.ts";
import { partialOf } from "../core/load/results/partial.ts";
import { detailLines } from "./end-details.ts";
import { type Line, line, span } from "./lines.ts";
import { Style, type StyleId } from "./style.ts";
import { tableLines } from "./table.ts";

const WIDTH_MIN = 80;
const WIDTH_MAX = 160;
const MESSAGES_SHOWN_MAX = 20;

interface KeptMessages {
  readonly lines: readonly string[];
  /** Older ones that were dropped. */
  readonly dropped: number;
}

export function endLines(end: RunEnd | undefined, columns: number, messages: KeptMessages): Line[] {
  const width = Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, columns));
  if (end === undefined) return messageLines(messages, width);
  const { summary } = end;
  const lines = [
    ...verdictLines(summary, width),
    ...trustLines(summary, width),
    ...detailLines(summary, width),
    ...messageLines(messages, width),
    ...reportLines(summary, width),
    ...fileLines(end),
  ];
  return lines.length > SCREEN_ROWS ? [...lines, [], echo(summary, width)] : lines;
}

const EVENTS_SHOWN_MAX = 5;
/** Longer results scroll the verdict away on a common terminal, so its head is repeated at the end. */
const SCREEN_ROWS = 23;

function echo(summary: RunSummary, width: number): Line {
  const { thresholds } = summary;
  const failed = thresholds.filter(({ passed }) => !passed);
  const doubtful = doubtOf(summary) === null ? "" : ", not to be trusted";
  const badge = span(` ${verdictText(summary)}${doubtful} `, badgeOf(summary));
  if (summary.headline !== undefined && failed.length === 0)
    return line(badge, span(`  ${shorten(clean(summary.headline), width - 30)}`, Style.bold));
  if (thresholds.length === 0) return line(badge, "  no thresholds were set");
  if (failed.length === 0) {
    const held =
      thresholds.length === 1
        ? "the threshold held"
        : `all ${formatCount(thresholds.length)} thresholds held`;
    return line(badge, span(`  ${held}`, Style.good));
  }
  const [first] = failed;
  const more = failed.length > 1 ? `, and ${failed.length - 1} more` : "";
  const text = clean(`✗ ${first?.expression ?? ""}: ${first?.actualText ?? ""}`);
  return line(badge, span(`  ${shorten(text, width - 30 - doubtful.length)}${more}`, Style.bad));
}

const BADGES: Readonly<Record<Verdict, StyleId>> = {
  passed: Style.goodBadge,
  failed: Style.badBadge,
  interrupted: Style.warnBadge,
};

/** Marks a verdict that only a part of a cluster reported. */
function verdictText(summary: RunSummary): string {
  if (isRejected(summary)) return "UNTRUSTED";
  return `${summary.verdict}${partialOf(summary) === null ? "" : ", partial"}`.toUpperCase();
}

function badgeOf(summary: RunSummary): StyleId {
  if (isRejected(summary)) return Style.badBadge;
  const isDoubtful = summary.verdict === "passed" && !trustOf(summary).trusted;
  return isDoubtful ? Style.warnBadge : BADGES[summary.verdict];
}

/** Warm-up and setup make a run longer, not slower. Workflows may run side by side or one after another. */
function measuredSeconds({ durationSeconds, workflows }: RunSummary): number {
  const measured = workflows.reduce((sum, workflow) => sum + workflow.elapsedSeconds, 0);
  return Math.min(durationSeconds, measured);
}

/** Results of earlier versions have no totals: then they are added up. */
function totalsOf(
  summary: RunSummary,
): Pick<Totals, "requests" | "failed" | "sent" | "ratePerSecond"> {
  if (summary.totals !== undefined) return summary.totals;
  const steps = summary.workflows.flatMap((workflow) => workflow.steps);
  const requests = steps.reduce((sum, step) => sum + step.requests, 0);
  const failed = steps.reduce((sum, step) => sum + step.failed, 0);
  const seconds = measuredSeconds(summary);
  return { requests, failed, sent: requests, ratePerSecond: seconds > 0 ? requests / seconds : 0 };
}

function nameOf({ name, title }: RunSummary): string {
  return title === undefined ? name : `${name}, ${title}`;
}

function verdictLines(summary: RunSummary, width: number): Line[] {
  const { failed, ratePerSecond, requests, sent } = totalsOf(summary);
  const figures = [
    formatSeconds(summary.durationSeconds),
    formatCounted(requests, "request"),
    ...(sent === requests ? [] : [`${formatCount(sent)} on the wire`]),
    formatRate(ratePerSecond),
    failed === 0
      ? "none failed"
      : `${formatCount(failed)} failed (${formatPercent(failed / requests)})`,
  ].join(" · ");
  const lines: Line[] = [
    [],
    line(
      span(` ${verdictText(summary)} `, badgeOf(summary)),
      span(
        `  ${shorten(clean(nameOf(summary)), width - 6 - verdictText(summary).length)}`,
        Style.bold,
      ),
    ),
    ...headlineLines(summary, width),
    ...doubtLines(summary, width),
    line(
      `  ${shorten(summary.headline === undefined ? figures : `all loads: ${figures}`, width - 2)}`,
    ),
  ];
  lines.push(...probeLines(summary, width));
  if (summary.thresholds.length > 0) lines.push([], ...thresholdLines(summary.thresholds, width));
  const reasons = newReasons(summary);
  if (reasons.length > 0) lines.push([]);
  const style = summary.verdict === "interrupted" ? Style.warn : Style.bad;
  for (const reason of reasons) lines.push(...bullet("•", reason, style, width));
  return lines;
}

/** The answer of a search comes before everything else. */
function headlineLines({ headline, workflows }: RunSummary, width: number): Line[] {
  if (headline === undefined) return [];
  const isFound = workflows.every(({ breakpoint }) => breakpoint?.held !== null);
  return bullet("▲", headline, isFound ? Style.bold : Style.bad, width);
}

/** Loads that a search tried, in order. */
function probeLines({ workflows }: RunSummary, width: number): Line[] {
  return workflows.flatMap(({ breakpoint }) => {
    if (breakpoint === undefined || breakpoint.probes.length === 0) return [];
    const rows = breakpoint.probes.map(({ held, load, reason }) => {
      const style = held ? Style.good : Style.bad;
      const unit = breakpoint.of === "rate" ? "/s" : " users";
      return [
        span(`${held ? "✓" : "✗"} ${formatNumber(load)}${unit}`, style),
        span(held ? "held" : "broke", style),
        span(reason ?? "", Style.dim),
      ];
    });
    const columns = [
      { title: "load tried", align: "left" },
      { title: "result", align: "left" },
      { title: "reason", align: "left" },
    ] as const;
    return [[], ...tableLines({ columns, rows }, width)];
  });
}

/** Doubts about the numbers apply to the verdict, passed or failed. */
function doubtLines(summary: RunSummary, width: number): Line[] {
  const doubt = doubtOf(summary);
  return doubt === null ? [] : bullet("!", `not to be trusted: ${doubt}`, Style.warn, width);
}

/** Reasons that only repeat a threshold of the list above are skipped. */
function newReasons({ reasons, thresholds }: RunSummary): string[] {
  const said = thresholds.filter(({ passed }) => !passed).map(({ expression }) => expression);
  return reasons.filter((reason) => !said.some((expression) => reason.includes(expression)));
}

function thresholdLines(thresholds: readonly ThresholdOutcome[], width: number): Line[] {
  const several = new Set(thresholds.map(({ workflow }) => workflow)).size > 1;
  const sorted = [...thresholds].sort((a, b) => Number(a.passed) - Number(b.passed));
  const nameOf = ({ expression, workflow }: ThresholdOutcome): string =>
    `${expression}${several ? ` (${workflow ?? "whole run"})` : ""}`;
  // A sentence for an actual value would cut the names beside it: it gets lines of its own.
  const isLong = ({ actualText }: ThresholdOutcome): boolean => actualText.length > width / 3;
  const long = sorted.filter(isLong).flatMap((threshold) => {
    const style = threshold.passed ? Style.good : Style.bad;
    const mark = threshold.passed ? "✓" : "✗";
    return bullet(mark, `${nameOf(threshold)}: ${threshold.actualText}`, style, width);
  });
  const short = sorted.filter((threshold) => !isLong(threshold));
  const rows = short.map((threshold) => {
    const style = threshold.passed ? Style.good : Style.bad;
    return [
      span(`${threshold.passed ? "✓" : "✗"} ${nameOf(threshold)}`, style),
      span(threshold.actualText, style),
      span(marginText(threshold) + (threshold.aborted ? "; ended the run" : ""), Style.dim),
    ];
  });
  const columns = [
    { title: "threshold", align: "left" },
    { title: "actual", align: "right" },
    { title: "margin", align: "left" },
  ] as const;
  return [...long, ...(rows.length === 0 ? [] : tableLines({ columns, rows }, width))];
}

/** "2 cores", or "1 of 2 cores" where one was lost. */
function coresText(cores: readonly { readonly alive: boolean }[]): string {
  const alive = cores.filter((core) => core.alive).length;
  const all = formatCounted(cores.length, "core");
  return alive === cores.length ? all : `${alive} of ${all}`;
}

/** Whether the numbers can be trusted: the generator, losses, notes. */
function trustLines(summary: RunSummary, width: number): Line[] {
  const { events = [], generator, lost, notes } = summary;
  const lines: Line[] = [[]];
  const health =
    `busiest core ${formatPercent(generator.cpu)} CPU, event-loop lag p99 ${formatMs(generator.lagMsP99)}, ` +
    coresText(generator.cores);
  const title = generatorTitle(generator);
  if (title !== null) {
    const text = `${title}: ${generator.reason ?? "it was saturated"} (${health}).`;
    lines.push(...bullet("!", text, Style.bad, width));
  } else {
    lines.push(...bullet("·", `load generator: ${health}`, Style.dim, width));
  }
  lines.push(...datacenterLines(summary, width));
  for (const loss of lost) lines.push(...bullet("!", lossText(loss), Style.bad, width));
  for (const { atSeconds, kind, text } of events.slice(0, EVENTS_SHOWN_MAX))
    if (kind !== "core lost")
      lines.push(...bullet("·", `at ${formatSeconds(atSeconds)}: ${text}`, Style.dim, width));
  if (events.length > EVENTS_SHOWN_MAX) {
    const rest = events.length - EVENTS_SHOWN_MAX;
    const more = `and ${formatCount(rest)} more event${rest === 1 ? "" : "s"}`;
    lines.push(...bullet("·", `${more}; all are in the report`, Style.dim, width));
  }
  for (const note of notes) lines.push(...bullet("·", note, Style.dim, width));
  return lines;
}

/** Parts of a job over several datacenters: the share of each, and how it ended. */
function datacenterLines({ cluster }: RunSummary, width: number): Line[] {
  const all = cluster?.datacenters ?? [];
  if (all.length < 2) return [];
  return all.flatMap(({ failed, latencyMs, name, requests, status, workers }) => {
    const p95 = latencyMs.count === 0 ? "" : `, p95 ${formatMs(latencyMs.p95)}`;
    const did = `${formatCounted(requests, "request")}, ${formatCount(failed)} failed${p95}`;
    const style = status === "COMPLETED" ? Style.dim : Style.bad;
    return bullet(
      "·",
      `${name} ${status}: ${formatCounted(workers, "worker")}, ${did}`,
      style,
      width,
    );
  });
}

function lossText({ atSeconds, what, cost }: Loss): string {
  return `lost at ${formatSeconds(atSeconds)}: ${what}; ${cost}`;
}

function bullet(mark: string, text: string, style: StyleId, width: number): Line[] {
  return wrap(text, width - 4).map((part, index) =>
    line(span(index === 0 ? `  ${mark} ` : "    ", style), span(part, style)),
  );
}

function messageLines({ lines, dropped }: KeptMessages, width: number): Line[] {
  if (lines.length === 0) return [];
  const shown = lines.slice(-MESSAGES_SHOWN_MAX);
  const older = dropped + lines.length - shown.length;
  const title =
    older > 0
      ? `Messages (the last ${shown.length} of ${formatCount(older + shown.length)})`
      : "Messages";
  return [
    [],
    line(span(title, Style.heading)),
    ...shown.flatMap((text) => bullet("›", text, Style.text, width)),
  ];
}

/** Undelivered reports are no part of the verdict, and must not go unnoticed. (REP-5) */
function reportLines({ reports = [] }: RunSummary, width: number): Line[] {
  if (reports.length === 0) return [];
  return [
    [],
    line(span("Reports", Style.heading)),
    ...reports.flatMap(({ dropped, problem, reporter, sent, target, unconfirmed }) => {
      const arrived = unconfirmed === true ? " sent, unconfirmed" : "";
      const complete = dropped === 0 && problem === null;
      const points = sent + dropped === 0 ? "" : `, ${formatCount(sent)} points${arrived}`;
      const lost = dropped === 0 ? "" : `, ${formatCount(dropped)} dropped`;
      const why = problem === null ? "" : `: ${problem}`;
      const text = `${reporter} ${target}${points}${lost}${why}`;
      return bullet(complete ? "✓" : "!", text, complete ? Style.text : Style.warn, width);
    }),
  ];
}

function fileLines({ files, reportUrl }: RunEnd): Line[] {
  if (files.length === 0) return [];
  return [
    [],
    line(span("Files", Style.heading)),
    ...files.map((file) => {
      const name = span(file, Style.key);
      return line("  ", file.endsWith("report.html") ? { ...name, link: reportUrl } : name);
    }),
  ];
}
