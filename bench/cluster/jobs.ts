/**
 * How many jobs three gates accept per second, each with a key of its own and on the disks of a quorum before it is
 * answered: one process with many clients, each of which submits again as soon as it is answered. One long job has the
 * only core, so all others are queued; those of a round are cancelled before the next.
 */

import { type ClusterClient, hasEnded } from "../../src/client/client.ts";
import { cpuSecondsOf } from "../http/processes.ts";
import { type Findings, type Measurement, quantile } from "./row.ts";
import { pause, Stage } from "./stage.ts";

/** A gate accepts five jobs of one client per second: these may exceed the goal. */
const CLIENTS = 240;
/** Fewer than the queue limit of one tenant; they are cancelled before the next round. */
const JOBS_PER_ROUND = 800;
const CANCELLERS = 24;
const LOOK_MS = 100;
/** Jobs of a round that are checked when all are accepted: each exists, and is queued. */
const LOOKED_AT = 50;
const MUST = 200;

const JOBS = {
  name: "jobs",
  figure: "jobs per second accepted and queued (keys, 3 gates, fsync), p50",
  must: `${MUST}`,
  aim: "1,000",
};

type Submits = (client: ClusterClient) => Promise<string>;

/** Submits the jobs of a round, by clients each of which submits again as soon as it is answered. */
async function submitAll(
  clients: readonly ClusterClient[],
  submits: Submits,
): Promise<{ readonly accepted: string[]; readonly tookMs: number[] }> {
  const accepted: string[] = [];
  const tookMs: number[] = [];
  let open = JOBS_PER_ROUND;
  const run = async (client: ClusterClient): Promise<void> => {
    while (open-- > 0) {
      const at = performance.now();
      accepted.push(await submits(client));
      tookMs.push(performance.now() - at);
    }
  };
  await Promise.all(clients.map(run));
  return { accepted, tookMs };
}

/** Empties the queue. */
async function cancelAll(
  clients: readonly ClusterClient[],
  jobs: readonly string[],
): Promise<void> {
  const left = [...jobs];
  const control = { kind: "cancel", reason: "measured" } as const;
  const run = async (client: ClusterClient): Promise<void> => {
    for (let job = left.pop(); job !== undefined; job = left.pop()) {
      await client.control(job, control, "bench");
      while (!hasEnded((await client.status(job)).status)) await pause(LOOK_MS);
    }
  };
  await Promise.all(clients.slice(0, CANCELLERS).map(run));
}

async function rateOf(
  stage: Stage,
  clients: readonly ClusterClient[],
  submits: Submits,
  say: (text: string) => void,
): Promise<number> {
  const { nodes } = stage;
  const pids = nodes.names("gate").map((name) => nodes.pidOf(name));
  const cpuSeconds = (): number => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const [cpu, began] = [cpuSeconds(), performance.now()];
  const { accepted, tookMs } = await submitAll(clients, submits);
  const seconds = (performance.now() - began) / 1_000;
  const used = cpuSeconds() - cpu;
  const [p50, p99] = [quantile(tookMs, 0.5), quantile(tookMs, 0.99)];
  const rate = accepted.length / seconds;
  say(
    `jobs: ${rate.toFixed(0)} per second, answered after ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ` +
      `${((1_000 * used) / accepted.length).toFixed(1)} ms of CPU of all gates for a job`,
  );
  await check(stage, accepted);
  await cancelAll(clients, accepted);
  return rate;
}

/** One key is one job, and each checked one waits for cores. */
async function check({ client }: Stage, accepted: readonly string[]): Promise<void> {
  if (new Set(accepted).size < accepted.length) throw new Error("two keys have one job");
  for (let at = 0; at < LOOKED_AT; at++) {
    const job = accepted[Math.floor((at * accepted.length) / LOOKED_AT)] ?? "";
    const { reason, status } = await client.status(job);
    if (status !== "QUEUED") throw new Error(`${job} is ${status}: ${reason}`);
  }
}

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start({ gates: 3, managers: 1, workers: 1, cores: 1 });
  const rates: number[] = [];
  try {
    const job = await stage.prepare({ vus: 1, duration: "1h", cores: 1 });
    const first = stage.target.next();
    await stage.submit(job);
    await first;
    const clients = Array.from({ length: CLIENTS }, () => stage.nodes.client());
    const submits: Submits = (client) => client.submit(job.submission, job.files);
    try {
      // The first round warms up.
      await rateOf(stage, clients, submits, say);
      for (let round = 0; round < rounds; round++)
        rates.push(await rateOf(stage, clients, submits, say));
    } finally {
      await Promise.all(clients.map((client) => client.close()));
    }
  } finally {
    await stage.close();
  }
  const [p50, least] = [quantile(rates, 0.5), Math.min(...rates)];
  const text = `${p50.toFixed(0)} (at least ${least.toFixed(0)})`;
  return new Map([[JOBS.name, { text, holds: p50 >= MUST }]]);
}

export const jobs: Measurement = { rows: [JOBS], measure };
