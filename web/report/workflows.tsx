/** Workflows: load, arrivals, checks, metrics and groups of each. */

import type { ComponentChildren } from "preact";
import {
  formatChecked,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../../src/core/load/results/format.ts";
import { metricFigures } from "../../src/core/load/results/metric-figures.ts";
import type {
  ArrivalSummary,
  BreakpointSummary,
  CheckSummary,
  Distribution,
  GroupSummary,
  IterationCounts,
  MetricSummary,
  RunSummary,
  StepSummary,
  WorkflowStatus,
  WorkflowSummary,
} from "../../src/core/load/results/model.ts";
import { Chip, Facts, Failed, Section, Share, Tags, type Tone } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";

const TONES: Readonly<Record<WorkflowStatus, Tone>> = {
  waiting: "plain",
  running: "plain",
  completed: "good",
  failed: "bad",
  interrupted: "warn",
  "not run": "warn",
};

export function Workflows({ summary }: { readonly summary: RunSummary }) {
  return (
    <Section id="workflows" title={summary.workflows.length === 1 ? "Workflow" : "Workflows"}>
      {summary.workflows.map((workflow) => (
        <Workflow key={workflow.name} workflow={workflow} />
      ))}
    </Section>
  );
}

function Workflow({ workflow }: { readonly workflow: WorkflowSummary }) {
  return (
    <article class="card workflow" aria-label={`Workflow ${workflow.name}`}>
      <h3>
        {workflow.name} <Chip tone={TONES[workflow.status]}>{workflow.status}</Chip>
      </h3>
      <p class="lead">{workflow.load}</p>
      {workflow.error !== null && <p class="bad-text">{workflow.error}</p>}
      <Facts facts={factsOf(workflow)} />
      {workflow.breakpoint !== undefined && <Breakpoint breakpoint={workflow.breakpoint} />}
      {workflow.arrivals !== null && <Arrivals arrivals={workflow.arrivals} />}
      <Iterations of={workflow.name} iterations={workflow.iterations} />
      <Groups of={workflow.name} groups={workflow.groups ?? []} />
      <Aside of={workflow.name} steps={workflow.aside ?? []} />
      <Checks workflow={workflow} />
      <Metrics of={workflow.name} metrics={workflow.metrics} />
    </article>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

function factsOf(workflow: WorkflowSummary): Fact[] {
  const { iterations, cores } = workflow;
  return [
    ["Model", workflow.model],
    ["Measured", formatSeconds(workflow.elapsedSeconds)],
    ["Began at", formatSeconds(workflow.startedAtSeconds)],
    ["Cores", formatCount(cores)],
    ["Iterations", formatCount(iterations.completed)],
    ...(iterations.ended ? [["Ended early", formatCount(iterations.ended)] as const] : []),
    ...(iterations.failed ? [["Failed", formatCount(iterations.failed)] as const] : []),
    ["Interrupted", formatCount(iterations.interrupted)],
    ["Latency from", workflow.corrected ? "intended start" : "real start"],
  ];
}

function Breakpoint({ breakpoint }: { readonly breakpoint: BreakpointSummary }) {
  const { held, of, probes, text } = breakpoint;
  const unit = of === "rate" ? "/s" : " virtual users";
  return (
    <>
      <h4>
        Breakpoint{" "}
        {held === null ? <Chip tone="bad">nothing held</Chip> : <Chip tone="good">found</Chip>}
      </h4>
      <p class="lead">{text}</p>
      <Table
        caption="Loads that were tried"
        columns={[{ title: "Load" }, { title: "Judged" }, { title: "Held" }, { title: "Reason" }]}
        rows={probes.map((probe, index) => ({
          key: String(index),
          cells: [
            { text: `${formatNumber(probe.load)}${unit}` },
            { text: `${formatSeconds(probe.fromSeconds)} to ${formatSeconds(probe.toSeconds)}` },
            { text: probe.held ? "yes" : "no" },
            { text: probe.reason ?? "" },
          ],
        }))}
      />
    </>
  );
}

function Arrivals({ arrivals }: { readonly arrivals: ArrivalSummary }) {
  const { targetPerSecond, achievedPerSecond, started, missed, sendLagMs } = arrivals;
  const due = started + missed;
  const short = missed > 0 || achievedPerSecond < targetPerSecond * 0.99;
  return (
    <>
      <h4>
        Arrivals{" "}
        {short ? <Chip tone="warn">target missed</Chip> : <Chip tone="good">target held</Chip>}
      </h4>
      <Facts
        facts={[
          ["Target", formatRate(targetPerSecond)],
          ["Achieved", formatRate(achievedPerSecond)],
          ["Started", formatCount(started)],
          [
            "Never started",
            `${formatCount(missed)} (${formatPercent(due === 0 ? 0 : missed / due)})`,
          ],
          ["Send lag p50", msText(sendLagMs, "p50")],
          ["Send lag p99", msText(sendLagMs, "p99")],
          ["Send lag max", msText(sendLagMs, "max")],
        ]}
      />
    </>
  );
}

const FIGURES = ["min", "mean", "p50", "p95", "p99", "max"] as const;

function Iterations(props: { readonly of: string; readonly iterations: IterationCounts }) {
  const { activeMs, durationMs, okDurationMs } = props.iterations;
  const parts = [
    ["All that began", durationMs],
    ["Completed", okDurationMs],
    ["Without pauses", activeMs],
  ] as const;
  const rows = parts.flatMap(([title, times]) =>
    times === undefined || times.count === 0
      ? []
      : [
          {
            key: title,
            cells: [
              { text: title },
              { text: formatCount(times.count) },
              ...FIGURES.map((figure) => ({ text: formatMs(times[figure]) })),
            ],
          },
        ],
  );
  if (rows.length === 0) return null;
  const numeric = (title: string) => ({ title, numeric: true });
  return (
    <Table
      caption={`Duration of iterations of ${props.of}`}
      captioned
      columns={[{ title: "Iterations" }, ...["Count", ...FIGURES].map(numeric)]}
      rows={rows}
    />
  );
}

function Groups({ groups, of }: { readonly of: string; readonly groups: readonly GroupSummary[] }) {
  if (groups.length === 0) return null;
  const numeric = (title: string) => ({ title, numeric: true });
  const columns = [
    { title: "Group" },
    ...["Count", "Failed"].map(numeric),
    ...FIGURES.map(numeric),
    numeric("active p50"),
  ];
  const rows = groups.map((group) => ({
    key: group.name,
    cells: [
      { text: group.name },
      { text: formatCount(group.ok + group.failed) },
      { text: <Failed failed={group.failed} of={group.ok + group.failed} /> },
      ...FIGURES.map((figure) => ({ text: msText(group.durationMs, figure) })),
      { text: msText(group.activeMs, "p50") },
    ],
  }));
  return <Table caption={`Duration of groups of ${of}`} captioned columns={columns} rows={rows} />;
}

function Aside({ of, steps }: { readonly of: string; readonly steps: readonly StepSummary[] }) {
  if (steps.length === 0) return null;
  const numeric = (title: string) => ({ title, numeric: true });
  const figures = ["p50", "p95", "p99", "max"] as const;
  const columns = [
    { title: "Call" },
    ...["Requests", "Failed"].map(numeric),
    ...figures.map(numeric),
  ];
  const rows = steps.map((step, index) => ({
    key: String(index),
    cells: [
      { text: `${step.tags["phase"]}: ${step.name}` },
      { text: formatCount(step.requests) },
      { text: <Failed failed={step.failed} of={step.requests} /> },
      ...figures.map((figure) => ({ text: msText(step.latencyMs, figure) })),
    ],
  }));
  return (
    <Table
      caption={`Beside the iterations of ${of}, in no figure above`}
      captioned
      columns={columns}
      rows={rows}
    />
  );
}

function Checks({ workflow }: { readonly workflow: WorkflowSummary }) {
  if (workflow.checks.length === 0) return null;
  const columns = [
    { title: "Check" },
    { title: "Passed", numeric: true },
    { title: "Failed", numeric: true },
    { title: "Share passed" },
  ];
  const rows = workflow.checks.map((check) => ({ key: check.name, cells: checkCells(check) }));
  const caption = `Checks of ${workflow.name}`;
  return <Table {...{ caption, columns, rows }} captioned stacked />;
}

function checkCells(check: CheckSummary) {
  const { failed, name, passed } = check;
  const ran = passed + failed;
  const share =
    ran === 0 ? (
      <span class="quiet">{formatChecked(check)}</span>
    ) : (
      <Share share={passed / ran} tone={failed > 0 ? "bad" : "good"} />
    );
  return [
    { text: `${failed > 0 ? "✗" : ran === 0 ? "·" : "✓"} ${name}` },
    { text: formatCount(passed) },
    {
      text:
        failed > 0 ? <b class="bad-text">{formatCount(failed)}</b> : <span class="quiet">0</span>,
    },
    { text: share },
  ];
}

function Metrics({
  metrics,
  of,
}: {
  readonly of: string;
  readonly metrics: readonly MetricSummary[];
}) {
  if (metrics.length === 0) return null;
  const columns = [{ title: "Metric" }, { title: "Kind" }, { title: "Tags" }, { title: "Values" }];
  const rows = metrics.map((metric, index) => ({
    key: String(index),
    cells: [
      { text: metric.name },
      { text: metric.kind },
      { text: <Tags tags={metric.tags} /> },
      {
        text: (
          <span class="values">
            {metricFigures(metric).map(({ label, text }) => (
              <span key={label}>
                <i>{label}</i> {text}
              </span>
            ))}
          </span>
        ),
      },
    ],
  }));
  const caption = `Custom metrics of ${of}`;
  return <Table {...{ caption, columns, rows }} captioned stacked />;
}

function msText(times: Distribution, figure: keyof Distribution): ComponentChildren {
  return times.count === 0 ? <span class="quiet">–</span> : formatMs(times[figure]);
}
