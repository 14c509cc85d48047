/** Submit to start on an idle worker. */

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Logger, makeWorkerUtils, run as runGraphile, runMigrations } from "graphile-worker";
import { startNode } from "./ours.ts";
import { QueueClient } from "./product.ts";

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

const WARM_UP = 50;
const PAUSE_MS = 4;

/** `apart` puts the worker on a node of its own, reached over HTTP; else the leader works itself. */
export async function benchLatency(url: string, samples: number, apart: boolean): Promise<Latency> {
  let start: (at: number) => void = () => undefined;
  const executors = { noop: () => start(performance.now()) };
  const leader = await startNode(
    url,
    apart ? {} : executors,
    { maxParallel: apart ? 0 : 4 },
    "leader",
  );
  const worker = apart ? await startNode(url, executors, { maxParallel: 4 }, "worker") : undefined;
  const client = new QueueClient(leader.url);
  const latency = await measure(samples, (started) => {
    start = started;
    return client.submit({ executor: "noop" });
  });
  client.close();
  await worker?.stop(0);
  await leader.stop(0);
  return latency;
}

export async function benchGraphileLatency(url: string, samples: number): Promise<Latency> {
  const preset = {
    worker: { connectionString: url, concurrentJobs: 4, logger: new Logger(() => () => undefined) },
  };
  await runMigrations({ preset });
  const utils = await makeWorkerUtils({ preset });
  let start: (at: number) => void = () => undefined;
  const runner = await runGraphile({
    preset,
    noHandleSignals: true,
    taskList: { noop: () => start(performance.now()) },
  });
  await sleep(500);
  const latency = await measure(samples, (started) => {
    start = started;
    return utils.addJob("noop", {});
  });
  await runner.stop();
  await utils.release();
  return latency;
}

async function measure(
  samples: number,
  submit: (started: (at: number) => void) => Promise<unknown>,
): Promise<Latency> {
  const times: number[] = [];
  for (let i = 0; i < samples + WARM_UP; i++) {
    const sentAt = performance.now();
    const started = new Promise<number>((resolve) => {
      void submit(resolve);
    });
    const took = (await started) - sentAt;
    if (i >= WARM_UP) times.push(took);
    await sleep(PAUSE_MS);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}
