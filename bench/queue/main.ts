/**
 * The queue beside graphile-worker and pg-boss: one PostgreSQL server, one run, no-op tasks.
 *
 *     npm run bench:queue [-- --row equal,production --count 50000 --rounds 5 --finished 1000000]
 *
 * Rounds alternate, so that a noisy machine is noisy for all; the table shows medians. All of ours run with leases,
 * fencing and events on, as for users.
 */

import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { TestPostgres } from "../../test/processes/queue/server.ts";
import { benchLeaderKill, benchRecovery } from "./failures.ts";
import { benchGraphileLatency, benchLatency } from "./latency.ts";
import { benchOurs, benchRemote, fillFinished } from "./ours.ts";
import { benchListPage } from "./page.ts";
import { type Arena, benchGraphile, benchPgBoss, type Speeds } from "./peers.ts";
import { isolateExecutors } from "./product.ts";

const EQUAL_CONCURRENCY = 10;
/** From graphile-worker's page on performance. */
const GRAPHILE_CONCURRENCY = 24;
const RECOVERY_LEASE_MS = 5_000;

const ROWS: Readonly<Record<string, () => Promise<void>>> = {
  equal: async () => {
    const settings = { maxParallel: EQUAL_CONCURRENCY, prefetch: 4_000 };
    compareTasks(
      `tasks/s, batched, concurrency ${EQUAL_CONCURRENCY} / graphile-worker`,
      await alternated(
        ["hyperscale", (arena) => benchOurs(arena, settings)],
        graphile(EQUAL_CONCURRENCY),
      ),
      1.5,
    );
  },
  production: async () => {
    compareTasks(
      "tasks/s, batched, documented settings / graphile-worker",
      await alternated(["hyperscale", benchOurs], graphile(GRAPHILE_CONCURRENCY)),
      1.5,
    );
  },
  pgboss: async () => {
    compareTasks(
      "tasks/s, batched / pg-boss at batch 100",
      await alternated(["hyperscale", benchOurs], ["pg-boss", benchPgBoss]),
      4,
    );
  },
  submits: async () => {
    const [ours, other] = await alternated(
      ["hyperscale", benchOurs],
      graphile(GRAPHILE_CONCURRENCY),
    );
    const submits = (of: readonly Speeds[]): number =>
      median(of.map((one) => one.submitsPerSecond));
    compare("submits/s / graphile addJobs", submits(ours), submits(other), 1.3);
  },
  latency,
  remote: async () => {
    compareTasks(
      "tasks/s, a worker apart / the leader's own",
      await alternated(["worker apart", benchRemote], ["leader works", benchOurs]),
      0.8,
    );
  },
  isolated,
  million,
  recovery,
  leader,
  page: async () => {
    const bytes = await benchListPage(await server.createDatabase());
    line({
      figure: "list of 50 tasks with 1 MB in and out each",
      ours: `${(bytes / 1_000).toFixed(1)} KB`,
      must: "<= 100 KB",
      met: bytes <= 100_000,
    });
  },
};

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "50000" },
    rounds: { type: "string", default: "5" },
    samples: { type: "string", default: "500" },
    finished: { type: "string", default: "1000000" },
    row: { type: "string", default: Object.keys(ROWS).join(",") },
  },
});
const count = Number(values.count);
const rounds = Number(values.rounds);
const samples = Number(values.samples);

interface Line {
  readonly figure: string;
  readonly ours: string;
  readonly other: string;
  readonly ratio: string;
  /** CPU time per task: ours relative to the other's. */
  readonly cpu: string;
  readonly must: string;
  readonly met: string;
}
const lines: Line[] = [];
const chosen = values.row.split(",").map((name) => {
  const row = ROWS[name];
  if (row === undefined)
    throw new Error(`no row "${name}": there are ${Object.keys(ROWS).join(", ")}`);
  return row;
});
const server = await TestPostgres.start({
  settings: { fsync: "on", shared_buffers: "256MB", max_wal_size: "4GB" },
});
try {
  for (const row of chosen) await row();
} finally {
  await server.stop();
  console.table(lines);
  console.log(`load of the machine: ${loadavg()[1]?.toFixed(1)} over five minutes`);
}

type Contender = readonly [string, (arena: Arena) => Promise<Speeds>];

function graphile(concurrency: number): Contender {
  return ["graphile-worker", (arena) => benchGraphile(arena, concurrency)];
}

/** Each in a database of its own, in turn. */
async function alternated(
  ours: Contender,
  other: Contender,
): Promise<readonly [readonly Speeds[], readonly Speeds[]]> {
  const results: [Speeds[], Speeds[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    results[0].push(await measured(ours, round));
    results[1].push(await measured(other, round));
  }
  return results;
}

async function measured([name, bench]: Contender, round: number, url?: string): Promise<Speeds> {
  const speeds = await bench({
    url: url ?? (await server.createDatabase()),
    serverPid: server.pid,
    count,
  });
  const figure = (value: number): string => value.toFixed(0).padStart(7);
  console.log(
    `${round} ${name.padEnd(16)} ${figure(speeds.submitsPerSecond)} submits/s ` +
      `${figure(speeds.tasksPerSecond)} tasks/s ${figure(speeds.cpuUsPerTask)} us of processor per task`,
  );
  return speeds;
}

async function latency(): Promise<void> {
  const graphile = await benchGraphileLatency(await server.createDatabase(), samples);
  const text = (of: { p50: number; p99: number }): string =>
    `${of.p50.toFixed(1)} / ${of.p99.toFixed(1)} ms`;
  for (const apart of [false, true]) {
    const ours = await benchLatency(await server.createDatabase(), samples, apart);
    line({
      figure: `submit to start p50 / p99, ${apart ? "worker apart" : "leader works"}`,
      ours: text(ours),
      other: `graphile ${text(graphile)}`,
      must: "<= 4 / 20 ms",
      met: ours.p50 <= 4 && ours.p99 <= 20,
    });
  }
}

async function isolated(): Promise<void> {
  const file = fileURLToPath(new URL("./noop-executors.ts", import.meta.url));
  const { executors, close } = await isolateExecutors(file);
  const figures: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const speeds = await measured(["isolated", (arena) => benchOurs(arena, {}, executors)], round);
    figures.push(speeds.tasksPerSecond);
  }
  await close();
  line({
    figure: "tasks/s in processes of their own",
    ours: median(figures).toFixed(0),
    must: ">= 2000",
    met: median(figures) >= 2_000,
  });
}

async function recovery(): Promise<void> {
  const ms = await benchRecovery(await server.createDatabase(), RECOVERY_LEASE_MS);
  line({
    figure: `recovery of a killed worker's task, lease ${RECOVERY_LEASE_MS / 1_000} s`,
    ours: `${(ms / 1_000).toFixed(2)} s`,
    must: "<= lease + 2 s",
    met: ms <= RECOVERY_LEASE_MS + 2_000,
  });
}

async function leader(): Promise<void> {
  const killed = await benchLeaderKill(await server.createDatabase(), (url, text) =>
    server.query(url, text),
  );
  const { leaderMs, extraAttempts, tasks } = killed;
  line({
    figure: "leader killed: the next one takes tasks after",
    ours: `${(leaderMs / 1_000).toFixed(2)} s`,
    must: "<= 10 s",
    met: leaderMs <= 10_000,
  });
  line({
    figure: `leader killed: extra attempts of ${tasks} tasks`,
    ours: String(extraAttempts),
    must: "0",
    met: extraAttempts === 0,
  });
}

async function million(): Promise<void> {
  const finished = Number(values.finished);
  const full = await server.createDatabase();
  await fillFinished(full, finished, (url, text) => server.query(url, text));
  const results: [Speeds[], Speeds[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    results[0].push(await measured(["full table", benchOurs], round, full));
    results[1].push(await measured(["empty table", benchOurs], round));
  }
  compareTasks(`tasks/s with ${finished} finished / empty`, results, 0.9);
}

function compareTasks(
  figure: string,
  [ours, other]: readonly [readonly Speeds[], readonly Speeds[]],
  least: number,
): void {
  const tasks = (of: readonly Speeds[]): number => median(of.map((one) => one.tasksPerSecond));
  const cpu = (of: readonly Speeds[]): number => median(of.map((one) => one.cpuUsPerTask));
  const ratio = cpu(ours) === 0 ? "" : (cpu(ours) / cpu(other)).toFixed(2);
  compare(figure, tasks(ours), tasks(other), least, ratio);
}

/** Ours must be at least `least` times the other's. */
function compare(figure: string, ours: number, other: number, least: number, cpu = ""): void {
  const ratio = ours / other;
  line({
    figure,
    ours: ours.toFixed(0),
    other: other.toFixed(0),
    ratio: ratio.toFixed(2),
    cpu,
    must: `>= ${least}`,
    met: ratio >= least,
  });
}

type LineInput = Pick<Line, "figure" | "ours" | "must"> & Partial<Line>;

function line({
  met,
  figure,
  ours,
  ...measured
}: Omit<LineInput, "met"> & { readonly met: boolean }): void {
  lines.push({ figure, ours, other: "", ratio: "", cpu: "", ...measured, met: met ? "yes" : "NO" });
}

function median(of: readonly number[]): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
