/** One workflow: how it was driven, its steps as a table, checks and metrics, then each step drawn. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import {
  formatBytes,
  formatCompactRate,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../../src/core/run/results/format.ts";
import { metricFigures } from "../../src/core/run/results/metric-figures.ts";
import type {
  ArrivalSummary,
  BreakpointSummary,
  Distribution,
  ErrorSample,
  GroupSummary,
  MetricSummary,
  StepSummary,
  WorkflowStatus,
  WorkflowSummary,
} from "../../src/core/run/results/model.ts";
import { timelineOf } from "../../src/reporters/file/timeline.ts";
import { Histogram } from "./histogram.tsx";
import { rateLines } from "./overview.tsx";
import { Chip, Failed, Section, Share, Table, Tags, type Tone } from "./parts.tsx";
import { type Line, TimeChart } from "./time-chart.tsx";

const TONES: Readonly<Record<WorkflowStatus, Tone>> = {
  waiting: "plain",
  running: "plain",
  completed: "good",
  failed: "bad",
  interrupted: "warn",
  "not run": "warn",
};

export function WorkflowSection(props: {
  readonly workflow: WorkflowSummary;
  readonly id: string;
}) {
  const { workflow, id } = props;
  return (
    <Section
      id={id}
      title={workflow.name}
      aside={<Chip tone={TONES[workflow.status]}>{workflow.status}</Chip>}
    >
      <p class="lead">{workflow.load}</p>
      {workflow.error !== null && <p class="bad-text">{workflow.error}</p>}
      <Facts facts={factsOf(workflow)} />
      {workflow.breakpoint !== undefined && <Breakpoint breakpoint={workflow.breakpoint} />}
      {workflow.arrivals !== null && <Arrivals arrivals={workflow.arrivals} />}
      <StepsTable steps={workflow.steps} />
      <Groups groups={workflow.groups ?? []} />
      <Aside steps={workflow.aside ?? []} />
      <Checks workflow={workflow} />
      <Metrics metrics={workflow.metrics} />
      {workflow.steps.map((step) => (
        <StepCard key={step.name} step={step} group={`${workflow.name}/${step.name}`} />
      ))}
    </Section>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

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
    <div class="card breakpoint">
      <h3>
        Breakpoint{" "}
        {held === null ? <Chip tone="bad">nothing held</Chip> : <Chip tone="good">found</Chip>}
      </h3>
      <p class="lead">{text}</p>
      <Table
        caption="Loads that were tried"
        columns={[
          { title: "Load", numeric: true },
          { title: "Judged" },
          { title: "Held" },
          { title: "Why not" },
        ]}
        rows={probes.map((probe) => [
          `${formatNumber(probe.load)}${unit}`,
          `${formatSeconds(probe.fromSeconds)} to ${formatSeconds(probe.toSeconds)}`,
          probe.held ? "yes" : "no",
          probe.reason ?? "",
        ])}
      />
    </div>
  );
}

function Arrivals({ arrivals }: { readonly arrivals: ArrivalSummary }) {
  const { targetPerSecond, achievedPerSecond, started, missed, sendLagMs } = arrivals;
  const due = started + missed;
  const short = missed > 0 || achievedPerSecond < targetPerSecond * 0.99;
  return (
    <div class={`card arrivals ${short ? "warn" : ""}`}>
      <h3>
        Arrivals{" "}
        {short ? <Chip tone="warn">target missed</Chip> : <Chip tone="good">target held</Chip>}
      </h3>
      <Facts
        facts={[
          ["Target", formatRate(targetPerSecond)],
          ["Achieved", formatRate(achievedPerSecond)],
          ["Started", formatCount(started)],
          [
            "Never started",
            `${formatCount(missed)} (${formatPercent(due === 0 ? 0 : missed / due)})`,
          ],
          ["Send lag p50", formatMs(sendLagMs.p50)],
          ["Send lag p99", formatMs(sendLagMs.p99)],
          ["Send lag max", formatMs(sendLagMs.max)],
        ]}
      />
    </div>
  );
}

function StepsTable({ steps }: { readonly steps: readonly StepSummary[] }) {
  const numeric = (title: string) => ({ title, numeric: true });
  const figures = ["min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max"] as const;
  const columns = [
    { title: "Step" },
    ...["Requests", "Rate", "Failed"].map(numeric),
    ...figures.map((figure) => numeric(figure.replace("_", "."))),
  ];
  const rows = steps.map((step) => [
    step.name,
    formatCount(step.requests),
    formatRate(step.ratePerSecond),
    <Failed key="failed" failed={step.failed} of={step.requests} />,
    ...figures.map((figure) => msOf(step.latencyMs, figure)),
  ]);
  return <Table caption="Steps: requests and latency" columns={columns} rows={rows} />;
}

function Groups({ groups }: { readonly groups: readonly GroupSummary[] }) {
  if (groups.length === 0) return null;
  const numeric = (title: string) => ({ title, numeric: true });
  const figures = ["min", "mean", "p50", "p95", "p99", "max"] as const;
  const columns = [
    { title: "Group" },
    ...["Count", "Failed"].map(numeric),
    ...figures.map(numeric),
    numeric("active p50"),
  ];
  const rows = groups.map((group) => [
    group.name,
    formatCount(group.ok + group.failed),
    <Failed key="failed" failed={group.failed} of={group.ok + group.failed} />,
    ...figures.map((figure) => msOf(group.durationMs, figure)),
    msOf(group.activeMs, "p50"),
  ]);
  return <Table caption="Groups: duration" columns={columns} rows={rows} />;
}

function Aside({ steps }: { readonly steps: readonly StepSummary[] }) {
  if (steps.length === 0) return null;
  const numeric = (title: string) => ({ title, numeric: true });
  const figures = ["p50", "p95", "p99", "max"] as const;
  const columns = [
    { title: "Call" },
    ...["Requests", "Failed"].map(numeric),
    ...figures.map(numeric),
  ];
  const rows = steps.map((step) => [
    `${step.tags["phase"]}: ${step.name}`,
    formatCount(step.requests),
    <Failed key="failed" failed={step.failed} of={step.requests} />,
    ...figures.map((figure) => msOf(step.latencyMs, figure)),
  ]);
  return (
    <Table caption="Beside the iterations, in no figure above" columns={columns} rows={rows} />
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
  const rows = workflow.checks.map(({ name, passed, failed }) => [
    `${failed > 0 ? "✗" : "✓"} ${name}`,
    formatCount(passed),
    failed > 0 ? (
      <b key="failed" class="bad-text">
        {formatCount(failed)}
      </b>
    ) : (
      <span key="failed" class="quiet">
        0
      </span>
    ),
    <Share
      key="share"
      share={passed + failed === 0 ? 0 : passed / (passed + failed)}
      tone={failed > 0 ? "bad" : "good"}
    />,
  ]);
  return <Table caption={`Checks of ${workflow.name}`} columns={columns} rows={rows} />;
}

function Metrics({ metrics }: { readonly metrics: readonly MetricSummary[] }) {
  if (metrics.length === 0) return null;
  const columns = [{ title: "Metric" }, { title: "Kind" }, { title: "Tags" }, { title: "Values" }];
  const rows = metrics.map((metric) => [
    metric.name,
    metric.kind,
    <Tags key="tags" tags={metric.tags} />,
    <span key="values" class="values">
      {metricFigures(metric).map(({ label, text }) => (
        <span key={label}>
          <i>{label}</i> {text}
        </span>
      ))}
    </span>,
  ]);
  return <Table caption="Custom metrics" columns={columns} rows={rows} />;
}

function StepCard({ step, group }: { readonly step: StepSummary; readonly group: string }) {
  const timeline = useMemo(() => timelineOf(step.series), [step]);
  const rates = useMemo(() => rateLines(timeline), [timeline]);
  const latencies = useMemo(
    (): Line[] => [
      { label: "p50", values: timeline.p50, color: "--p50", width: 2 },
      { label: "p95", values: timeline.p95, color: "--p95" },
      // Dashed and on top: in small windows p95 and p99 are the same request.
      { label: "p99", values: timeline.p99, color: "--p99", dash: [5, 3] },
    ],
    [timeline],
  );
  const { p50, p95, p99 } = step.latencyMs;
  return (
    <article class="card step" aria-label={`Step ${step.name}`}>
      <h3>
        {step.name} <span class="tag">{step.protocol}</span>
        <Tags tags={step.tags} />
      </h3>
      <Facts facts={stepFacts(step)} />
      {step.requests === 0 ? (
        <p class="empty">No request of this step finished.</p>
      ) : (
        <>
          <div class="pair">
            <TimeChart
              title="Rate"
              description={`Requests per second of ${step.name}: ${formatRate(step.ratePerSecond)} on average.`}
              atSeconds={timeline.atSeconds}
              lines={rates}
              format={formatRate}
              formatTick={formatCompactRate}
              group={group}
            />
            <TimeChart
              title="Latency"
              description={
                `Latency of ${step.name} over time; over the whole run p50 ${formatMs(p50)}, ` +
                `p95 ${formatMs(p95)}, p99 ${formatMs(p99)}.`
              }
              atSeconds={timeline.atSeconds}
              lines={latencies}
              format={formatMs}
              formatTick={formatMs}
              group={group}
              latency
            />
          </div>
          <Histogram step={step} />
          <Timings step={step} />
          <Samples samples={step.samples ?? []} />
        </>
      )}
    </article>
  );
}

function Samples({ samples }: { readonly samples: readonly ErrorSample[] }) {
  if (samples.length === 0) return null;
  const columns = [
    { title: "At", numeric: true },
    { title: "Kind" },
    { title: "Status", numeric: true },
    { title: "Call" },
    { title: "What was said" },
  ];
  const rows = samples.map(({ atSeconds, call, kind, status, text }) => [
    formatSeconds(atSeconds),
    kind,
    status === 0 ? "–" : String(status),
    call,
    text,
  ]);
  return <Table caption="Some failures" columns={columns} rows={rows} />;
}

function stepFacts(step: StepSummary): Fact[] {
  return [
    ["Requests", formatCount(step.requests)],
    ["Rate", formatRate(step.ratePerSecond)],
    ["Ok", formatCount(step.ok)],
    ["Failed", formatCount(step.failed)],
    ["Interrupted", formatCount(step.interrupted)],
    ...(step.sent === undefined ? [] : [["On the wire", formatCount(step.sent)] as const]),
    ["Received", formatBytes(step.bytesIn)],
    ["Sent", formatBytes(step.bytesOut)],
  ];
}

function Timings({ step }: { readonly step: StepSummary }) {
  const parts: [string, Distribution][] = [
    ["Latency", step.latencyMs],
    ["Service time", step.serviceMs],
    ["First byte", step.firstByteMs],
    ["Connect", step.connectMs],
    ["TLS", step.tlsMs],
  ];
  const figures = [
    ...(["min", "mean", "p50", "p75", "p90", "p95"] as const),
    ...(["p99", "p99_9", "p99_99", "max"] as const),
  ];
  const columns = [
    { title: "Time" },
    { title: "Count", numeric: true },
    ...figures.map((figure) => ({ title: figure.replace("_", "."), numeric: true })),
  ];
  const rows = parts
    .filter(([, times]) => times.count > 0)
    .map(([name, times]) => [
      name,
      formatCount(times.count),
      ...figures.map((figure) => msOf(times, figure)),
    ]);
  return <Table caption={`Times of ${step.name}`} columns={columns} rows={rows} />;
}

function msOf(times: Distribution, figure: keyof Distribution): ComponentChildren {
  return times.count === 0 ? <span class="quiet">–</span> : formatMs(times[figure]);
}
