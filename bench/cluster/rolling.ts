/**
 * A rolling restart of every node, gates first and workers last, while a long job loads the target and short jobs
 * follow one another: each node ends by SIGTERM and starts again from its data, and the next one waits until all are
 * alive. Nothing fails, and the only load that pauses is that of the worker itself.
 */

import { ArrivalTarget } from "./arrivals.ts";
import { type Gap, gapBetween, gapOf } from "./gaps.ts";
import { type Findings, type Measurement, seconds } from "./row.ts";
import { pause, Stage, until } from "./stage.ts";

const SHAPE = { gates: 3, managers: 3, workers: 3, cores: 2 };
const ORDER = ["gate", "manager", "worker"] as const;
const CORES = 2;
/** Fifty requests per core and second. */
const RATE = 50 * CORES;
/** Longer than restarts of all nodes take; the job is cancelled when they are done. */
const LOAD = "1h";
/** Load before each restart, for comparison. */
const BEFORE_MS = 3_000;
/** A core seen within this time is under load. */
const HEARD_MS = 1_000;
const SHORT_EVERY_MS = 1_000;
/** Each restarts nine nodes. */
const ROUNDS_MAX = 2;

const ROLLING = {
  name: "rolling",
  figure: "rolling restart of every node: failed jobs; gap in load but for a worker's own",
  must: "0; 0",
  aim: "0; 0",
};

interface Restart extends Gap {
  /** From the last request of the node's own cores to the first of their replacements; null: it had none. */
  readonly ownMs: number | null;
}

/** Jobs of one second, one after the other, until stopped. */
class ShortJobs {
  readonly failed: string[] = [];
  completed = 0;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(stage: Stage, target: ArrivalTarget) {
    this.#running = this.#run(stage, target);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run(stage: Stage, target: ArrivalTarget): Promise<void> {
    const job = await stage.prepare({ vus: 1, duration: "1s", cores: 1 }, target.url);
    while (!this.#isOver) {
      try {
        const id = await stage.submit(job);
        const { reason, status } = await stage.ended(id);
        if (status === "COMPLETED") this.completed++;
        else this.failed.push(`${id} is ${status}: ${reason}`);
      } catch (error) {
        this.failed.push(String(error));
      }
      await pause(SHORT_EVERY_MS);
    }
  }
}

async function restart(stage: Stage, name: string): Promise<Restart> {
  const { nodes, target } = stage;
  const began = performance.now();
  await pause(BEFORE_MS);
  const endedAt = performance.now();
  const below = new Set(nodes.below(name).map(String));
  const loading = target.cores(endedAt - HEARD_MS);
  const own = new Set([...loading].filter((core) => below.has(core)));
  const others = new Set([...loading].filter((core) => !below.has(core)));
  await nodes.terminate([name]);
  await nodes.start(name);
  await stage.complete();
  if (own.size > 0)
    await until(async () => (target.firstOfOthers(loading, endedAt) === null ? null : true), name);
  const before = target.longestGapMs(began, endedAt, others);
  const gap = gapBetween(before, target.longestGapMs(endedAt, performance.now(), others));
  if (own.size === 0) return { ...gap, ownMs: null };
  const again = target.firstOfOthers(loading, endedAt) ?? Number.POSITIVE_INFINITY;
  return { ...gap, ownMs: Math.max(0, again - (target.lastOf(own) ?? again)) };
}

/** Restarts every node once; the long job must survive it, and ends on request. */
async function restartAll(stage: Stage, say: (text: string) => void): Promise<Restart[]> {
  const load = { rate: RATE, maxVus: 40, duration: LOAD, cores: CORES } as const;
  const first = stage.target.next();
  const job = await stage.submit(await stage.prepare(load));
  await first;
  const restarts: Restart[] = [];
  for (const role of ORDER)
    for (const name of stage.nodes.names(role)) {
      const done = await restart(stage, name);
      restarts.push(done);
      const own = done.ownMs === null ? "" : `, its own share away for ${seconds(done.ownMs)}`;
      say(`rolling: ${name}: gap ${gapOf([done]).text}${own}`);
    }
  await stage.client.control(job, { kind: "cancel", reason: "all are new" }, "bench");
  const { reason, status } = await stage.ended(job);
  if (status !== "CANCELLED") throw new Error(`${job} is ${status}: ${reason}`);
  return restarts;
}

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start(SHAPE);
  const target = await ArrivalTarget.start();
  const restarts: Restart[] = [];
  const short = new ShortJobs(stage, target);
  try {
    for (let round = 0; round < Math.min(rounds, ROUNDS_MAX); round++)
      restarts.push(...(await restartAll(stage, say)));
  } finally {
    await short.end();
    await stage.close();
    target.close();
  }
  for (const problem of short.failed) say(`rolling: ${problem}`);
  const gap = gapOf(restarts);
  const jobs = `${short.failed.length} of ${short.completed + short.failed.length} short ones`;
  const own = Math.max(0, ...restarts.map(({ ownMs }) => ownMs ?? 0));
  const text = `${jobs}; ${gap.text}; own at most ${seconds(own)}`;
  return new Map([[ROLLING.name, { text, holds: gap.holds && short.failed.length === 0 }]]);
}

export const rolling: Measurement = { rows: [ROLLING], measure };
