/** The import table: which room may import which, as docs/internals/modules.md shows it. A new edge is reviewed. */

import { PROTOCOL_ROOMS } from "./protocol-rooms.ts";

export interface Room {
  /** Path prefix; the longest match decides. A `*` stands for one folder: each is a room of its own. */
  readonly path: string;
  readonly imports: readonly string[];
}

const table = {
  // Pure, down to `wire`: values in, values out.
  "core/base": { path: "src/core/base/", imports: [] },
  "core/load/plan": { path: "src/core/load/plan/", imports: ["core/base"] },
  "core/load/job": {
    path: "src/core/load/job/",
    imports: ["core/base", "core/load/plan"],
  },
  "core/load/stats": { path: "src/core/load/stats/", imports: ["core/base"] },
  "core/load/results": {
    path: "src/core/load/results/",
    imports: ["core/base", "core/load/plan", "core/load/job", "core/load/stats"],
  },
  /** The executions of a job and their figures: what a local runner and a manager drive. */
  "core/load/execution": {
    path: "src/core/load/execution/",
    imports: ["core/base", "core/load/job", "core/load/plan", "core/load/results"],
  },
  "core/membership/swim": {
    path: "src/core/membership/swim/",
    imports: ["core/base", "core/membership/vivaldi"],
  },
  "core/membership/vivaldi": { path: "src/core/membership/vivaldi/", imports: ["core/base"] },
  "core/membership/election": {
    path: "src/core/membership/election/",
    imports: ["core/base"],
  },
  "core/membership/discovery": {
    path: "src/core/membership/discovery/",
    imports: ["core/base"],
  },
  "core/membership/ring": { path: "src/core/membership/ring/", imports: ["core/base"] },
  "core/ledger/log": { path: "src/core/ledger/log/", imports: ["core/base"] },
  "core/ledger/group": { path: "src/core/ledger/group/", imports: ["core/base"] },
  "core/ledger/job": {
    path: "src/core/ledger/job/",
    imports: ["core/base"],
  },
  "core/ledger/keys": {
    path: "src/core/ledger/keys/",
    imports: ["core/base", "core/membership/ring"],
  },
  /** The ledger node: many groups over one log. */
  "core/ledger/node": {
    path: "src/core/ledger/node/",
    imports: [
      "core/base",
      "core/membership/ring",
      "core/ledger/log",
      "core/ledger/group",
      "core/ledger/job",
      "core/ledger/keys",
    ],
  },
  /** Files of a node: its log, checkpoints of its state, finished jobs. */
  "core/ledger/store": {
    path: "src/core/ledger/store/",
    imports: [
      "core/base",
      "core/ledger/log",
      "core/ledger/group",
      "core/ledger/job",
      "core/ledger/node",
    ],
  },
  /** All connections of a process. The cipher and the compressor are ports. */
  "core/cluster/link": {
    path: "src/core/cluster/link/",
    imports: ["core/base", "wire", "host/ports"],
  },
  "core/cluster/gate": {
    path: "src/core/cluster/gate/",
    imports: [
      "core/base",
      "core/load/plan",
      "core/load/job",
      "core/load/execution",
      "core/load/results",
      "core/ledger/group",
      "core/ledger/job",
      "core/ledger/node",
      "core/cluster/manager",
      "core/cluster/overload",
      "core/cluster/routing",
      "core/cluster",
    ],
  },
  "core/cluster/manager": {
    path: "src/core/cluster/manager/",
    imports: [
      "core/base",
      "core/load/plan",
      "core/load/job",
      "core/load/results",
      "core/load/execution",
      "core/ledger/group",
      "core/ledger/node",
      "core/cluster",
      "core/cluster/overload",
    ],
  },
  /** In which order datacenters are asked to take a job, and whom of several peers. */
  "core/cluster/routing": { path: "src/core/cluster/routing/", imports: ["core/base"] },
  /** Admission under overload: which requests wait and which are rejected. */
  "core/cluster/overload": {
    path: "src/core/cluster/overload/",
    imports: ["core/base", "core/cluster", "wire"],
  },
  "core/cluster/worker": {
    path: "src/core/cluster/worker/",
    imports: [
      ...[
        "core/base",
        "core/load/plan",
        "core/load/job",
        "core/load/stats",
        "core/cluster/overload",
      ],
      "core/cluster",
    ],
  },
  /** Files of jobs on their way. */
  "core/cluster/artifacts": {
    path: "src/core/cluster/artifacts/",
    imports: ["core/base", "core/cluster"],
  },
  /** Messages between managers, workers and clients. */
  "core/cluster": {
    path: "src/core/cluster/",
    imports: ["core/load/job", "core/load/results"],
  },
  /** One pure machine per process: what production and the simulator drive. */
  "core/cluster/node": {
    path: "src/core/cluster/node/",
    imports: [
      "core/base",
      "core/membership/swim",
      "core/membership/election",
      "core/membership/discovery",
      "core/ledger/log",
      "core/ledger/job",
      "core/ledger/keys",
      "core/ledger/node",
      "core/ledger/store",
      "core/cluster/overload",
      "core/cluster/routing",
      "core/cluster/link",
      "core/cluster/artifacts",
      "core/cluster/gate",
      "core/cluster/manager",
      "core/cluster/worker",
      "core/cluster",
      "wire",
      "host/ports",
    ],
  },
  "core/queue": { path: "src/core/queue/", imports: ["core/base", "core/load/stats"] },
  /** Codec, framing, sealing layout, limits. Encryption itself is the `aead` port. */
  wire: {
    path: "src/wire/",
    imports: [
      "core/base",
      "core/membership/swim",
      "core/membership/vivaldi",
      "core/membership/election",
      "core/load/plan",
      "core/load/job",
      "core/cluster",
      "host/ports",
    ],
  },
  // Host side. Ports are interfaces only: that is why the pure `wire` may name the cipher's.
  "host/ports": { path: "src/host/ports/", imports: ["core/base"] },
  "host/control": {
    path: "src/host/control/",
    imports: ["core/base", "host/ports", "host"],
  },
  host: { path: "src/host/", imports: ["core/base", "core/cluster/link", "wire", "host/ports"] },
  "nodes/agent": {
    path: "src/nodes/agent/",
    imports: [
      "core/base",
      "core/membership/swim",
      "core/membership/election",
      "core/membership/discovery",
      "core/cluster/node",
      "wire",
      "host/ports",
      "host/control",
      "host",
    ],
  },
  /** The write-ahead log on real files. */
  "ledger/log": {
    path: "src/ledger/log/",
    imports: ["core/base", "core/ledger/log", "host/ports", "host"],
  },
  ledger: {
    path: "src/ledger/",
    imports: [
      "core/base",
      "core/ledger/log",
      "core/ledger/group",
      "core/ledger/job",
      "core/ledger/keys",
      "core/ledger/node",
      "core/ledger/store",
      "core/cluster/link",
      "core/cluster/node",
      "wire",
      "host/ports",
      "host/control",
      "host",
      "ledger/log",
    ],
  },
  "nodes/manager": {
    path: "src/nodes/manager/",
    imports: [
      "core/base",
      "core/cluster/artifacts",
      "core/cluster/manager",
      "core/cluster/overload",
      "core/cluster/node",
      "core/cluster",
      "wire",
      "host/control",
      "host/ports",
      "host",
      "ledger",
      "protocols",
    ],
  },
  "nodes/gate": {
    path: "src/nodes/gate/",
    imports: [
      "core/base",
      "core/cluster/gate",
      "core/cluster/node",
      "core/cluster",
      "wire",
      "host/control",
      "host/ports",
      "host",
      "ledger",
      "nodes/manager",
      "protocols",
      "reporters",
    ],
  },
  "nodes/worker": {
    path: "src/nodes/worker/",
    imports: [
      "core/base",
      "core/cluster/worker",
      "core/cluster/node",
      "core/cluster",
      "wire",
      "host/ports",
      "host/control",
      "host",
      "ledger/log",
      "ledger",
      "engine",
      "protocols",
    ],
  },
  /** A program's way to a cluster. */
  client: {
    path: "src/client/",
    imports: [
      "core/base",
      "core/load/results",
      "core/cluster/overload",
      "core/cluster/node",
      "core/cluster",
      "wire",
      "host",
      "runner",
    ],
  },
  /** Audit log of requests, on its own write-ahead log. */
  audit: {
    path: "src/audit/",
    imports: ["core/base", "core/ledger/log", "wire", "host/ports", "host", "ledger/log"],
  },
  "queue/api": {
    path: "src/queue/api/",
    imports: ["core/base", "core/queue", "host/control"],
  },
  "queue/store": {
    path: "src/queue/store/",
    imports: ["core/base", "core/queue", "host/ports", "host", "queue/api"],
  },
  "queue/leader": {
    path: "src/queue/leader/",
    imports: [
      "core/base",
      "core/queue",
      "host/ports",
      "host",
      "host/control",
      "queue/api",
      "queue/store",
    ],
  },
  "queue/worker": {
    path: "src/queue/worker/",
    imports: ["core/base", "core/queue", "host/ports", "host", "queue/api"],
  },
  /** Executors in processes of their own. */
  "queue/isolation": {
    path: "src/queue/isolation/",
    imports: ["core/base", "core/queue", "host", "queue/api", "queue/worker", "queue/executors"],
  },
  "queue/executors": {
    path: "src/queue/executors/",
    imports: ["core/base", "core/queue", "host", "queue/worker"],
  },
  queue: {
    path: "src/queue/",
    imports: [
      "core/base",
      "core/queue",
      "host/ports",
      "host/control",
      "host",
      "queue/api",
      "queue/store",
      "queue/leader",
      "queue/worker",
      "queue/executors",
      "queue/isolation",
      "runner",
    ],
  },
  ...PROTOCOL_ROOMS,
  workflow: {
    path: "src/workflow/",
    imports: ["core/base", "core/load/plan", "core/load/job", "core/load/results", "protocols"],
  },
  engine: {
    path: "src/engine/",
    imports: [
      "core/base",
      "core/load/plan",
      "core/load/job",
      "core/load/stats",
      "protocols/net",
      "protocols",
      "workflow",
    ],
  },
  runner: {
    path: "src/runner/",
    imports: [
      "core/base",
      "core/load/plan",
      "core/load/job",
      "core/load/results",
      "core/load/execution",
      "core/cluster",
      "protocols",
      "engine",
      "reporters",
    ],
  },
  reporters: {
    path: "src/reporters/",
    imports: [
      "core/base",
      "core/load/stats",
      "core/load/results",
      "host/control",
      "host",
      "protocols/target",
      "protocols/*",
    ],
  },
  ui: { path: "src/ui/", imports: ["core/base", "core/load/results"] },
  demo: { path: "src/demo/", imports: [] },
  cli: {
    path: "src/cli/",
    imports: [
      "core/base",
      "core/load/results",
      "core/ledger/log",
      "core/queue",
      "wire",
      "host/ports",
      "host/control",
      "host",
      "nodes/agent",
      "nodes/gate",
      "nodes/manager",
      "nodes/worker",
      "client",
      "core/cluster",
      "ledger/log",
      "audit",
      "ledger",
      "queue/executors",
      "queue/isolation",
      "queue",
      "protocols",
      "protocols/grpc",
      "runner",
      "reporters",
      "ui",
      "demo",
    ],
  },
  public: {
    path: "src/index.ts",
    imports: [
      "core/base",
      "core/load/plan",
      "core/load/results",
      "protocols",
      "protocols/http",
      "protocols/http1",
      "protocols/http2",
      "protocols/graphql",
      "protocols/websocket",
      "workflow",
      "engine",
      "reporters",
      "runner",
    ],
  },
} satisfies Record<string, Room>;

export type NamedRoom = Room & {
  readonly name: string;
  /** No clock, randomness, sockets, files, promises or packages. */
  readonly pure: boolean;
};

/** In the order of the table, from the inside out. */
export const rooms: readonly NamedRoom[] = Object.entries(table).map(
  ([name, room]: [string, Room]) => ({
    ...room,
    name,
    pure: name === "wire" || name.startsWith("core/"),
  }),
);
