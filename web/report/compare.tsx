/** This run compared with an earlier one: the table of `hyperscale compare`, with its intervals. */

import { assertNever } from "../../src/core/base/assert.ts";
import { formatPercent } from "../../src/core/load/results/format.ts";
import type { ComparedRow, RowResult } from "../../src/reporters/compare/compare.ts";
import {
  changeText,
  METRIC_NAMES,
  pText,
  valueText,
} from "../../src/reporters/compare/comparison-text.ts";
import type { PageBaseline } from "../../src/reporters/file/page-data.ts";
import { Alert, Chip, Section, type Tone } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";

const TONES: Readonly<Record<RowResult, Tone>> = {
  regression: "bad",
  improvement: "good",
  "within limit": "plain",
  same: "plain",
  unclear: "plain",
  "too little data": "plain",
};
const MARKS: Readonly<Partial<Record<RowResult, string>>> = { regression: "✗ ", improvement: "✓ " };

/** Regressions come first; steps otherwise keep their order. */
const RANKS: Readonly<Record<RowResult, number>> = {
  regression: 0,
  improvement: 1,
  "within limit": 2,
  unclear: 3,
  "too little data": 4,
  same: 5,
};
/** Five metrics per step make many rows. */
const ROWS_MAX = 25;

function VerdictChip({ comparison }: { readonly comparison: PageBaseline["comparison"] }) {
  const { regressions, rows, unclear, verdict } = comparison;
  switch (verdict) {
    case "regression":
      return (
        <Chip tone="bad">
          ✗ {regressions} regression{regressions === 1 ? "" : "s"}
        </Chip>
      );
    case "no regression":
      return <Chip tone="good">✓ no significant regression</Chip>;
    case "undecided":
      return (
        <Chip tone="warn">
          ? nothing could be shown: {unclear} of {rows.length} unclear
        </Chip>
      );
    case "untrusted":
      return <Chip tone="warn">? not judged: a run is not to be trusted</Chip>;
    default:
      return assertNever(verdict);
  }
}

export function Compare({ baseline }: { readonly baseline: Omit<PageBaseline, "run"> }) {
  const { comparison, file, startedAt } = baseline;
  const { improvements, limit, onlyAfter, onlyBefore, rows, untrusted, warnings } = comparison;
  const chip = <VerdictChip comparison={comparison} />;
  const remarks = [
    ...untrusted.map((reason) => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`),
    ...warnings,
    ...onlyBefore.map((step) => `Only before: ${step}.`),
    ...onlyAfter.map((step) => `Only now: ${step}.`),
  ];
  return (
    <Section id="compare" title="Compared with the baseline" aside={chip}>
      <p class="lead">
        Before: {file}, {startedAt.slice(0, 19).replace("T", " ")} UTC. A regression is worse,
        beyond {formatPercent(limit)}, and significant; {improvements} improvement
        {improvements === 1 ? "" : "s"}. In the charts the baseline is dotted.
      </p>
      {remarks.length > 0 && (
        <Alert tone="warn" title="The two runs may not be comparable">
          <ul>
            {remarks.map((remark) => (
              <li key={remark}>{remark}</li>
            ))}
          </ul>
        </Alert>
      )}
      <Table
        caption="Change of each step"
        sortKey="compare"
        download="compare"
        columns={[
          { title: "Step" },
          { title: "Metric" },
          { title: "Before", numeric: true },
          { title: "Now", numeric: true },
          { title: "Change", numeric: true },
          { title: "95 % interval", numeric: true, unsorted: true },
          { title: "p", numeric: true },
          { title: "Result" },
        ]}
        rows={rows.toSorted((a, b) => RANKS[a.result] - RANKS[b.result]).map(rowOf)}
        rowsMax={ROWS_MAX}
      />
    </Section>
  );
}

function rowOf(row: ComparedRow) {
  const { after, before, change, interval, metric, p, result, step, workflow } = row;
  return {
    key: `${workflow} ${step} ${metric}`,
    cells: [
      { text: `${workflow} / ${step}`, order: `${workflow} / ${step}` },
      { text: METRIC_NAMES[metric], order: METRIC_NAMES[metric] },
      { text: valueText(metric, before), order: before },
      { text: valueText(metric, after), order: after },
      { text: change === null ? "new" : changeText(metric, change), order: change },
      { text: interval === null ? "" : interval.map((end) => changeText(metric, end)).join(" … ") },
      { text: pText(p), order: p },
      {
        text: <Chip tone={TONES[result]}>{`${MARKS[result] ?? ""}${result}`}</Chip>,
        order: result,
      },
    ],
  };
}
