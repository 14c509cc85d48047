/** Requests by latency: a few ranges with bounds chosen by the reader, and failures apart. */

import { useMemo, useState } from "preact/hooks";
import { parseDuration } from "../../src/core/base/duration.ts";
import { formatCount, formatMs, formatPercent } from "../../src/core/load/results/format.ts";
import { useCharts } from "../shared/charts.ts";
import { useFragment } from "../shared/fragment.ts";
import { Table, TableToggle } from "../shared/table.tsx";
import { type Range, rangeCounts } from "../shared/tracks.ts";
import { latencyLimits } from "./limits.ts";
import { countsIn, type RunView, type StepView } from "./run-view.ts";

/** Bounds of a run without limits of its own, as Gatling's reports have them. */
const BOUNDS_MS = [800, 1_200];
const BOUNDS_MAX = 5;

interface Part {
  readonly label: string;
  readonly count: number;
  /** Darker with each range; failures in their own colour. */
  readonly background: string;
}

const EVERYTHING: Range = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
const LATE = "ok after the end of the load";

/** Counts of some steps in the selected stretch. */
function partsOf(steps: readonly StepView[], bounds: readonly number[], range: Range): Part[] {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  const isWhole = range === EVERYTHING;
  let [failed, ok] = [0, 0];
  for (const { step, track } of steps) {
    failed += isWhole ? step.failed : countsIn(step, range).failed;
    ok += step.ok;
    for (const [at, count] of rangeCounts(track, range, bounds).entries())
      counts[at] = (counts[at] ?? 0) + count;
  }
  // Calls that ended in the graceful stop are in no window.
  const late = isWhole ? ok - counts.reduce((sum, count) => sum + count, 0) : 0;
  const shade = (at: number) => 25 + Math.round((75 * at) / bounds.length);
  return [
    ...counts.map((count, at) => ({
      label:
        at < bounds.length ? `≤ ${formatMs(bounds[at] ?? 0)}` : `> ${formatMs(bounds.at(-1) ?? 0)}`,
      count,
      background: `color-mix(in srgb, var(--heat) ${shade(at)}%, var(--card))`,
    })),
    ...(late > 0 ? [{ label: LATE, count: late, background: "var(--muted)" }] : []),
    { label: "failed", count: failed, background: "var(--fail)" },
  ];
}

export function Ranges({ view }: { readonly view: RunView }) {
  const { range } = useCharts();
  const [asTable, setAsTable] = useState(false);
  const { bounds, setBounds } = useBounds(view);
  const parts = useMemo(
    () => partsOf(view.steps, bounds, range ?? EVERYTHING),
    [view, bounds, range],
  );
  if (view.track.starts.length === 0) return null;
  const all = parts.reduce((sum, { count }) => sum + count, 0);
  const share = (count: number) => formatPercent(all === 0 ? 0 : count / all);
  const label = parts.map((part) => `${part.label} ${share(part.count)}`).join(", ");
  return (
    <figure class="chart card">
      <figcaption>
        <span class="chart-title">Response times in ranges</span>
        <span class="legend">
          {parts.map(({ background, count, label: name }) => (
            <span key={name} class="legend-item">
              <span class="swatch" style={{ background }} />
              <span class="legend-label">{name}</span> <b>{share(count)}</b>
            </span>
          ))}
        </span>
        <span class="chart-side">
          <Bounds {...{ bounds, setBounds }} />
          <TableToggle of="response times in ranges" on={asTable} set={setAsTable} />
        </span>
      </figcaption>
      <div class="ranges" role="img" aria-label={`Response times in ranges: ${label}.`}>
        {parts
          .filter(({ count }) => count > 0)
          .map(({ background, count, label: name }) => (
            <span
              key={name}
              title={`${name}: ${formatCount(count)}`}
              style={{ background, flexGrow: count }}
            />
          ))}
      </div>
      {asTable && <RangeTable {...{ view, bounds, parts }} range={range ?? EVERYTHING} />}
    </figure>
  );
}

/** Bounds from the address, from the limits of the run, or the defaults. */
function useBounds(view: RunView) {
  const fragment = useFragment();
  const text = fragment.get("ranges");
  const bounds = useMemo(() => {
    const chosen = parseBounds(text ?? "");
    if (chosen !== null) return chosen;
    const limits = [...new Set(latencyLimits(view.summary))].sort((a, b) => a - b);
    return limits.length === 0 ? BOUNDS_MS : limits.slice(0, BOUNDS_MAX);
  }, [text, view]);
  const setBounds = (next: readonly number[]) =>
    fragment.set({ ranges: next.map((ms) => `${ms}ms`).join(",") });
  return { bounds, setBounds };
}

/** "100ms, 1s": ascending, a few. */
function parseBounds(text: string): readonly number[] | null {
  const bounds = text.split(",").map((part) => {
    const parsed = parseDuration(part.replaceAll(" ", ""));
    return parsed.ok ? parsed.ms : Number.NaN;
  });
  const ascending = bounds.every((ms, at) => ms > (bounds[at - 1] ?? 0));
  return ascending && bounds.length <= BOUNDS_MAX ? bounds : null;
}

interface BoundsProps {
  readonly bounds: readonly number[];
  readonly setBounds: (bounds: readonly number[]) => void;
}

function Bounds({ bounds, setBounds }: BoundsProps) {
  const [wrong, setWrong] = useState(false);
  const onChange = (event: { readonly currentTarget: HTMLInputElement }) => {
    const next = parseBounds(event.currentTarget.value);
    setWrong(next === null);
    if (next !== null) setBounds(next);
  };
  return (
    <label class="range-bounds">
      bounds
      <input
        type="text"
        value={bounds.map((ms) => `${ms}ms`).join(", ")}
        aria-invalid={wrong}
        title={`Up to ${BOUNDS_MAX}, ascending: 100ms, 1s`}
        {...{ onChange }}
      />
    </label>
  );
}

interface RangeTableProps {
  readonly view: RunView;
  readonly bounds: readonly number[];
  readonly parts: readonly Part[];
  readonly range: Range;
}

/** All steps together, then each. */
function RangeTable({ bounds, parts, range, view }: RangeTableProps) {
  const row = (key: string, name: string, counted: readonly Part[]) => ({
    key,
    cells: [
      { text: name, order: name },
      ...counted.map(({ count }) => ({ text: formatCount(count), order: count })),
    ],
  });
  return (
    <div class="chart-table">
      <Table
        caption="Requests in each range"
        captioned
        sortKey="ranged"
        download="ranges"
        columns={[
          { title: "Step" },
          ...parts.map(({ label }) => ({ title: label, numeric: true })),
        ]}
        rows={[
          row("all", "all steps", parts),
          ...view.steps.map((step) => row(step.id, step.name, partsOf([step], bounds, range))),
        ]}
      />
    </div>
  );
}
