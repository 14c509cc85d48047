/**
 * How many workers one manager supports: a real manager process, and workers that send it prerecorded merged frames
 * over real connections. The result is the CPU time of the manager per frame: a busy machine makes frames rare, and
 * cheaper where several share a turn.
 */

import type { Address } from "../../src/core/base/ids.ts";
import { Nodes } from "../../test/chaos/cluster/nodes.ts";
import { Sites } from "../../test/chaos/cluster/sites.ts";
import { FakeWorker } from "./fake-worker.ts";
import { costsOfFrames, type FramesLimit, seenOfFrames } from "./frame-costs.ts";
import { recordFrames } from "./recorded-frames.ts";
import { recordedJob, ringOf } from "./recorded-job.ts";
import type { Findings, Measurement } from "./row.ts";
import { freePort, pause, until } from "./stage.ts";

const CORES = 8;
const STEPS = 20;
/** Calls of each core per second. */
const RATE = 500;
const LIMIT: FramesLimit = { framesPerSecond: 10, must: 100 };
/** As many as it must support: the cost of each falls as more of them share a turn. */
const WORKERS = LIMIT.must;
const WARM_UP_MS = 20_000;
const FRAMES_MAX = 800;

const MANAGER_FRAMES = {
  name: "manager-frames",
  figure: `one manager: workers x 10 merged frames/s (${CORES} cores, ${STEPS} steps each) at 50 % of a core`,
  must: `${LIMIT.must}`,
  aim: "400",
};

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const frames = recordFrames(FRAMES_MAX, { cores: CORES, steps: STEPS, rate: RATE });
  const bytes = frames.at(-1)?.bytes.length ?? 0;
  say(`manager-frames: a merged frame has ${bytes} bytes beside those of its cores`);
  const shape = { gates: 0, managers: 1, workers: 0, cores: CORES, port: freePort() };
  const nodes = await Nodes.start({ ...shape, profile: "wan" }, Sites.create(["dc1"]));
  const client = nodes.client("dc1");
  const ring = ringOf(nodes.dir);
  const manager = `127.0.0.1:${shape.port}` as Address;
  const workers = Array.from(
    { length: WORKERS },
    (_, at) => new FakeWorker({ name: `w${at}`, cores: CORES, manager, ring, frames }),
  );
  const counted = (): number => workers.reduce((sum, one) => sum + one.acknowledged, 0);
  try {
    await until(async () => (workers.every(({ isUp }) => isUp) ? true : null), "workers are up");
    const { files, submission } = recordedJob(STEPS, WORKERS * CORES);
    const job = await client.submit(submission, files);
    await until(async () => (workers.every((one) => one.isStreaming) ? true : null), "it runs");
    await pause(WARM_UP_MS);
    const measured = { name: MANAGER_FRAMES.name, pid: nodes.pidOf("m1"), tellers: WORKERS };
    const costs = await costsOfFrames({ ...measured, counted, rounds, say });
    await client
      .control(job, { kind: "cancel", reason: "measured" }, "bench")
      .catch(() => undefined);
    const seen = seenOfFrames(costs, LIMIT, `${RATE} calls/s of each core`);
    return new Map([[MANAGER_FRAMES.name, seen]]);
  } finally {
    await client.close();
    await Promise.all(workers.map((worker) => worker.close()));
    await nodes.end();
    nodes.remove();
  }
}

export const managerFrames: Measurement = { rows: [MANAGER_FRAMES], measure };
