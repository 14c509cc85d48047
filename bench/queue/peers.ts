/** The peers, each in the form its own documentation recommends for throughput. */

import { Logger, makeWorkerUtils, run as runGraphile, runMigrations } from "graphile-worker";
import PgBoss from "pg-boss";
import { cpuMs } from "./cpu.ts";

export interface Speeds {
  readonly submitsPerSecond: number;
  readonly tasksPerSecond: number;
  /** CPU of this process and of the server, while tasks ran; zero where it was not counted. */
  readonly cpuUsPerTask: number;
}

/** Environment of a contender. */
export interface Arena {
  readonly url: string;
  readonly serverPid: number;
  readonly count: number;
}

const SUBMIT_BATCH = 1_000;
const SUBMITTERS = 4;

/** graphile-worker with its local queue and batched completion: the settings of its page on performance. */
export async function benchGraphile(
  { url, serverPid, count }: Arena,
  concurrency: number,
): Promise<Speeds> {
  const preset = {
    worker: {
      connectionString: url,
      maxPoolSize: 10,
      concurrentJobs: concurrency,
      localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger: new Logger(() => () => undefined),
    },
  };
  await runMigrations({ preset });
  const utils = await makeWorkerUtils({ preset });
  const submitMs = await timed(async () => {
    await inFlight(batches(count), (batch) =>
      utils.addJobs(batch.map((i) => ({ identifier: "noop", payload: { i } }))),
    );
  });
  const latch = new Latch(count);
  const stop = meter(serverPid);
  const runner = await runGraphile({
    preset,
    noHandleSignals: true,
    taskList: { noop: () => latch.hit() },
  });
  await latch.reached;
  // The last completions are written after the last task has returned.
  await until(async () => {
    const rows = await utils.withPgClient((client) =>
      client.query<{ n: string }>("select count(*) as n from graphile_worker._private_jobs"),
    );
    return Number(rows.rows[0]?.n) === 0;
  });
  const run = stop();
  await runner.stop();
  await utils.release();
  return perSecond(count, submitMs, run);
}

/** pg-boss by fetch and complete in batches of 100, four at a time. */
export async function benchPgBoss({ url, serverPid, count }: Arena): Promise<Speeds> {
  const boss = new PgBoss({ connectionString: url, max: 10, supervise: false, schedule: false });
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue("noop");
  const submitMs = await timed(async () => {
    await inFlight(batches(count), (batch) =>
      boss.insert(batch.map((i) => ({ name: "noop", data: { i } }))),
    );
  });
  const stop = meter(serverPid);
  await Promise.all(
    [1, 2, 3, 4].map(async () => {
      for (;;) {
        const jobs = await boss.fetch("noop", { batchSize: 100 });
        if (jobs.length === 0) return;
        await boss.complete(
          "noop",
          jobs.map((job) => job.id),
        );
      }
    }),
  );
  const run = stop();
  await boss.stop({ graceful: false });
  return perSecond(count, submitMs, run);
}

interface Metered {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Measures until the returned function is called. */
export function meter(serverPid: number): () => Metered {
  const cpuBefore = cpuMs(serverPid);
  const start = performance.now();
  return () => ({ ms: performance.now() - start, cpuMs: cpuMs(serverPid) - cpuBefore });
}

export function perSecond(count: number, submitMs: number, run: Metered): Speeds {
  return {
    submitsPerSecond: (count / submitMs) * 1_000,
    tasksPerSecond: (count / run.ms) * 1_000,
    cpuUsPerTask: (run.cpuMs / count) * 1_000,
  };
}

export async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 2));
}

export function batches(count: number): number[][] {
  const all: number[][] = [];
  for (let from = 0; from < count; from += SUBMIT_BATCH) {
    all.push(Array.from({ length: Math.min(SUBMIT_BATCH, count - from) }, (_, i) => from + i));
  }
  return all;
}

/** Submits all batches, a few at a time: the same number for every contender. */
export async function inFlight(
  all: readonly number[][],
  submit: (batch: number[]) => Promise<unknown>,
): Promise<void> {
  const left = [...all];
  const submitter = async (): Promise<void> => {
    for (let batch = left.shift(); batch !== undefined; batch = left.shift()) await submit(batch);
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

/** Resolves at the given number of hits. */
export class Latch {
  readonly reached: Promise<void>;
  #left: number;
  #reach: () => void = () => undefined;

  constructor(count: number) {
    this.#left = count;
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
  }

  hit(): void {
    if (--this.#left === 0) this.#reach();
  }
}
