/** Runs side by side: trends, metrics, and the p95 of every step. */

import {
  formatCompactRate,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
} from "../../src/core/load/results/format.ts";
import { changeText } from "../../src/reporters/compare/comparison-text.ts";
import {
  breakpointText,
  changeOf,
  type TrendPoint,
  type Trends,
} from "../../src/reporters/trends/trends.ts";
import { FragmentContext, useFragmentState } from "../shared/fragment.ts";
import { Frame } from "../shared/frame.tsx";
import { Chip, Section, Spark, type Tone } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { ThemeContext, useThemeChoice } from "../shared/theme.ts";
import { RunsChart } from "./runs-chart.tsx";

const TONES: Readonly<Record<TrendPoint["verdict"], Tone>> = {
  passed: "good",
  failed: "bad",
  interrupted: "warn",
};
const SECTIONS = [
  { id: "course", title: "Over time" },
  { id: "runs", title: "Runs" },
  { id: "steps", title: "Steps" },
];

export function TrendsPage({ trends: { name, points } }: { readonly trends: Trends }) {
  const [theme, choice, choose] = useThemeChoice();
  const fragment = useFragmentState();
  const searched = points.some(({ breakpoint }) => breakpoint !== null);
  return (
    <ThemeContext.Provider value={theme}>
      <FragmentContext.Provider value={fragment}>
        <Frame sections={SECTIONS} theme={{ choice, choose }}>
          <h1 class="page-title">
            {name}{" "}
            <span class="quiet">
              {points.length === 1 ? "1 run" : `the last ${points.length} runs`}
            </span>
          </h1>
          <Section id="course" title="Over time">
            <div class="card stack">
              {searched && (
                <RunsChart
                  title="Breakpoint"
                  points={points}
                  format={formatNumber}
                  lines={[
                    {
                      label: "held",
                      color: "--good",
                      value: ({ breakpoint }) => breakpoint?.held ?? null,
                    },
                    {
                      label: "broke",
                      color: "--fail",
                      value: ({ breakpoint }) => breakpoint?.broke ?? null,
                    },
                  ]}
                />
              )}
              <RunsChart
                title="Latency of all steps"
                points={points}
                format={formatMs}
                lines={[
                  { label: "p50", color: "--p50", value: ({ p50 }) => p50 },
                  { label: "p95", color: "--p95", value: ({ p95 }) => p95 },
                  { label: "p99", color: "--p99", value: ({ p99 }) => p99 },
                ]}
              />
              <RunsChart
                title="Requests per second"
                points={points}
                format={formatCompactRate}
                lines={[
                  { label: "rate", color: "--rate", value: ({ ratePerSecond }) => ratePerSecond },
                ]}
              />
              <RunsChart
                title="Failed"
                points={points}
                format={formatPercent}
                lines={[{ label: "failed", color: "--fail", value: ({ failed }) => failed }]}
              />
            </div>
          </Section>
          <Runs points={points} />
          <Steps points={points} />
        </Frame>
      </FragmentContext.Provider>
    </ThemeContext.Provider>
  );
}

function Runs({ points }: { readonly points: readonly TrendPoint[] }) {
  const ms = (value: number | null) => ({
    text: value === null ? "–" : formatMs(value),
    order: value,
  });
  const numeric = (title: string) => ({ title, numeric: true });
  const searched = points.some(({ breakpoint }) => breakpoint !== null);
  const rows = points
    .map((point, at) => {
      const change = changeOf(points, at);
      const started = point.startedAt.slice(0, 16).replace("T", " ");
      return {
        key: point.folder,
        cells: [
          {
            order: point.startedAt,
            text: (
              <>
                <a href={`./${encodeURI(point.folder)}/report.html`}>{started}</a>
                {point.title !== null && <span class="quiet note">{point.title}</span>}
              </>
            ),
          },
          {
            order: point.verdict,
            text: (
              <>
                <Chip tone={TONES[point.verdict]}>{point.verdict}</Chip>
                {point.doubt !== null && (
                  <span class="quiet note">not to be trusted: {point.doubt}</span>
                )}
              </>
            ),
          },
          ...(searched
            ? [{ text: breakpointText(point), order: point.breakpoint?.held ?? null }]
            : []),
          { text: formatCount(point.requests), order: point.requests },
          { text: formatRate(point.ratePerSecond), order: point.ratePerSecond },
          { text: formatPercent(point.failed), order: point.failed },
          ms(point.p50),
          ms(point.p95),
          { text: change === null ? "" : changeText("p95", change), order: change },
          ms(point.p99),
        ],
      };
    })
    .toReversed();
  return (
    <Section id="runs" title="Runs">
      <Table
        caption="Runs, the newest first"
        sortKey="sort"
        columns={[
          { title: "Started (UTC)" },
          { title: "Verdict" },
          ...(searched ? [{ title: "Breakpoint" }] : []),
          ...["Requests", "Rate", "Failed", "p50", "p95", "p95 change", "p99"].map(numeric),
        ]}
        rows={rows}
      />
    </Section>
  );
}

function Steps({ points }: { readonly points: readonly TrendPoint[] }) {
  const names = [...new Set(points.flatMap(({ steps }) => steps.map(({ name }) => name)))];
  const rows = names.map((name) => {
    const course = points.map(({ steps }) => steps.find((step) => step.name === name)?.p95 ?? null);
    const [first, last] = [course.find((value) => value !== null) ?? null, course.at(-1) ?? null];
    const change = first === null || last === null || first === 0 ? null : last / first - 1;
    return {
      key: name,
      cells: [
        { text: name, order: name },
        { text: <Spark values={course} color="--p95" /> },
        { text: first === null ? "–" : formatMs(first), order: first },
        { text: last === null ? "–" : formatMs(last), order: last },
        { text: change === null ? "" : changeText("p95", change), order: change },
      ],
    };
  });
  return (
    <Section id="steps" title="p95 of steps">
      <Table
        caption="p95 of each step over the runs"
        sortKey="steps"
        columns={[
          { title: "Step" },
          { title: "Over the runs", unsorted: true },
          { title: "First", numeric: true },
          { title: "Last", numeric: true },
          { title: "Change", numeric: true },
        ]}
        rows={rows}
      />
    </Section>
  );
}
