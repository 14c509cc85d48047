/**
 * Managers that are sent five times the metrics they can process. Workers send one message of each job at a time and
 * replace pending ones, so that nothing is lost; the lateness of managers costs no worker.
 */

import type { Millis } from "../../../src/core/base/brand.ts";
import { QUEUE_LIMITS } from "../../../src/core/cluster/link/limits.ts";
import { ENDED_STATUSES, type Progress } from "../../../src/core/cluster/messages.ts";
import type { LoadPlan } from "../../../src/core/load/plan/load.ts";
import { plainJob } from "../jobs.ts";
import { callsOf } from "../truth.ts";
import { Bench } from "./bench.ts";
import { atLeast, atMost, type Figure } from "./figure.ts";

const TIMES = 5;
const MANAGERS = 3;
const WORKERS = 4;
const CORES = 6;
const COST_MS = 5;
const LOOK_MS = 50;
/** From the end of the load until all clients have received it. */
const ENDING_MS_MAX = 240_000;
/** Inputs beside metrics that may wait: overload samples, timers, heartbeats and messages between managers. */
const OTHERS_PER_LINK = 8;

export const frames: Figure = (scale) => {
  const loadMs = Math.max(8_000, 60_000 * scale);
  const load: LoadPlan = {
    ...{ kind: "vus", stages: [{ durationMs: loadMs, from: 2, to: 2 }] },
  };
  const bench = new Bench(5, {
    ...{ gates: 0, managers: MANAGERS, workers: WORKERS, coresPerWorker: CORES, clients: 8 },
    ...{ gateCostMs: 0, managerCostMs: COST_MS },
  });
  const { cluster, world } = bench;
  const lost = { workers: 0, leaders: 0 };
  /** Jobs that have been led: the next leader replaces one that was given up. */
  const led = new Set<string>();
  cluster.onEffect = (_process, effect) => {
    if (effect.kind === "log" && effect.event === "worker.lost") lost.workers++;
    if (effect.kind !== "leads" || !effect.leads) return;
    if (led.has(effect.group)) lost.leaders++;
    led.add(effect.group);
  };
  const jobs = WORKERS * CORES;
  const accepted = new Map<string, string>();
  const submit = (key: string, at: number): void => {
    const plan = plainJob(key, { load, cores: 1, tenant: null, bundle: key });
    bench.submit(bench.client(at), plan, (answer) => {
      if (answer?.kind === "accepted") accepted.set(key, answer.job);
      else bench.client(at).lifetime.after(1_000, "step", () => submit(key, at));
    });
  };
  for (let at = 0; at < jobs; at++) submit(`job-${at}`, at);
  const offered = (TIMES * MANAGERS * 1_000) / COST_MS;
  for (const worker of cluster.workers) worker.frameEveryMs = (1_000 * jobs) / offered;
  const most = watch(bench);
  bench.run(loadMs);
  const ended = new Map<string, Progress>();
  const until = world.now + ENDING_MS_MAX;
  const ask = (key: string, job: string, at: number): void => {
    const request = { kind: "watch", job, line: 0, live: false, latencies: false } as const;
    bench.ask(bench.client(at), request, (answer) => {
      const isOver = answer?.kind === "progress" && ENDED_STATUSES.includes(answer.status);
      if (isOver && answer.summary !== null) ended.set(key, answer);
      else bench.client(at).lifetime.after(1_000, "step", () => ask(key, job, at + 1));
    });
  };
  let at = 0;
  for (const [key, job] of accepted) ask(key, job, at++);
  while (ended.size < accepted.size && world.now < until) bench.run(1_000);
  const missing = [...accepted.keys()].reduce(
    (sum, key) => sum + Math.abs(madeBy(bench, key) - countedIn(ended.get(key))),
    0,
  );
  const links = WORKERS + 8 + MANAGERS;
  return [
    atLeast("highest level of backpressure (0 to 3)", most.level, 1, 0),
    atLeast("longest pause between figures of a worker (ms)", most.pauseMs, 100, 0),
    atLeast("jobs that ended", ended.size, jobs, 0),
    atMost("workers that were declared lost", lost.workers, 0, 0),
    atMost("leaders that changed", lost.leaders, 0, 0),
    atMost("calls that were made and not counted, or the other way", missing, 0, 0),
    atMost("inputs that wait at a manager", most.inputs, jobs + links * OTHERS_PER_LINK, 0),
    atMost("bytes that wait at a worker", most.bytes, QUEUE_LIMITS.bytesMax, 0),
  ];
};

/** Tracks the maximum of each from now on. */
function watch({ cluster, world }: Bench): {
  readonly inputs: number;
  readonly bytes: number;
  readonly level: number;
  readonly pauseMs: number;
} {
  const most = { inputs: 0, bytes: 0, level: 0, pauseMs: 0 };
  const look = (): void => {
    const inputs = cluster.managers.map(({ process }) => cluster.cpus[process.index]?.waiting ?? 0);
    most.inputs = Math.max(most.inputs, ...inputs);
    const links = cluster.workers.flatMap(({ machine }) => machine?.managers() ?? []);
    most.bytes = Math.max(most.bytes, ...links.map(({ queuedBytes }) => queuedBytes));
    const levels = cluster.managers.map(({ pressure }) => pressure()?.backpressure ?? 0);
    most.level = Math.max(most.level, ...levels);
    const now = world.now as Millis;
    const pauses = cluster.workers.map(({ machine }) => machine?.worker.figuresDelayMs(now) ?? 0);
    most.pauseMs = Math.max(most.pauseMs, ...pauses);
    world.schedule(world.now + LOOK_MS, "check", 0, look);
  };
  look();
  return most;
}

function madeBy(bench: Bench, key: string): number {
  return bench.truth.job(key).cores.reduce((sum, one) => sum + callsOf(one, "first"), 0);
}

function countedIn(progress: Progress | undefined): number {
  return progress?.summary?.totals?.requests ?? 0;
}
