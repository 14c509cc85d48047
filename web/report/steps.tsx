/** All steps in one table: sortable by any metric, filtered by name, each with a card of its own. */

import { useMemo } from "preact/hooks";
import { formatCount, formatMs, formatRate } from "../../src/core/load/results/format.ts";
import type { Distribution } from "../../src/core/load/results/model.ts";
import { changeText } from "../../src/reporters/compare/comparison-text.ts";
import { useCharts } from "../shared/charts.ts";
import { useFragment } from "../shared/fragment.ts";
import { Failed, Section, Spark, thinned } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { percentileLine, type Range, stretchOf } from "../shared/tracks.ts";
import { countsIn, type RunView, type StepView } from "./run-view.ts";
import { StepCard } from "./step-card.tsx";

interface Props {
  readonly view: RunView;
  readonly baseline: RunView | null;
}

/** With this few steps, all cards are open from the start. */
const OPEN_ALL_MAX = 3;
const SPARK_POINTS = 48;
/** Further rows are shown on request, filtered by name or sorted to the top. */
const ROWS_MAX = 30;

/** Open cards: those in the address, else all of a few, else the worst step. */
function useOpenSteps(steps: readonly StepView[]) {
  const fragment = useFragment();
  const text = fragment.get("open");
  const open =
    text !== null
      ? text.split(",")
      : steps.length <= OPEN_ALL_MAX
        ? steps.map(({ id }) => id)
        : worst(steps);
  const toggle = (id: string) => {
    const next = open.includes(id) ? open.filter((one) => one !== id) : [...open, id];
    fragment.set({ open: next.join(",") }, open.includes(id) ? undefined : `step-${id}`);
  };
  return { open, toggle };
}

/** The step with the most failures, or the slowest when none failed. */
function worst(steps: readonly StepView[]): string[] {
  const rank = ({ step }: StepView) => step.failed * 1e9 + step.latencyMs.p95;
  return steps
    .toSorted((a, b) => rank(b) - rank(a))
    .slice(0, 1)
    .map(({ id }) => id);
}

export function Steps({ baseline, view }: Props) {
  const fragment = useFragment();
  const { range } = useCharts();
  const { open, toggle } = useOpenSteps(view.steps);
  const query = fragment.get("q") ?? "";
  const shown = view.steps.filter(({ name }) => name.toLowerCase().includes(query.toLowerCase()));
  const filter = (event: { readonly currentTarget: HTMLInputElement }) =>
    fragment.set({ q: event.currentTarget.value === "" ? null : event.currentTarget.value });
  return (
    <Section
      id="steps"
      title={`Steps${range === null ? "" : " in this stretch"}`}
      aside={
        <label class="filter">
          <span class="hidden">Filter steps by name</span>
          <input type="search" placeholder="Filter steps" value={query} onInput={filter} />
          {query !== "" && (
            <span class="quiet">
              {shown.length} of {view.steps.length}
            </span>
          )}
        </label>
      }
    >
      <StepsTable steps={shown} {...{ baseline, open, range, toggle, view }} />
      {view.steps
        .filter(({ id }) => open.includes(id))
        .map((step) => (
          <StepCard
            key={step.id}
            {...{ step, view }}
            baseline={matching(baseline, step)}
            close={() => toggle(step.id)}
          />
        ))}
    </Section>
  );
}

function matching(baseline: RunView | null, { name }: StepView): StepView | null {
  return baseline?.steps.find((step) => step.name === name) ?? null;
}

interface TableProps extends Props {
  readonly steps: readonly StepView[];
  readonly open: readonly string[];
  readonly range: Range | null;
  readonly toggle: (id: string) => void;
}

const FIGURES = ["p50", "p95", "p99", "p99_9", "max"] as const;

function StepsTable({ baseline, open, range, steps, toggle }: TableProps) {
  const sparks = useSparks(steps);
  const numeric = (title: string) => ({ title, numeric: true });
  const columns = [
    { title: "Step" },
    { title: "Rate over time", hidden: true, unsorted: true, wideOnly: true },
    ...["Requests", "Rate", "Failed"].map(numeric),
    ...FIGURES.map((figure) => numeric(figure.replace("_", "."))),
    ...(baseline === null ? [] : [numeric("p95 change")]),
    { title: "p95 over time", unsorted: true },
  ];
  const rows = steps.map((view) => {
    const { failed, latency, perSecond, requests } = figuresOf(view, range);
    const before = matching(baseline, view)?.step.latencyMs;
    const change =
      before !== undefined && before.p95 > 0 && latency.count > 0
        ? latency.p95 / before.p95 - 1
        : null;
    const spark = sparks.get(view.id);
    return {
      key: view.id,
      marked: open.includes(view.id),
      cells: [
        {
          text: <StepName {...{ view, toggle }} open={open.includes(view.id)} />,
          order: view.name,
        },
        { text: <Spark values={spark?.rate ?? []} color="--rate" /> },
        { text: formatCount(requests), order: requests },
        { text: formatRate(perSecond), order: perSecond },
        {
          text: <Failed failed={failed} of={requests} />,
          order: requests === 0 ? 0 : failed / requests,
        },
        ...FIGURES.map((figure) => msCell(latency, figure)),
        ...(baseline === null
          ? []
          : [{ text: change === null ? "–" : changeText("p95", change), order: change }]),
        { text: <Spark values={spark?.p95 ?? []} color="--p95" /> },
      ],
    };
  });
  return (
    <Table
      caption="Steps: requests and latency"
      sortKey="sort"
      rowsMax={ROWS_MAX}
      download="steps"
      {...{ columns, rows }}
    />
  );
}

function StepName({
  open,
  toggle,
  view,
}: {
  view: StepView;
  open: boolean;
  toggle: TableProps["toggle"];
}) {
  return (
    <button
      type="button"
      class="step-name"
      aria-expanded={open}
      aria-controls={open ? `step-${view.id}` : undefined}
      onClick={() => toggle(view.id)}
    >
      <span class="fold" aria-hidden="true" />
      {view.name}
    </button>
  );
}

function useSparks(steps: readonly StepView[]) {
  return useMemo(
    () =>
      new Map(
        steps.map(({ id, step, track }) => [
          id,
          {
            rate: thinned(step.series.requests, SPARK_POINTS),
            p95: thinned(percentileLine(track, "p95"), SPARK_POINTS),
          },
        ]),
      ),
    [steps.map(({ id }) => id).join()],
  );
}

/** Metrics of the whole run, or of a stretch of it. */
function figuresOf({ step, track }: StepView, range: Range | null) {
  if (range === null) {
    const { failed, latencyMs: latency, ratePerSecond: perSecond, requests } = step;
    return { failed, latency, perSecond, requests };
  }
  const { failed, requests } = countsIn(step, range);
  const perSecond = requests / (range[1] - range[0]);
  return { failed, requests, perSecond, latency: stretchOf(track, range).all };
}

function msCell(times: Distribution, figure: keyof Distribution) {
  return times.count === 0
    ? { text: <span class="quiet">–</span>, order: null }
    : { text: formatMs(times[figure]), order: times[figure] };
}
