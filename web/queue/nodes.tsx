/** Nodes, what each can run, and which one leads. */

import { formatCount } from "../../src/core/load/results/format.ts";
import type { ClusterStatus, NodeInfo } from "../../src/queue/api/types.ts";
import { Chip, Tags, type Tone } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { place } from "./address.ts";
import { spanText } from "./parts.tsx";

const TONES: Readonly<Record<NodeInfo["status"], Tone>> = {
  healthy: "good",
  stale: "warn",
  dead: "bad",
};

export function NodesView({ status }: { readonly status: ClusterStatus | undefined }) {
  return (
    <>
      <h1 class="page-title">Nodes</h1>
      {status === undefined ? (
        <p class="empty">Loading …</p>
      ) : (
        <Table
          caption="Nodes"
          stacked
          columns={[
            { title: "Node" },
            { title: "Status" },
            { title: "Role" },
            { title: "Slots", numeric: true },
            { title: "Leases", numeric: true },
            { title: "Executors" },
            { title: "Last heard", numeric: true },
            { title: "Address", wideOnly: true },
          ]}
          rows={status.nodes.map((node) => ({
            key: node.node_id,
            cells: [
              { text: <a href={place("tasks", { node: node.node_id })}>{node.node_id}</a> },
              { text: <Chip tone={TONES[node.status]}>{node.status}</Chip> },
              { text: node.node_id === status.leader?.node_id ? <b>leads</b> : node.role },
              { text: node.max_parallel === 0 ? "–" : formatCount(node.max_parallel) },
              { text: formatCount(status.leases[node.node_id] ?? 0) },
              { text: <CanRun node={node} /> },
              { text: `${spanText(node.heartbeat_at, null)} ago` },
              { text: node.url ?? "" },
            ],
          }))}
        />
      )}
    </>
  );
}

function CanRun({ node }: { readonly node: NodeInfo }) {
  const capabilities = Object.entries(node.capabilities).map(
    ([name, value]) => [name, String(value)] as const,
  );
  return (
    <span class="wrapped">
      {node.executor_types.length === 0 ? "none" : node.executor_types.join(", ")}{" "}
      <Tags tags={Object.fromEntries(capabilities)} />
    </span>
  );
}
