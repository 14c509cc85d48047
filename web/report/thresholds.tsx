/** Thresholds: limit, actual value, margin, when and by which step each was broken, and the baseline. */

import { useMemo } from "preact/hooks";
import { formatPercent } from "../../src/core/load/results/format.ts";
import { marginShare, marginText } from "../../src/core/load/results/margin.ts";
import type { ThresholdOutcome } from "../../src/core/load/results/model.ts";
import { rangeText } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { useFragment } from "../shared/fragment.ts";
import { Chip, Section } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import type { Range } from "../shared/tracks.ts";
import { beyondOf, culpritOf } from "./beyond.ts";
import { stepOf } from "./limits.ts";
import type { RunView } from "./run-view.ts";

interface ThresholdProps {
  readonly view: RunView;
  readonly threshold: ThresholdOutcome;
}

interface Props {
  readonly view: RunView;
  /** The baseline run. */
  readonly baseline: RunView | null;
}

export function Thresholds({ baseline, view }: Props) {
  const { thresholds } = view.summary;
  const before = baseline?.summary.thresholds ?? [];
  const several = view.summary.workflows.length > 1;
  const order = (threshold: ThresholdOutcome) => (threshold.passed ? 1 : 0);
  const rows = thresholds
    .toSorted((a, b) => order(a) - order(b))
    .map((threshold, index) => ({
      key: `${index} ${threshold.expression}`,
      cells: [
        { text: <ThresholdName {...{ threshold, view }} /> },
        {
          text: threshold.passed ? (
            <Chip tone="good">✓ held</Chip>
          ) : (
            <Chip tone="bad">✗ failed</Chip>
          ),
        },
        { text: <b>{threshold.actualText}</b> },
        ...(before.length > 0 ? [{ text: <Before {...{ before, threshold }} /> }] : []),
        { text: <Margin threshold={threshold} /> },
        { text: <WhenBeyond {...{ threshold, view }} /> },
        ...(several ? [{ text: threshold.workflow ?? "whole run" }] : []),
      ],
    }));
  const columns = [
    { title: "Threshold" },
    { title: "Result" },
    { title: "Actual", numeric: true },
    ...(before.length > 0 ? [{ title: "Before", numeric: true }] : []),
    { title: "Margin" },
    { title: "Beyond the limit" },
    ...(several ? [{ title: "Applies to" }] : []),
  ];
  return (
    <Section id="thresholds" title="Thresholds">
      {rows.length === 0 ? (
        <p class="empty">
          This run has no thresholds. Add one with <code>--threshold "latency.p99&lt;200ms"</code>.
        </p>
      ) : (
        <Table caption="Thresholds and their actual values" {...{ columns, rows }} stacked />
      )}
    </Section>
  );
}

/** The expression as written, with a link to its chart. */
function ThresholdName({ threshold, view }: ThresholdProps) {
  const fragment = useFragment();
  const step = stepOf(threshold, view.steps);
  const remarks = [
    threshold.implicit ? "built-in gate" : "",
    threshold.aborted ? "ended the run early" : "",
  ].filter((text) => text !== "");
  const target =
    step !== undefined
      ? fragment.link({ open: step.id }, `step-${step.id}`)
      : /^latency/.test(threshold.expression)
        ? fragment.link({}, "time")
        : /^errors/.test(threshold.expression)
          ? fragment.link({}, "errors")
          : /^checks/.test(threshold.expression)
            ? fragment.link({}, "workflows")
            : null;
  return (
    <>
      <code>{threshold.expression}</code>
      {remarks.length > 0 && <span class="quiet"> ({remarks.join(", ")})</span>}{" "}
      {target !== null && (
        <a class="show" href={target}>
          show<span class="hidden"> {threshold.expression}</span>
        </a>
      )}
    </>
  );
}

/** The limit is the middle of the bar: left of it there is room, right of it the threshold is broken. */
function Margin({ threshold }: { readonly threshold: ThresholdOutcome }) {
  const share = marginShare(threshold);
  const text = marginText(threshold);
  if (text === "") return <span class="quiet">–</span>;
  const length = Math.min(share ?? 0, 1) * 50;
  const place = threshold.passed
    ? { right: "50%", width: `${length}%` }
    : { left: "50%", width: `${length}%` };
  return (
    <span class="share">
      {share !== null && (
        <span class={`margin ${threshold.passed ? "good" : "bad"}`} aria-hidden="true">
          <span style={place} />
        </span>
      )}
      {text}
    </span>
  );
}

/** The same threshold of the baseline run. */
function Before(props: {
  readonly before: readonly ThresholdOutcome[];
  readonly threshold: ThresholdOutcome;
}) {
  const { expression, workflow } = props.threshold;
  const found = props.before.find(
    (one) => one.expression === expression && one.workflow === workflow,
  );
  if (found === undefined) return <span class="quiet">–</span>;
  return found.passed ? (
    <span>{found.actualText}</span>
  ) : (
    <span class="bad-text">✗ {found.actualText}</span>
  );
}

/** The thresholds of a search apply to each load; the whole run contains those that broke. */
function isSearch({ workflow }: ThresholdOutcome, { summary }: RunView): boolean {
  return summary.workflows.some(
    ({ breakpoint, name }) => name === workflow && breakpoint !== undefined,
  );
}

/** Stretches listed one by one; the chart shows the rest. */
const STRETCHES_SHOWN_MAX = 3;

/** For how long and when, with a link; for several steps also the one to check first. */
export function WhenBeyond({ lead, threshold, view }: ThresholdProps & { readonly lead?: string }) {
  const { link } = useFragment();
  const beyond = useMemo(() => beyondOf(threshold, view), [threshold, view]);
  if (beyond === null) return null;
  if (isSearch(threshold, view))
    return <span class="quiet">judged at each load that was tried</span>;
  if (beyond.stretches.length === 0) return <span class="quiet">in no window</span>;
  const { measuredSeconds, seconds, stretches } = beyond;
  const kept = stretches
    .toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))
    .slice(0, STRETCHES_SHOWN_MAX)
    .sort((a, b) => a[0] - b[0]);
  const more = stretches.length - kept.length;
  const culprit = threshold.passed ? null : culpritOf(threshold, view, beyond);
  return (
    <span class="stretches">
      {lead}
      {formatPercent(seconds / measuredSeconds)} of the time
      {kept.map((range) => (
        <StretchLink key={range[0]} {...{ range, view }} of={threshold.expression} />
      ))}
      {more > 0 && <span class="quiet">and {more} more</span>}
      {culprit !== null && (
        <span>
          mostly <a href={link({ open: culprit.id }, `step-${culprit.id}`)}>{culprit.name}</a>
        </span>
      )}
    </span>
  );
}

interface StretchProps {
  readonly range: Range;
  readonly view: RunView;
  readonly of: string;
}

function StretchLink({ of, range: [from, to], view }: StretchProps) {
  const { link } = useFragment();
  const { full, track } = view;
  const clock = (seconds: number) => clockAt(seconds, track.windowSeconds);
  // With some time before and after it, so that the change is visible.
  const room = Math.max((to - from) / 2, 5 * track.windowSeconds);
  const ends = [Math.max(full[0], from - room), Math.min(full[1], to + room)];
  return (
    <a class="plain-button" href={link({ t: rangeText(ends) }, "time")}>
      {clock(from)} – {clock(to)}
      <span class="hidden">: look at where {of} was broken</span>
    </a>
  );
}
