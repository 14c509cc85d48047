/**
 * How many datacenters one gate supports: a real gate process, and managers that send it prerecorded merged frames over
 * real connections as often as it polls. One client polls the metrics as a terminal does. The result is the CPU time of
 * the gate per frame, including that of the terminal: a busy machine makes frames rare, and cheaper where several share
 * a turn.
 */

import { ANYWHERE } from "../../src/core/cluster/messages.ts";
import { Nodes } from "../../test/chaos/cluster/nodes.ts";
import { Sites } from "../../test/chaos/cluster/sites.ts";
import { FakeManager } from "./fake-manager.ts";
import { costsOfFrames, type FramesLimit, seenOfFrames } from "./frame-costs.ts";
import { recordMerged } from "./recorded-frames.ts";
import { recordedJob, ringOf } from "./recorded-job.ts";
import type { Findings, Measurement } from "./row.ts";
import { freePort, pause, until } from "./stage.ts";

const DATACENTERS = 20;
const STEPS = 50;
/** Cores of each datacenter, and calls of each of them per second. */
const CORES = 8;
const RATE = 1_250;
/** A gate polls every 200 ms. */
const LIMIT: FramesLimit = { framesPerSecond: 5, must: DATACENTERS };
const WINDOWS_PER_FRAME = 2;
const WARM_UP_MS = 15_000;
const FRAMES_MAX = 300;
const LOOK_EVERY_MS = 500;

const GATE_FRAMES = {
  name: "gate-frames",
  figure: `one gate: datacenters x ${STEPS} steps at 5 merged frames/s at 50 % of a core`,
  must: `${LIMIT.must}`,
  aim: "50 (x 100)",
};

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const load = { cores: CORES, steps: STEPS, rate: RATE };
  const frames = recordMerged(FRAMES_MAX, WINDOWS_PER_FRAME, load);
  say(`gate-frames: a merged frame of a datacenter has ${frames.at(-1)?.length} bytes`);
  const names = Array.from({ length: DATACENTERS }, (_, at) => `dc${at + 1}`);
  const shape = { gates: 1, datacenters: names, managers: 1, workers: 0, cores: CORES };
  const all = { ...shape, port: freePort(), profile: "wan" };
  const nodes = await Nodes.prepare(all, Sites.create(names));
  const ring = ringOf(nodes.dir);
  const managers: FakeManager[] = [];
  const client = nodes.client();
  try {
    for (const datacenter of names) {
      const [name = ""] = nodes.names("manager", datacenter);
      const [address = ""] = nodes.addresses(datacenter);
      const own = { name, datacenter, address, cores: CORES };
      managers.push(await FakeManager.start({ ...own, ring, frames }));
    }
    const [gate = ""] = nodes.names("gate");
    await nodes.start(gate);
    const { files, submission } = recordedJob(STEPS, DATACENTERS * CORES);
    const routing = { ...ANYWHERE, datacenters: names };
    const job = await until(() => client.submit(submission, files, "bench", routing), "a gate");
    await until(async () => (managers.every((one) => one.merged > 0) ? true : null), "it runs");
    let isOver = false;
    const looking = (async () => {
      for (; !isOver; await pause(LOOK_EVERY_MS))
        await client.progress(job, 0, true).catch(() => undefined);
    })();
    await pause(WARM_UP_MS);
    const counted = (): number => managers.reduce((sum, { merged }) => sum + merged, 0);
    const measured = { name: GATE_FRAMES.name, pid: nodes.pidOf(gate), tellers: DATACENTERS };
    const costs = await costsOfFrames({ ...measured, counted, rounds, say });
    isOver = true;
    await looking;
    const seen = seenOfFrames(costs, LIMIT, `${CORES * RATE} calls/s of each`);
    return new Map([[GATE_FRAMES.name, seen]]);
  } finally {
    await client.close();
    await nodes.end();
    nodes.remove();
    await Promise.all(managers.map((manager) => manager.close()));
  }
}

export const gateFrames: Measurement = { rows: [GATE_FRAMES], measure };
