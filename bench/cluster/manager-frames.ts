/**
 * How many workers one manager carries: a real manager process, and workers that tell it recorded merged frames over
 * real connections. What counts is the processor time of the manager for each frame: a busy machine makes frames rare,
 * and hardly dearer.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../../src/core/base/ids.ts";
import { manifest } from "../../src/core/run/job/testing/manifest.ts";
import type { Submission } from "../../src/core/tiers/messages.ts";
import { nodeAead } from "../../src/host/node-aead.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";
import { Nodes } from "../../test/chaos/tiers/nodes.ts";
import { Sites } from "../../test/chaos/tiers/sites.ts";
import { cpuSecondsOf } from "../http/processes.ts";
import { FakeWorker } from "./fake-worker.ts";
import { recordFrames, stepNames } from "./recorded-frames.ts";
import type { Findings, Measurement } from "./row.ts";
import { freePort, pause, until } from "./stage.ts";

const CORES = 8;
const STEPS = 20;
/** Calls of each core per second. */
const RATE = 500;
const WORKERS = 50;
const FRAMES_PER_SECOND = 10;
/** Of a core. */
const SHARE_MAX = 0.5;
const MUST = 100;
const WARM_UP_MS = 20_000;
const SLICE_MS = 4_000;
const FRAMES_MAX = 800;

const MANAGER_FRAMES = {
  name: "manager-frames",
  figure: `one manager: workers x 10 merged frames/s (${CORES} cores, ${STEPS} steps each) at 50 % of a core`,
  must: `${MUST}`,
  aim: "400",
};

function submissionOf(bundle: Uint8Array): Submission {
  const steps = stepNames(STEPS).map(
    (name) => ({ name, kind: "step", protocol: "http", after: [], layer: 0, tags: {} }) as const,
  );
  const users = WORKERS * CORES;
  const stages = [{ durationMs: 3_600_000, from: users, to: users }];
  const hash = createHash("sha256").update(bundle).digest("hex");
  return {
    ...{ name: "flow.ts", title: null, tags: {}, entry: "bundle.mjs" },
    manifests: [manifest("shop", { steps, load: { kind: "vus", stages } })],
    files: [{ path: "bundle.mjs", hash, bytes: bundle.length }],
    ...{ overrides: {}, thresholds: [], abortAfterMs: null, timeoutMs: null },
    ...{ cores: WORKERS * CORES, held: false, command: "bench", version: "1.0.0" },
  };
}

function ringOf(dir: string): KeyRing {
  const secret = readFileSync(join(dir, "cluster.key"), "utf8").trim();
  const made = KeyRing.create(nodeAead, [secret], "hyperscale/default");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

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
  const costs: number[] = [];
  try {
    await until(async () => (workers.every(({ isUp }) => isUp) ? true : null), "workers are up");
    const bundle = new TextEncoder().encode("export default null;");
    const submission = submissionOf(bundle);
    const job = await client.submit(
      submission,
      new Map([[submission.files[0]?.hash ?? "", bundle]]),
    );
    await until(async () => (workers.every((one) => one.isStreaming) ? true : null), "it runs");
    await pause(WARM_UP_MS);
    const pid = nodes.pidOf("m1");
    for (let round = 0; round < rounds; round++) {
      const [cpu, before, began] = [cpuSecondsOf(pid), counted(), performance.now()];
      await pause(SLICE_MS);
      const taken = counted() - before;
      const seconds = (performance.now() - began) / 1_000;
      const used = cpuSecondsOf(pid) - cpu;
      costs.push(used / taken);
      const [rate, share] = [taken / seconds / WORKERS, (100 * used) / seconds];
      say(
        `manager-frames: ${WORKERS} workers, ${rate.toFixed(1)} frames/s each, ` +
          `${share.toFixed(0)} % of a core, ${((1e6 * used) / taken).toFixed(0)} us per frame`,
      );
    }
    await client
      .control(job, { kind: "cancel", reason: "measured" }, "bench")
      .catch(() => undefined);
  } finally {
    await client.close();
    await Promise.all(workers.map((worker) => worker.close()));
    await nodes.end();
    nodes.remove();
  }
  const cost = costs.toSorted((a, b) => a - b)[Math.floor(costs.length / 2)] ?? Number.NaN;
  const carried = Math.floor(SHARE_MAX / (FRAMES_PER_SECOND * cost));
  const text = `${carried} (${Math.round(1e6 * cost)} us of CPU for a frame, ${RATE} calls/s of each core)`;
  return new Map([[MANAGER_FRAMES.name, { text, holds: carried >= MUST }]]);
}

export const managerFrames: Measurement = { rows: [MANAGER_FRAMES], measure };
