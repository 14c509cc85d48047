/** Where a job of a cluster ran: each datacenter's part, what was lost, and the events. */

import {
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
} from "../../src/core/load/results/format.ts";
import type { ClusterSummary, Loss, RunSummary } from "../../src/core/load/results/model.ts";
import { partialOf } from "../../src/core/load/results/partial.ts";
import { clockAt } from "../shared/clock.ts";
import { Chip, Failed, Section } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { clusterEvents } from "./cluster-events.ts";

export function Cluster({ summary }: { readonly summary: RunSummary }) {
  const { cluster, lost } = summary;
  if (cluster === undefined) return null;
  const partial = partialOf(summary);
  return (
    <Section
      id="cluster"
      title="Cluster"
      aside={
        partial === null ? (
          <Chip tone="good">✓ every datacenter did its part</Chip>
        ) : (
          <Chip tone="warn">partial: {partial}</Chip>
        )
      }
    >
      <p class="lead">{leadText(cluster)}</p>
      <Datacenters cluster={cluster} />
      <Losses lost={lost} />
      <Changes summary={summary} />
    </Section>
  );
}

function leadText({ changes = [], datacenters, jobId, startSkewMs }: ClusterSummary): string {
  const leader = changes.at(-1)?.by;
  return [
    `Job ${jobId}`,
    `${datacenters.length} datacenter${datacenters.length === 1 ? "" : "s"}`,
    ...(leader === undefined ? [] : [`led by ${leader} in the end`]),
    ...(startSkewMs === undefined || datacenters.length < 2
      ? []
      : [`begun within ${formatMs(startSkewMs)}`]),
  ].join(", ");
}

const FIGURES = ["p50", "p95", "p99", "max"] as const;
const numeric = (title: string) => ({ title, numeric: true });

function Datacenters({ cluster }: { readonly cluster: ClusterSummary }) {
  const rows = cluster.datacenters.map((one) => {
    const share = cluster.split.find(({ datacenter }) => datacenter === one.name)?.share;
    return {
      key: one.name,
      cells: [
        { text: one.name },
        {
          text: <Chip tone={one.status === "COMPLETED" ? "good" : "bad"}>{one.status}</Chip>,
        },
        { text: share === undefined ? "–" : formatPercent(share) },
        { text: formatCount(one.workers) },
        { text: formatCount(one.requests) },
        { text: formatRate(one.ratePerSecond) },
        { text: <Failed failed={one.failed} of={one.requests} /> },
        ...FIGURES.map((figure) => ({
          text: one.latencyMs.count === 0 ? "–" : formatMs(one.latencyMs[figure]),
        })),
      ],
    };
  });
  const columns = [
    { title: "Datacenter" },
    { title: "Ended" },
    ...["Share", "Workers", "Requests", "Rate", "Failed", ...FIGURES].map(numeric),
  ];
  return <Table caption="Datacenters" columns={columns} rows={rows} />;
}

function Losses({ lost }: { readonly lost: readonly Loss[] }) {
  if (lost.length === 0) return null;
  const columns = [
    { title: "What was lost" },
    ...["At", "Users", "Requests not counted", "Missing"].map(numeric),
    { title: "Taken over by" },
  ];
  const rows = lost.map((loss, index) => ({
    key: String(index),
    cells: [
      { text: loss.worker ? `${loss.worker}: ${loss.what}` : loss.what },
      { text: clockAt(loss.atSeconds, 0.1) },
      { text: loss.users == null ? "–" : formatCount(loss.users) },
      { text: uncountedText(loss) },
      { text: loss.missingMs == null ? "–" : formatMs(loss.missingMs) },
      { text: loss.dealtAgainTo ?? "nobody" },
    ],
  }));
  return <Table caption="Losses" captioned columns={columns} rows={rows} stacked />;
}

function uncountedText({ exact, requestsNotCounted }: Loss): string {
  if (requestsNotCounted === undefined) return "–";
  if (requestsNotCounted === null) return "not known";
  return `${exact === false ? "at most " : ""}${formatCount(requestsNotCounted)}`;
}

function Changes({ summary }: { readonly summary: RunSummary }) {
  const rows = clusterEvents(summary).map(({ atSeconds, kind, text }, index) => ({
    key: String(index),
    cells: [
      { text: clockAt(Math.max(0, atSeconds), 0.1) },
      { text: kind === "leader changed" ? <b>{text}</b> : text },
    ],
  }));
  if (rows.length === 0) return null;
  const columns = [{ title: "At" }, { title: "What happened to the job" }];
  return <Table caption="Changes" captioned columns={columns} rows={rows} rowsMax={20} />;
}
