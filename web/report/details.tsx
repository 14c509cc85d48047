/** What went wrong, how the generator fared, and what exactly was run. */

import {
  formatBytes,
  formatCount,
  formatMs,
  formatPercent,
  formatSeconds,
} from "../../src/core/run/results/format.ts";
import type { GeneratorHealth, RunSummary } from "../../src/core/run/results/model.ts";
import { Chip, Section, Share, Table } from "./parts.tsx";

type SummaryProps = { readonly summary: RunSummary };

const KINDS: Readonly<Record<string, string>> = {
  dns: "the name could not be resolved",
  refused: "the connection was refused",
  reset: "the connection was cut",
  timeout: "no complete answer in time",
  tls: "the TLS handshake failed",
  protocol: "the answer broke the protocol",
  status: "the answer had a failure status",
};

export function Errors({ summary }: SummaryProps) {
  const found = summary.workflows.flatMap((workflow) =>
    workflow.steps.flatMap((step) =>
      Object.entries(step.errors).map(([kind, count]) => ({ workflow, step, kind, count })),
    ),
  );
  const rows = found
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count)
    .map(({ workflow, step, kind, count }) => [
      <span key="kind">
        <b>{kind}</b>{" "}
        {KINDS[kind] !== undefined && <span class="quiet explained">{KINDS[kind]}</span>}
      </span>,
      `${workflow.name} / ${step.name}`,
      formatCount(count),
      <Share key="share" share={step.requests === 0 ? 0 : count / step.requests} tone="bad" />,
    ]);
  const columns = [
    { title: "Kind" },
    { title: "Step" },
    { title: "Count", numeric: true },
    { title: "Share of its requests" },
  ];
  return (
    <Section id="errors" title="Errors by kind">
      {rows.length === 0 ? (
        <p class="empty">No request failed.</p>
      ) : (
        <Table caption="Errors by kind and step" columns={columns} rows={rows} />
      )}
    </Section>
  );
}

export function Statuses({ summary }: SummaryProps) {
  const steps = summary.workflows.flatMap((workflow) =>
    workflow.steps
      .filter(({ statuses }) => Object.keys(statuses).length > 0)
      .map((step) => ({ workflow, step })),
  );
  const codes = [...new Set(steps.flatMap(({ step }) => Object.keys(step.statuses)))].sort();
  if (codes.length === 0) return null;
  const columns = [{ title: "Step" }, ...codes.map((title) => ({ title, numeric: true }))];
  const rows = steps.map(({ workflow, step }) => [
    `${workflow.name} / ${step.name}`,
    ...codes.map((code) => {
      const count = step.statuses[code] ?? 0;
      return count === 0 ? <span class="quiet">0</span> : formatCount(count);
    }),
  ]);
  return (
    <Section id="statuses" title="Status codes">
      <Table caption="Answers by status code and step" columns={columns} rows={rows} />
    </Section>
  );
}

export function Generator({ generator }: { readonly generator: GeneratorHealth }) {
  const verdict = generator.limited ? (
    <Chip tone="warn">was the limit</Chip>
  ) : (
    <Chip tone="good">had room to spare</Chip>
  );
  const columns = [
    { title: "Core" },
    { title: "CPU" },
    ...["Lag p50", "Lag p99", "Lag max", "Memory"].map((title) => ({ title, numeric: true })),
    { title: "State" },
  ];
  const rows = generator.cores.map((core) => [
    String(core.core),
    <Share key="cpu" share={core.cpu} tone={core.cpu > 0.9 ? "bad" : "plain"} />,
    formatMs(core.lagMsP50),
    formatMs(core.lagMsP99),
    formatMs(core.lagMsMax),
    formatBytes(core.residentBytes),
    core.alive ? "to the end" : <b class="bad-text">lost</b>,
  ]);
  return (
    <Section id="generator" title="Load generator" aside={verdict}>
      <p class="lead">
        {generator.reason ??
          `The busiest executor core used ${formatPercent(generator.cpu)} of a CPU; event loops ` +
            `ran at most ${formatMs(generator.lagMsP99)} late (p99).`}
      </p>
      {rows.length > 0 && (
        <Table caption="Health of the executor cores" columns={columns} rows={rows} />
      )}
    </Section>
  );
}

export function RunFacts({ summary }: SummaryProps) {
  const { environment } = summary;
  const facts: [string, string][] = [
    ["Run", summary.name],
    ...(summary.title === undefined ? [] : [["Title", summary.title] as [string, string]]),
    ...Object.entries(summary.tags ?? {}),
    ...(summary.runId === undefined ? [] : [["Run id", summary.runId] as [string, string]]),
    ["Command", environment.command],
    ["Started", summary.startedAt],
    ["Duration", formatSeconds(summary.durationSeconds)],
    ["Hyperscale", environment.hyperscale],
    ["Node", environment.node],
    ["Platform", environment.platform],
    [
      "CPU",
      `${environment.cpuModel}, ${environment.cpus} CPUs, ${environment.cores} executor cores`,
    ],
    ["Schema", summary.schema],
  ];
  return (
    <Section id="run" title="Run">
      <dl class="run">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{name === "Command" ? <code>{value}</code> : value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
