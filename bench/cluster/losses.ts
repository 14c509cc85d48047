/**
 * Effect of a node's death on the user: whether the target misses requests of a core that should send them, until a
 * lost share is reassigned, and how long the client gets no newer metrics.
 */

import { hasEnded } from "../../src/client/client.ts";
import { type Gap, gapBetween, gapOf } from "./gaps.ts";
import { type Findings, type Measurement, quantile, type Row, type Seen, seconds } from "./row.ts";
import { pause, Stage, until } from "./stage.ts";

const CORES = 2;
/** Fifty requests per core and second: resolves a gap in load to a twentieth of a second. */
const RATE = 50 * CORES;
const LOAD_SECONDS = 25;
/** Load before anything happens, for comparison. */
const BEFORE_MS = 4_000;
/** Observed after the loss: longer than anything is allowed to take. */
const AFTER_MS = 12_000;
const ASK_EVERY_MS = 100;

const WORKER = {
  name: "worker",
  figure: "worker SIGKILL to its share running again (dc profile), p50 / p99",
  must: "4 / 6 s",
  aim: "3 / 4 s",
};
const MANAGER = {
  name: "manager",
  figure: "manager (job leader) SIGKILL: gap in load; gap in figures at the client",
  must: "0; <= 6 s",
  aim: "0; 3 s",
};
const GATE = {
  name: "gate",
  figure: "gate (job leader) SIGKILL: gap in load; client streaming again",
  must: "0; <= 8 s",
  aim: "0; 4 s",
};

interface Loss extends Gap {
  /** Until a new core makes requests. */
  readonly newCoreMs: number | null;
  readonly figuresMs: number;
}

interface Cast {
  readonly manager: string;
  readonly workers: readonly string[];
  readonly gate: string | null;
}

async function lose(stage: Stage, whom: (cast: Cast) => string): Promise<Loss> {
  const { client, nodes, target } = stage;
  const options = { rate: RATE, maxVus: 40, duration: `${LOAD_SECONDS}s`, cores: CORES } as const;
  const first = target.next();
  const job = await stage.submit(await stage.prepare(options));
  await first;
  await pause(BEFORE_MS);
  const cast = { ...(await stage.cast(job)), gate: (await client.status(job)).leader };
  const watching = watch(stage, job);
  await pause(1_000);
  const before = target.cores();
  const killedAt = performance.now();
  const victim = whom(cast);
  await nodes.kill([victim]);
  await pause(AFTER_MS);
  const figuresMs = watching.longestMsSince(killedAt);
  const { status, reason } = await stage.ended(job);
  await watching.end();
  if (status !== "COMPLETED") throw new Error(`${job} is ${status}: ${reason}`);
  const longestBeforeMs = target.longestGapMs(killedAt - BEFORE_MS, killedAt, before);
  const longestMs = target.longestGapMs(killedAt, killedAt + AFTER_MS, before);
  const newCoreMs = target.firstOfOthers(before);
  await nodes.start(victim);
  await stage.settled();
  return {
    ...{ ...gapBetween(longestBeforeMs, longestMs), figuresMs },
    newCoreMs: newCoreMs === null ? null : newCoreMs - killedAt,
  };
}

interface Watching {
  /** The longest time without newer metrics at the client, of those that began since. */
  longestMsSince(since: number): number;
  end(): Promise<void>;
}

/** Polls live metrics as the terminal of a user does. */
function watch({ client }: Stage, job: string): Watching {
  const changes: number[] = [performance.now()];
  let completed = -1;
  let isOver = false;
  const watched = (async () => {
    while (!isOver) {
      await until(async () => {
        const progress = await client.progress(job, 0, true);
        const workflows = progress.live?.summary.workflows ?? [];
        const now = workflows.reduce((sum, { iterations }) => sum + iterations.completed, 0);
        if (progress.live !== null && now !== completed) changes.push(performance.now());
        if (progress.live !== null) completed = now;
        isOver ||= hasEnded(progress.status);
        return true;
      }, `${job} is watched`);
      await pause(ASK_EVERY_MS);
    }
  })();
  return {
    longestMsSince: (since) => {
      const times = [...changes.filter((at) => at >= since), performance.now()];
      let last = changes.filter((at) => at < since).at(-1) ?? since;
      let longest = 0;
      for (const at of times) {
        longest = Math.max(longest, at - last);
        last = at;
      }
      return longest;
    },
    end: async () => {
      isOver = true;
      await watched;
    },
  };
}

function seenOf(losses: readonly Loss[], figuresMsMax: number): Seen {
  const gap = gapOf(losses);
  const figures = losses.map(({ figuresMs }) => figuresMs);
  const [p50, most] = [quantile(figures, 0.5), Math.max(...figures)];
  return {
    text: `${gap.text}; ${seconds(p50)}, at most ${seconds(most)}`,
    holds: gap.holds && most <= figuresMsMax,
  };
}

function seenOfWorker(losses: readonly Loss[]): Seen {
  const times = losses.map(({ newCoreMs }) => newCoreMs ?? Number.POSITIVE_INFINITY);
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  return { text: `${seconds(p50)} / ${seconds(p99)}`, holds: p50 <= 4_000 && p99 <= 6_000 };
}

/** One after the other on one cluster. */
async function lossesOf(
  name: string,
  whom: (cast: Cast) => string,
  rounds: number,
  say: (text: string) => void,
): Promise<readonly Loss[]> {
  const stage = await Stage.start({ gates: 3, managers: 3, workers: CORES + 1, cores: 1 });
  try {
    const losses: Loss[] = [];
    for (let round = 1; round <= rounds; round++) {
      const loss = await lose(stage, whom);
      losses.push(loss);
      const again = loss.newCoreMs === null ? "" : `, share again after ${seconds(loss.newCoreMs)}`;
      say(`${name}: ${gapOf([loss]).text}, figures after ${seconds(loss.figuresMs)}${again}`);
    }
    return losses;
  } finally {
    await stage.close();
  }
}

function lossOf(
  row: Row,
  whom: (cast: Cast) => string,
  seen: (losses: readonly Loss[]) => Seen,
): Measurement {
  const measure = async (rounds: number, say: (text: string) => void): Promise<Findings> =>
    new Map([[row.name, seen(await lossesOf(row.name, whom, rounds, say))]]);
  return { rows: [row], measure };
}

export const losses: readonly Measurement[] = [
  lossOf(WORKER, ({ workers }) => workers[0] ?? "", seenOfWorker),
  lossOf(
    MANAGER,
    ({ manager }) => manager,
    (all) => seenOf(all, 6_000),
  ),
  lossOf(
    GATE,
    ({ gate }) => gate ?? "",
    (all) => seenOf(all, 8_000),
  ),
];
