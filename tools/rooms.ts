/**
 * The import table: which room may import which. A new edge is a reviewed change, not an accident.
 * ARCHITECTURE.md shows the same table as a picture.
 */

export interface Room {
  /** Path prefix; the longest match decides. */
  readonly path: string;
  readonly imports: readonly string[];
  /** No clock, randomness, sockets, files or promises; only the named packages. */
  readonly pure?: boolean;
  readonly packages?: readonly string[];
}

const table = {
  // Pure: values in, values out.
  "core/base": { path: "src/core/base/", imports: [], pure: true },
  "core/time": { path: "src/core/time/", imports: ["core/base"], pure: true },
  "core/stats": { path: "src/core/stats/", imports: ["core/base"], pure: true },
  "core/plan": { path: "src/core/plan/", imports: ["core/base", "core/time"], pure: true },
  "core/dispatch": {
    path: "src/core/dispatch/",
    imports: ["core/base", "core/time", "core/plan"],
    pure: true,
  },
  "core/queue": { path: "src/core/queue/", imports: ["core/base", "core/time"], pure: true },
  "core/vivaldi": { path: "src/core/vivaldi/", imports: ["core/base"], pure: true },
  "core/ring": { path: "src/core/ring/", imports: ["core/base"], pure: true },
  "core/discovery": { path: "src/core/discovery/", imports: ["core/base"], pure: true },
  "core/durable": { path: "src/core/durable/", imports: ["core/base"], pure: true },
  "core/idempotency": {
    path: "src/core/idempotency/",
    imports: ["core/base", "core/ring"],
    pure: true,
  },
  "core/wal": { path: "src/core/wal/", imports: ["core/base"], pure: true },
  "core/lease": { path: "src/core/lease/", imports: ["core/base"], pure: true },
  "core/swim": {
    path: "src/core/swim/",
    imports: ["core/base", "core/vivaldi"],
    pure: true,
  },
  "core/vsr": { path: "src/core/vsr/", imports: ["core/base"], pure: true },
  "core/election": { path: "src/core/election/", imports: ["core/base"], pure: true },
  "core/hlc": { path: "src/core/hlc/", imports: ["core/base"], pure: true },
  "core/ledger": {
    path: "src/core/ledger/",
    imports: ["core/base", "core/hlc", "core/stats"],
    pure: true,
  },
  /** The ledger node: many groups over one log. */
  "core/replica": {
    path: "src/core/replica/",
    imports: [
      "core/base",
      "core/hlc",
      "core/wal",
      "core/vsr",
      "core/ledger",
      "core/idempotency",
      "core/ring",
    ],
    pure: true,
  },
  "core/health": {
    path: "src/core/health/",
    imports: ["core/base", "core/vivaldi"],
    pure: true,
  },
  results: {
    path: "src/results/",
    imports: ["core/base", "core/time", "core/stats", "core/plan", "core/dispatch"],
    pure: true,
  },
  /** Codec, framing, sealing layout, limits. Encryption itself is the `aead` port. */
  wire: {
    path: "src/wire/",
    imports: [
      "core/base",
      "core/time",
      "core/vivaldi",
      "core/swim",
      "core/election",
      "core/health",
      "ports",
    ],
    pure: true,
  },
  // Host side.
  ports: { path: "src/ports/", imports: ["core/base", "core/time"] },
  adapters: { path: "src/adapters/", imports: ["core/base", "core/time", "wire", "ports"] },
  /** The write-ahead log on real files. */
  wal: { path: "src/wal/", imports: ["core/base", "core/wal", "ports"] },
  node: {
    path: "src/node/",
    imports: [
      "core/base",
      "core/time",
      "core/vivaldi",
      "core/durable",
      "core/discovery",
      "core/swim",
      "core/election",
      "core/health",
      "wire",
      "ports",
      "adapters",
    ],
  },
  /** The agent's control interface: the server for others, the client for our own commands. */
  api: { path: "src/api/", imports: ["core/base", "core/time", "ports", "adapters", "node"] },
  /** The ledger process: the pure node over real files and real connections, and its interface. */
  ledger: {
    path: "src/ledger/",
    imports: [
      "core/base",
      "core/hlc",
      "core/wal",
      "core/vsr",
      "core/ledger",
      "core/idempotency",
      "core/replica",
      "wire",
      "ports",
      "adapters",
      "wal",
      "node",
    ],
  },
  protocols: { path: "src/protocols/", imports: ["core/base", "core/time", "core/stats"] },
  workflow: {
    path: "src/workflow/",
    imports: [
      "core/base",
      "core/time",
      "core/plan",
      "core/dispatch",
      "core/stats",
      "protocols",
      "results",
    ],
  },
  engine: {
    path: "src/engine/",
    imports: [
      "core/base",
      "core/time",
      "core/stats",
      "core/plan",
      "core/dispatch",
      "protocols",
      "workflow",
    ],
  },
  runner: {
    path: "src/runner/",
    imports: [
      "core/base",
      "core/time",
      "core/stats",
      "core/plan",
      "core/dispatch",
      "results",
      "workflow",
      "engine",
      "protocols",
    ],
  },
  report: { path: "src/report/", imports: ["core/base", "core/time", "core/stats", "results"] },
  ui: { path: "src/ui/", imports: ["core/base", "core/time", "core/stats", "results"] },
  demo: { path: "src/demo/", imports: ["core/base", "core/time"] },
  queue: { path: "src/queue/", imports: ["core/base", "core/time", "core/queue"] },
  cli: {
    path: "src/cli/",
    imports: [
      "core/queue",
      "queue",
      "core/base",
      "core/time",
      "core/stats",
      "core/plan",
      "results",
      "ports",
      "protocols",
      "workflow",
      "runner",
      "report",
      "ui",
      "demo",
      "wire",
      "adapters",
      "node",
      "api",
      "core/swim",
      "core/wal",
      "wal",
      "core/idempotency",
      "core/ledger",
      "core/replica",
      "ledger",
    ],
  },
  public: {
    path: "src/index.ts",
    imports: ["workflow", "protocols", "runner", "results", "core/time"],
  },
} satisfies Record<string, Room>;

export type NamedRoom = Room & { readonly name: string };

/** In the order of the table, from the inside out. */
export const rooms: readonly NamedRoom[] = Object.entries(table).map(
  ([name, room]: [string, Room]) => ({ ...room, name }),
);

/** Deepest path first, as `roomOf` needs it. */
const byDepth = [...rooms].sort((a, b) => b.path.length - a.path.length);

/** The room a file of src/ belongs to, the deepest one first; undefined outside src/. */
export function roomOf(file: string): NamedRoom | undefined {
  if (!file.startsWith("src/")) return undefined;
  const room = byDepth.find(({ path }) => file.startsWith(path));
  if (room === undefined) throw new Error(`${file} is in no room of tools/rooms.ts`);
  return room;
}
