/** Failures: by kind and step, by status, and the answers of the target. */

import { formatCount } from "../../src/core/load/results/format.ts";
import type { ErrorSample } from "../../src/core/load/results/model.ts";
import { useCharts } from "../shared/charts.ts";
import { clockAt } from "../shared/clock.ts";
import { useFragment } from "../shared/fragment.ts";
import { Section, Share, Spark, summed } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import type { RunView, StepView } from "./run-view.ts";

const KINDS: Readonly<Record<string, string>> = {
  dns: "the name could not be resolved",
  refused: "the connection was refused",
  reset: "the connection was cut",
  timeout: "no complete answer in time",
  tls: "the TLS handshake failed",
  protocol: "the answer broke the protocol",
  status: "the answer had a failure status",
};
const SPARK_POINTS = 48;
/** A hundred steps have more kinds of failures than anybody reads. */
const ROWS_MAX = 15;

export function Errors({ view }: { readonly view: RunView }) {
  const { link } = useFragment();
  const rows = view.steps.flatMap((shown) =>
    Object.entries(shown.step.errors)
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => {
        const share = shown.step.requests === 0 ? 0 : count / shown.step.requests;
        const course = shown.step.series.errors?.[kind] ?? [];
        return {
          count,
          key: `${shown.id} ${kind}`,
          cells: [
            {
              order: kind,
              text: (
                <span>
                  <b>{kind}</b>{" "}
                  {KINDS[kind] !== undefined && <span class="quiet explained">{KINDS[kind]}</span>}
                </span>
              ),
            },
            {
              order: shown.name,
              text: <a href={link({ open: shown.id }, `step-${shown.id}`)}>{shown.name}</a>,
            },
            { text: formatCount(count), order: count },
            { text: <Share share={share} tone="bad" />, order: share },
            { text: <Spark values={summed(course, SPARK_POINTS)} color="--fail" /> },
          ],
        };
      }),
  );
  const columns = [
    { title: "Kind" },
    { title: "Step" },
    { title: "Count", numeric: true },
    { title: "Share of its requests" },
    { title: "Over time", unsorted: true },
  ];
  return (
    <Section id="errors" title="Errors">
      {rows.length === 0 ? (
        <p class="empty">No request failed.</p>
      ) : (
        <>
          <Table
            caption="Errors by kind and step"
            columns={columns}
            rows={rows.toSorted((a, b) => b.count - a.count)}
            sortKey="errors"
            rowsMax={ROWS_MAX}
            download="errors"
            stacked
          />
          <Samples steps={view.steps} caption="What failures looked like" />
        </>
      )}
      <Statuses view={view} />
    </Section>
  );
}

interface SamplesProps {
  readonly steps: readonly StepView[];
  readonly caption: string;
}

/** More than this only fill the page. */
const SAMPLES_SHOWN_MAX = 10;

/** A run keeps up to five of each kind and status. */
export function Samples({ caption, steps }: SamplesProps) {
  const { full, range } = useCharts();
  const [from, to] = range ?? [Math.min(0, full[0]), Number.POSITIVE_INFINITY];
  const found = steps
    .flatMap(({ name, step }) => (step.samples ?? []).map((sample) => ({ name, sample })))
    .filter(({ sample: { atSeconds } }) => atSeconds >= from && atSeconds <= to)
    .toSorted((a, b) => a.sample.atSeconds - b.sample.atSeconds);
  if (found.length === 0) return null;
  const samples = withoutRepetition(found);
  const countOf = (name: string, kind: string): number =>
    steps.find((one) => one.name === name)?.step.errors[kind] ?? 0;
  const columns = [
    { title: "At" },
    ...(steps.length > 1 ? [{ title: "Step" }] : []),
    { title: "Kind" },
    { title: "Status", numeric: true },
    { title: "Request and error" },
  ];
  const rows = samples.map(({ name, sample }, index) => ({
    key: String(index),
    cells: [
      { text: clockAt(sample.atSeconds, 0.1) },
      ...(steps.length > 1 ? [{ text: name }] : []),
      { text: sample.kind },
      { text: sample.status === 0 ? "–" : String(sample.status) },
      { text: <Said sample={sample} count={countOf(name, sample.kind)} /> },
    ],
  }));
  return <Table {...{ caption, columns, rows }} rowsMax={SAMPLES_SHOWN_MAX} captioned stacked />;
}

interface NamedSample {
  readonly name: string;
  readonly sample: ErrorSample;
}

/** Keeps the first of samples that differ only in time. */
function withoutRepetition(found: readonly NamedSample[]): NamedSample[] {
  const samples = new Map<string, NamedSample>();
  for (const { name, sample } of found) {
    const { call, kind, status, text } = sample;
    const key = JSON.stringify([name, kind, status, call, text]);
    if (!samples.has(key)) samples.set(key, { name, sample });
  }
  return [...samples.values()];
}

/** `count`: failures of this kind in the step, over the whole run; only some of them are kept as samples. */
function Said(props: { readonly sample: ErrorSample; readonly count: number }) {
  const { call, kind, text } = props.sample;
  return (
    <span class="said">
      {call !== "" && <code>{call}</code>}
      <span>{text}</span>
      {props.count > 1 && (
        <span class="quiet">
          {" "}
          one of {formatCount(props.count)} failures of kind {kind}
        </span>
      )}
    </span>
  );
}

function Statuses({ view }: { readonly view: RunView }) {
  const steps = view.steps.filter(({ step }) => Object.keys(step.statuses).length > 0);
  const codes = [...new Set(steps.flatMap(({ step }) => Object.keys(step.statuses)))].sort();
  if (codes.length === 0) return null;
  const columns = [{ title: "Step" }, ...codes.map((title) => ({ title, numeric: true }))];
  const rows = steps.map(({ id, name, step }) => ({
    key: id,
    cells: [
      { text: name, order: name },
      ...codes.map((code) => {
        const count = step.statuses[code] ?? 0;
        return {
          text: count === 0 ? <span class="quiet">0</span> : formatCount(count),
          order: count,
        };
      }),
    ],
  }));
  return (
    <Table
      caption="Answers by status code"
      captioned
      columns={columns}
      rows={rows}
      sortKey="statuses"
      rowsMax={ROWS_MAX}
    />
  );
}
