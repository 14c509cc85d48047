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
  "core/run/plan": { path: "src/core/run/plan/", imports: ["core/base"] },
  "core/run/job": {
    path: "src/core/run/job/",
    imports: ["core/base", "core/run/plan"],
  },
  "core/run/stats": { path: "src/core/run/stats/", imports: ["core/base"] },
  "core/run/results": {
    path: "src/core/run/results/",
    imports: ["core/base", "core/run/plan", "core/run/job", "core/run/stats"],
  },
  /** The executions of a job and their figures: what a local runner and a manager drive. */
  "core/run/execution": {
    path: "src/core/run/execution/",
    imports: ["core/base", "core/run/job", "core/run/plan", "core/run/results"],
  },
  "core/cluster/swim": {
    path: "src/core/cluster/swim/",
    imports: ["core/base", "core/cluster/vivaldi"],
  },
  "core/cluster/vivaldi": { path: "src/core/cluster/vivaldi/", imports: ["core/base"] },
  "core/cluster/election": {
    path: "src/core/cluster/election/",
    imports: ["core/base"],
  },
  "core/cluster/discovery": {
    path: "src/core/cluster/discovery/",
    imports: ["core/base"],
  },
  "core/cluster/ring": { path: "src/core/cluster/ring/", imports: ["core/base"] },
  "core/ledger/log": { path: "src/core/ledger/log/", imports: ["core/base"] },
  "core/ledger/group": { path: "src/core/ledger/group/", imports: ["core/base"] },
  "core/ledger/job": {
    path: "src/core/ledger/job/",
    imports: ["core/base"],
  },
  "core/ledger/keys": {
    path: "src/core/ledger/keys/",
    imports: ["core/base", "core/cluster/ring"],
  },
  /** The ledger node: many groups over one log. */
  "core/ledger/node": {
    path: "src/core/ledger/node/",
    imports: [
      "core/base",
      "core/cluster/ring",
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
  "core/tiers/link": {
    path: "src/core/tiers/link/",
    imports: ["core/base", "wire", "host/ports"],
  },
  "core/tiers/gate": {
    path: "src/core/tiers/gate/",
    imports: [
      "core/base",
      "core/run/plan",
      "core/run/job",
      "core/run/execution",
      "core/run/results",
      "core/ledger/group",
      "core/ledger/job",
      "core/ledger/node",
      "core/tiers/manager",
      "core/tiers/pressure",
      "core/tiers/route",
      "core/tiers",
    ],
  },
  "core/tiers/manager": {
    path: "src/core/tiers/manager/",
    imports: [
      "core/base",
      "core/run/plan",
      "core/run/job",
      "core/run/results",
      "core/run/execution",
      "core/ledger/group",
      "core/ledger/node",
      "core/tiers",
      "core/tiers/pressure",
    ],
  },
  /** In which order datacenters are asked to take a job, and whom of several peers. */
  "core/tiers/route": { path: "src/core/tiers/route/", imports: ["core/base"] },
  /** Admission under overload: which requests wait and which are rejected. */
  "core/tiers/pressure": {
    path: "src/core/tiers/pressure/",
    imports: ["core/base", "core/tiers", "wire"],
  },
  "core/tiers/worker": {
    path: "src/core/tiers/worker/",
    imports: [
      ...["core/base", "core/run/plan", "core/run/job", "core/run/stats", "core/tiers/pressure"],
      "core/tiers",
    ],
  },
  /** Files of jobs on their way. */
  "core/tiers/artifacts": {
    path: "src/core/tiers/artifacts/",
    imports: ["core/base", "core/tiers"],
  },
  /** Messages between managers, workers and clients. */
  "core/tiers": {
    path: "src/core/tiers/",
    imports: ["core/run/job", "core/run/results"],
  },
  /** One pure machine per process: what production and the simulator drive. */
  "core/tiers/process": {
    path: "src/core/tiers/process/",
    imports: [
      "core/base",
      "core/cluster/swim",
      "core/cluster/election",
      "core/cluster/discovery",
      "core/ledger/log",
      "core/ledger/job",
      "core/ledger/keys",
      "core/ledger/node",
      "core/ledger/store",
      "core/tiers/pressure",
      "core/tiers/route",
      "core/tiers/link",
      "core/tiers/artifacts",
      "core/tiers/gate",
      "core/tiers/manager",
      "core/tiers/worker",
      "core/tiers",
      "wire",
      "host/ports",
    ],
  },
  "core/queue": { path: "src/core/queue/", imports: ["core/base", "core/run/stats"] },
  /** Codec, framing, sealing layout, limits. Encryption itself is the `aead` port. */
  wire: {
    path: "src/wire/",
    imports: [
      "core/base",
      "core/cluster/swim",
      "core/cluster/vivaldi",
      "core/cluster/election",
      "core/run/plan",
      "core/run/job",
      "core/tiers",
      "host/ports",
    ],
  },
  // Host side. Ports are interfaces only: that is why the pure `wire` may name the cipher's.
  "host/ports": { path: "src/host/ports/", imports: ["core/base"] },
  "host/control": {
    path: "src/host/control/",
    imports: ["core/base", "host/ports", "host"],
  },
  host: { path: "src/host/", imports: ["core/base", "core/tiers/link", "wire", "host/ports"] },
  "tiers/agent": {
    path: "src/tiers/agent/",
    imports: [
      "core/base",
      "core/cluster/swim",
      "core/cluster/election",
      "core/cluster/discovery",
      "core/tiers/process",
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
      "core/tiers/link",
      "core/tiers/process",
      "wire",
      "host/ports",
      "host/control",
      "host",
      "ledger/log",
    ],
  },
  "tiers/manager": {
    path: "src/tiers/manager/",
    imports: [
      "core/base",
      "core/tiers/artifacts",
      "core/tiers/manager",
      "core/tiers/pressure",
      "core/tiers/process",
      "core/tiers",
      "wire",
      "host/control",
      "host/ports",
      "host",
      "ledger",
      "protocols",
    ],
  },
  "tiers/gate": {
    path: "src/tiers/gate/",
    imports: [
      "core/base",
      "core/tiers/gate",
      "core/tiers/process",
      "core/tiers",
      "wire",
      "host/control",
      "host/ports",
      "host",
      "ledger",
      "tiers/manager",
      "protocols",
      "reporters",
    ],
  },
  "tiers/worker": {
    path: "src/tiers/worker/",
    imports: [
      "core/base",
      "core/tiers/worker",
      "core/tiers/process",
      "core/tiers",
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
      "core/run/results",
      "core/tiers/pressure",
      "core/tiers/process",
      "core/tiers",
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
    imports: ["core/base", "core/run/plan", "core/run/job", "core/run/results", "protocols"],
  },
  engine: {
    path: "src/engine/",
    imports: [
      "core/base",
      "core/run/plan",
      "core/run/job",
      "core/run/stats",
      "protocols/net",
      "protocols",
      "workflow",
    ],
  },
  runner: {
    path: "src/runner/",
    imports: [
      "core/base",
      "core/run/plan",
      "core/run/job",
      "core/run/results",
      "core/run/execution",
      "core/tiers",
      "protocols",
      "engine",
      "reporters",
    ],
  },
  reporters: {
    path: "src/reporters/",
    imports: [
      "core/base",
      "core/run/stats",
      "core/run/results",
      "host/control",
      "host",
      "protocols/target",
      "protocols/*",
    ],
  },
  ui: { path: "src/ui/", imports: ["core/base", "core/run/results"] },
  demo: { path: "src/demo/", imports: [] },
  cli: {
    path: "src/cli/",
    imports: [
      "core/base",
      "core/run/results",
      "core/ledger/log",
      "core/queue",
      "wire",
      "host/ports",
      "host/control",
      "host",
      "tiers/agent",
      "tiers/gate",
      "tiers/manager",
      "tiers/worker",
      "client",
      "core/tiers",
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
      "core/run/plan",
      "core/run/results",
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
