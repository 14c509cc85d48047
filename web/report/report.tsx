/** Order of the page: verdict, metrics, thresholds, time, steps, errors, workflows, cluster, generator. */

import { useMemo } from "preact/hooks";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import type { PageBaseline } from "../../src/reporters/file/page-data.ts";
import { ChartsContext, type ChartsState, moved, rangeText, zoomed } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { type Fragment, FragmentContext, useFragmentState } from "../shared/fragment.ts";
import { Frame, type FrameSection } from "../shared/frame.tsx";
import { ThemeContext, useThemeChoice } from "../shared/theme.ts";
import { type Range, snapRange } from "../shared/tracks.ts";
import { Cluster } from "./cluster.tsx";
import { Compare } from "./compare.tsx";
import { Errors } from "./errors.tsx";
import { Generator } from "./generator.tsx";
import { Ranges } from "./ranges.tsx";
import { RunFacts } from "./run-facts.tsx";
import { type RunView, runView } from "./run-view.ts";
import { Steps } from "./steps.tsx";
import { Headline, Notes, Verdict, Warnings } from "./summary.tsx";
import { Thresholds } from "./thresholds.tsx";
import { OverTime } from "./time.tsx";
import { Workflows } from "./workflows.tsx";

interface Props {
  readonly summary: RunSummary;
  readonly baseline: (Omit<PageBaseline, "run"> & { readonly summary: RunSummary }) | null;
}

export function Report({ baseline, summary }: Props) {
  const [theme, choice, choose] = useThemeChoice();
  const fragment = useFragmentState();
  const view = useMemo(() => runView(summary), [summary]);
  const before = useMemo(() => (baseline === null ? null : runView(baseline.summary)), [baseline]);
  const charts = useChartsState(view, fragment);
  const sections = useMemo(() => sectionsOf(summary, baseline !== null), [summary]);
  return (
    <ThemeContext.Provider value={theme}>
      <FragmentContext.Provider value={fragment}>
        <ChartsContext.Provider value={charts}>
          <Frame
            sections={sections}
            theme={{ choice, choose }}
            bar={<RangeBar charts={charts} view={view} />}
          >
            <div id="summary">
              <Verdict view={view} />
              <Warnings summary={summary} />
              <Headline view={view} />
              <Ranges view={view} />
              <Notes summary={summary} />
            </div>
            <Thresholds view={view} baseline={before} />
            {baseline !== null && <Compare baseline={baseline} />}
            <OverTime view={view} baseline={before} />
            <Steps view={view} baseline={before} />
            <Errors view={view} />
            <Workflows summary={summary} />
            <Cluster summary={summary} />
            <Generator view={view} />
            <RunFacts summary={summary} />
          </Frame>
        </ChartsContext.Provider>
      </FragmentContext.Provider>
    </ThemeContext.Provider>
  );
}

function sectionsOf(
  { cluster, thresholds, workflows }: RunSummary,
  compared: boolean,
): FrameSection[] {
  const broken = thresholds.filter(({ passed }) => !passed).length;
  const kinds = new Set(
    workflows.flatMap(({ steps }) => steps.flatMap(({ errors }) => Object.keys(errors))),
  ).size;
  const steps = workflows.reduce((sum, workflow) => sum + workflow.steps.length, 0);
  return [
    { id: "summary", title: "Summary" },
    { id: "thresholds", title: "Thresholds", ...(broken > 0 ? { mark: `✗ ${broken}` } : {}) },
    ...(compared ? [{ id: "compare", title: "Compare" }] : []),
    { id: "time", title: "Over time" },
    { id: "steps", title: "Steps", mark: String(steps) },
    { id: "errors", title: "Errors", ...(kinds > 0 ? { mark: String(kinds) } : {}) },
    { id: "workflows", title: "Workflows" },
    ...(cluster === undefined
      ? []
      : [{ id: "cluster", title: "Cluster", mark: String(cluster.datacenters.length) }]),
    { id: "generator", title: "Generator" },
    { id: "run", title: "Run" },
  ];
}

/** The selected stretch is in the address, aligned to whole windows. */
function useChartsState(view: RunView, fragment: Fragment): ChartsState {
  const text = fragment.get("t");
  const range = useMemo((): Range | null => {
    const match = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(text ?? "");
    if (match === null) return null;
    const [from, to] = [Number(match[1]), Number(match[2])];
    return to > from ? snapRange(view.track, [from, to]) : null;
  }, [text, view]);
  const scale = fragment.get("y") === "linear" ? "linear" : "logarithmic";
  return useMemo(() => {
    const setRange = (next: Range | null) => {
      const snapped = next === null ? null : snapRange(view.track, next);
      fragment.set({ t: snapped === null ? null : rangeText(snapped) });
    };
    const { events, full, track } = view;
    return { full, range, windowSeconds: track.windowSeconds, setRange, scale, events };
  }, [view, range, scale, fragment]);
}

/** The selected stretch, with controls to move it; present from the start, so that the layout does not shift. */
function RangeBar({ charts, view }: { readonly charts: ChartsState; readonly view: RunView }) {
  const { full, range, setRange } = charts;
  const [from, to] = range ?? full;
  const middle = (from + to) / 2;
  const width = view.track.windowSeconds;
  const text = range === null ? "whole run" : `${clockAt(from, width)} – ${clockAt(to, width)}`;
  const buttons: [string, string, boolean, () => void][] = [
    ["‹", "Earlier", range === null, () => setRange(moved(charts, -0.5))],
    ["›", "Later", range === null, () => setRange(moved(charts, 0.5))],
    ["+", "Zoom in", to - from <= 2 * width, () => setRange(zoomed(charts, 0.5, middle))],
    ["−", "Zoom out", range === null, () => setRange(zoomed(charts, 2, middle))],
    ["all", "Show the whole run", range === null, () => setRange(null)],
  ];
  return (
    <fieldset class="range">
      <legend class="hidden">Stretch of time</legend>
      <output class={range === null ? "quiet" : undefined}>{text}</output>
      {buttons.map(([label, title, disabled, onClick]) => (
        <button key={label} type="button" {...{ title, disabled, onClick }} aria-label={title}>
          {label}
        </button>
      ))}
    </fieldset>
  );
}
