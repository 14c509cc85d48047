/**
 * Round trip of a message from a worker to its manager while a job runs; and the cost of an idle node, which only sends
 * and checks heartbeats.
 */

import type { Address } from "../../src/core/base/ids.ts";
import { cpuSecondsOf } from "../http/processes.ts";
import { FakeWorker } from "./fake-worker.ts";
import { ringOf } from "./recorded-job.ts";
import { type Findings, type Measurement, quantile } from "./row.ts";
import { pause, Stage, until } from "./stage.ts";

const SHAPE = { gates: 3, managers: 3, workers: 3, cores: 1 };
const CORES = 2;
const RATE = 50 * CORES;
const PROBE_EVERY_MS = 20;
const PROBES_PER_ROUND = 500;
const MESSAGE_MS_MAX = 10;
/**
 * Late compilation is no health check: an idle node runs each of its functions a few times per second, so that the
 * compiler optimises the last of them after minutes. Until then it takes half as much again.
 */
const WARM_UP_MS = 200_000;
const SLICE_MS = 10_000;
const SHARE_MAX = 0.01;

const MESSAGES = {
  name: "messages",
  figure: "worker to manager and back under load, p99",
  must: `${MESSAGE_MS_MAX} ms`,
  aim: `${MESSAGE_MS_MAX} ms`,
};
const IDLE = {
  name: "idle",
  figure: "health checks of a node (all that it does when idle), share of a core",
  must: `${100 * SHARE_MAX} %`,
  aim: `${100 * SHARE_MAX} %`,
};

async function measureMessages(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start(SHAPE);
  const [manager = ""] = stage.nodes.addresses("dc1");
  const own = { name: "probe", cores: 1, draining: true, frames: [] } as const;
  const to = { manager: manager as Address, ring: ringOf(stage.nodes.dir) };
  const worker = new FakeWorker({ ...own, ...to });
  const tookMs: number[] = [];
  try {
    await until(async () => (worker.isUp ? true : null), "the probe is up");
    const first = stage.target.next();
    const load = { rate: RATE, maxVus: 40, duration: "1h", cores: CORES } as const;
    await stage.submit(await stage.prepare(load));
    await first;
    for (let probe = 0; probe < PROBES_PER_ROUND; probe++) await worker.probe();
    for (let round = 0; round < rounds; round++) {
      const some: number[] = [];
      for (let probe = 0; probe < PROBES_PER_ROUND; probe++) {
        await pause(PROBE_EVERY_MS);
        some.push(await worker.probe());
      }
      tookMs.push(...some);
      const [p50, p99] = [quantile(some, 0.5), quantile(some, 0.99)];
      say(`messages: ${p50.toFixed(2)} ms there and back, p99 ${p99.toFixed(2)} ms`);
    }
  } finally {
    await worker.close();
    await stage.close();
  }
  const p99 = quantile(tookMs, 0.99);
  const text = `${p99.toFixed(1)} ms (p50 ${quantile(tookMs, 0.5).toFixed(1)} ms)`;
  return new Map([[MESSAGES.name, { text, holds: p99 <= MESSAGE_MS_MAX }]]);
}

async function measureIdle(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start(SHAPE);
  const shares: { readonly name: string; readonly share: number }[] = [];
  try {
    await pause(WARM_UP_MS);
    const pids = stage.nodes.names().map((name) => ({ name, pid: stage.nodes.pidOf(name) }));
    const before = pids.map(({ pid }) => cpuSecondsOf(pid));
    const began = performance.now();
    await pause(rounds * SLICE_MS);
    const seconds = (performance.now() - began) / 1_000;
    for (const [at, { name, pid }] of pids.entries())
      shares.push({ name, share: (cpuSecondsOf(pid) - (before[at] ?? 0)) / seconds });
  } finally {
    await stage.close();
  }
  const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
  say(`idle: ${shares.map(({ name, share }) => `${name} ${percent(share)}`).join(", ")}`);
  const [most] = shares.toSorted((a, b) => b.share - a.share);
  const text = `at most ${percent(most?.share ?? 1)} (${most?.name})`;
  return new Map([[IDLE.name, { text, holds: (most?.share ?? 1) <= SHARE_MAX }]]);
}

export const messages: readonly Measurement[] = [
  { rows: [MESSAGES], measure: measureMessages },
  { rows: [IDLE], measure: measureIdle },
];
