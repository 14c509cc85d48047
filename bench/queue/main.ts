/**
 * The queue beside graphile-worker and pg-boss: one PostgreSQL server, one run, no-op tasks.
 *
 *     npm run bench:queue [-- --count 50000 --rounds 5 --finished 1000000 --part speed,latency,recovery,million]
 *
 * Rounds alternate, so that a noisy machine is noisy for all; the table shows medians. All of ours
 * run with leases, fencing and events on, as users get them.
 */

import { parseArgs } from "node:util";
import { TestPostgres } from "../../test/processes/queue/server.ts";
import { benchGraphileLatency, benchLatency, benchRecovery } from "./latency.ts";
import { benchOurs, fillFinished } from "./ours.ts";
import { benchGraphile, benchPgBoss, type Speeds } from "./peers.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "50000" },
    rounds: { type: "string", default: "5" },
    samples: { type: "string", default: "500" },
    finished: { type: "string", default: "1000000" },
    part: { type: "string", default: "speed,latency,recovery,million" },
  },
});
const count = Number(values.count);
const rounds = Number(values.rounds);
const samples = Number(values.samples);
const parts = new Set(values.part.split(","));
const CONCURRENCY = 24;
const RECOVERY_LEASE_MS = 5_000;

interface Line {
  readonly figure: string;
  readonly ours: string;
  readonly other: string;
  readonly ratio: string;
  readonly must: string;
}
const lines: Line[] = [];
const server = await TestPostgres.start({
  settings: { shared_buffers: "256MB", max_wal_size: "4GB" },
});
try {
  if (parts.has("speed")) await speed();
  if (parts.has("latency")) await latency();
  if (parts.has("recovery")) await recovery();
  if (parts.has("million")) await million();
} finally {
  await server.stop();
}
console.table(lines);

async function speed(): Promise<void> {
  const results: Record<"ours" | "graphile" | "boss", Speeds[]> = {
    ours: [],
    graphile: [],
    boss: [],
  };
  for (let round = 1; round <= rounds; round++) {
    results.ours.push(
      await told("hyperscale", round, benchOurs(await fresh(), count, CONCURRENCY)),
    );
    results.graphile.push(
      await told("graphile-worker", round, benchGraphile(await fresh(), count, CONCURRENCY)),
    );
    results.boss.push(await told("pg-boss", round, benchPgBoss(await fresh(), count)));
  }
  const tasks = (of: Speeds[]): number => median(of.map((one) => one.tasksPerSecond));
  const submits = (of: Speeds[]): number => median(of.map((one) => one.submitsPerSecond));
  compare(
    "tasks/s, batched / graphile-worker",
    tasks(results.ours),
    tasks(results.graphile),
    ">= 1.0, aim 1.5",
  );
  compare(
    "tasks/s, batched / pg-boss batch 100",
    tasks(results.ours),
    tasks(results.boss),
    ">= 2, aim 4",
  );
  compare(
    "submits/s / graphile addJobs",
    submits(results.ours),
    submits(results.graphile),
    ">= 1.0, aim 1.5",
  );
}

async function latency(): Promise<void> {
  const graphile = await benchGraphileLatency(await fresh(), samples);
  for (const apart of [false, true]) {
    const ours = await benchLatency(await fresh(), samples, apart);
    const text = (of: { p50: number; p99: number }): string =>
      `${of.p50.toFixed(1)} / ${of.p99.toFixed(1)} ms`;
    lines.push({
      figure: `submit to start p50 / p99, ${apart ? "worker apart" : "leader works"}`,
      ours: text(ours),
      other: text(graphile),
      ratio: "",
      must: "<= 10 / 50 ms, aim 4 / 20",
    });
  }
}

async function recovery(): Promise<void> {
  const ms = await benchRecovery(await fresh(), RECOVERY_LEASE_MS);
  const over = ms - RECOVERY_LEASE_MS;
  lines.push({
    figure: `recovery of a killed worker's task, lease ${RECOVERY_LEASE_MS / 1_000} s`,
    ours: `${(ms / 1_000).toFixed(2)} s`,
    other: "",
    ratio: `lease ${over < 0 ? "-" : "+"} ${(Math.abs(over) / 1_000).toFixed(2)} s`,
    must: "<= lease + 2 s",
  });
}

async function million(): Promise<void> {
  const finished = Number(values.finished);
  const full = await fresh();
  await fillFinished(full, finished, (url, text) => server.query(url, text));
  const empty: number[] = [];
  const filled: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    empty.push(
      (await told("empty table", round, benchOurs(await fresh(), count, CONCURRENCY)))
        .tasksPerSecond,
    );
    filled.push(
      (await told("full table", round, benchOurs(full, count, CONCURRENCY))).tasksPerSecond,
    );
  }
  compare(`tasks/s with ${finished} finished / empty`, median(filled), median(empty), ">= 0.9");
}

function fresh(): Promise<string> {
  return server.createDatabase();
}

async function told(name: string, round: number, work: Promise<Speeds>): Promise<Speeds> {
  const speeds = await work;
  const figure = (value: number): string => value.toFixed(0).padStart(7);
  console.log(
    `${round} ${name.padEnd(16)} ${figure(speeds.submitsPerSecond)} submits/s ${figure(speeds.tasksPerSecond)} tasks/s`,
  );
  return speeds;
}

function compare(figure: string, ours: number, other: number, must: string): void {
  lines.push({
    figure,
    ours: ours.toFixed(0),
    other: other.toFixed(0),
    ratio: (ours / other).toFixed(2),
    must,
  });
}

function median(of: readonly number[]): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
