/**
 * How many jobs three gates take on per second, each with a key of its own and on the disks of a quorum before it is
 * answered: one process with many clients, each of which submits again as soon as it is answered. One long job has
 * the only core, so all others are queued.
 */

import { type ClusterClient, ClusterError } from "../../src/client/client.ts";
import { cpuSecondsOf } from "../http/processes.ts";
import { type Findings, type Measurement, quantile } from "./row.ts";
import { pause, Stage } from "./stage.ts";

/** A gate takes five jobs of one client per second: these may be more than are aimed at. */
const CLIENTS = 240;
const WARM_UP_MS = 5_000;
const SLICE_MS = 5_000;
/** Jobs that are asked for in the end: each is there, and queued. */
const LOOKED_AT = 50;
const MUST = 200;

const JOBS = {
  name: "jobs",
  figure: "jobs per second accepted and queued (keys, 3 gates, fsync), p50",
  must: `${MUST}`,
  aim: "1,000",
};

type Submits = (client: ClusterClient) => Promise<string>;

/** Each client submits again and again until it is told to stop. */
class Programs {
  readonly accepted: string[] = [];
  /** Of those since it was last emptied: how long each waited for its answer. */
  tookMs: number[] = [];
  refused = 0;
  #isOver = false;
  readonly #clients: readonly ClusterClient[];
  readonly #running: readonly Promise<void>[];

  constructor(clients: readonly ClusterClient[], submits: Submits) {
    this.#clients = clients;
    this.#running = clients.map((client) => this.#run(client, submits));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #run(client: ClusterClient, submits: Submits): Promise<void> {
    while (!this.#isOver) {
      const at = performance.now();
      try {
        this.accepted.push(await submits(client));
        this.tookMs.push(performance.now() - at);
      } catch (error) {
        if (!(error instanceof ClusterError)) throw error;
        this.refused++;
      }
    }
  }
}

async function rateOf(
  { nodes }: Stage,
  programs: Programs,
  say: (text: string) => void,
): Promise<number> {
  const pids = nodes.names("gate").map((name) => nodes.pidOf(name));
  const cpuSeconds = (): number => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const [cpu, before, refused] = [cpuSeconds(), programs.accepted.length, programs.refused];
  const began = performance.now();
  programs.tookMs = [];
  await pause(SLICE_MS);
  const seconds = (performance.now() - began) / 1_000;
  const count = programs.accepted.length - before;
  const used = cpuSeconds() - cpu;
  const [p50, p99] = [quantile(programs.tookMs, 0.5), quantile(programs.tookMs, 0.99)];
  say(
    `jobs: ${(count / seconds).toFixed(0)} per second, answered after ${p50.toFixed(0)} ms, ` +
      `p99 ${p99.toFixed(0)} ms, ` +
      `${programs.refused - refused} given up, ${((1_000 * used) / count).toFixed(1)} ms of CPU of all gates for a job`,
  );
  return count / seconds;
}

/** One key is one job, and each that was looked at waits for cores. */
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
    const programs = new Programs(clients, (client) => client.submit(job.submission, job.files));
    try {
      await pause(WARM_UP_MS);
      for (let round = 0; round < rounds; round++) rates.push(await rateOf(stage, programs, say));
    } finally {
      await programs.end();
    }
    await check(stage, programs.accepted);
  } finally {
    await stage.close();
  }
  const [p50, least] = [quantile(rates, 0.5), Math.min(...rates)];
  const text = `${p50.toFixed(0)} (at least ${least.toFixed(0)})`;
  return new Map([[JOBS.name, { text, holds: p50 >= MUST }]]);
}

export const jobs: Measurement = { rows: [JOBS], measure };
