/**
 * CPU cost of a request on an executor core of a worker, against one of a local run: both make the same load from the
 * same file, in turns of a few hundred milliseconds, one stopped while the other runs, so that both meet the same
 * machine.
 */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Random } from "../../src/core/base/random.ts";
import { childrenOf, cpuSecondsOf, sleep } from "../http/processes.ts";
import { ratio, type Slice } from "../http/statistics.ts";
import { startTarget, type Target } from "../http/target.ts";
import type { Findings, Measurement } from "./row.ts";
import { Stage, until } from "./stage.ts";

const cli = fileURLToPath(new URL("../../bin/hyperscale.js", import.meta.url));
const flow = fileURLToPath(new URL("./flow.ts", import.meta.url));
const USERS = 64;
const SLICE_MS = 300;
/** Late compilation belongs to neither. */
const WARM_UP_SLICES = 30;
const SLICES_PER_ROUND = 24;

const CPU = {
  name: "cpu",
  figure: "CPU per request on a worker core, cluster / local",
  must: "<= 1.05",
  aim: "<= 1.02",
};

/** An executor core under load, and the counter of its requests. */
interface Side {
  readonly pid: number;
  readonly target: Target;
  readonly slices: Slice[];
}

/** The one descendant of these that sends requests: the others are idle warm cores. */
async function loadingCore(parents: () => readonly number[]): Promise<number> {
  return until(async () => {
    const pids = parents().flatMap(childrenOf);
    const before = pids.map(cpuSecondsOf);
    await sleep(500);
    const busy = pids.find((pid, at) => cpuSecondsOf(pid) - (before[at] ?? 0) > 0.05);
    return busy ?? null;
  }, "an executor core is loaded");
}

async function turn({ pid, slices, target }: Side, isKept: boolean): Promise<void> {
  process.kill(pid, "SIGCONT");
  const [cpuBefore, before] = [cpuSecondsOf(pid), await target.count()];
  await sleep(SLICE_MS);
  process.kill(pid, "SIGSTOP");
  const cpuSeconds = cpuSecondsOf(pid) - cpuBefore;
  const requests = (await target.count()) - before;
  if (isKept) slices.push({ cpuSeconds, requests });
}

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start({ gates: 1, managers: 1, workers: 1, cores: 1 });
  const targets = [await startTarget(undefined), await startTarget(undefined)] as const;
  const slices = WARM_UP_SLICES + rounds * SLICES_PER_ROUND;
  const duration = `${Math.ceil((2 * slices * (SLICE_MS + 50)) / 1_000) + 60}s`;
  const flags = ["--vus", `${USERS}`, "--duration", duration, "--cores", "1", "--ui", "none"];
  const url = (target: Target): string => target.url.replace(/\/$/, "");
  const local = spawn(
    process.execPath,
    [cli, "run", flow, ...flags, "-e", `HYPERSCALE_TARGET=${url(targets[1])}`],
    { stdio: "ignore" },
  );
  try {
    const options = { vus: USERS, duration, cores: 1 } as const;
    await stage.submit(await stage.prepare(options, url(targets[0])));
    const worker = stage.nodes.pidOf("w1");
    const sides: readonly Side[] = [
      { pid: await loadingCore(() => [worker]), target: targets[0], slices: [] },
      { pid: await loadingCore(() => [local.pid ?? 0]), target: targets[1], slices: [] },
    ];
    for (const { pid } of sides) process.kill(pid, "SIGSTOP");
    try {
      for (let at = 0; at < slices; at++)
        for (const side of at % 2 === 0 ? sides : [...sides].reverse())
          await turn(side, at >= WARM_UP_SLICES);
    } finally {
      for (const { pid } of sides) process.kill(pid, "SIGCONT");
    }
    const [cluster, alone] = sides.map((side) => side.slices);
    const { high, low, value } = ratio(cluster ?? [], alone ?? [], new Random("cpu"));
    const text = `${value.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
    say(`cpu: ${text}`);
    return new Map([[CPU.name, { text, holds: value <= 1.05 }]]);
  } finally {
    local.kill("SIGKILL");
    await stage.nodes.kill(["w1"]);
    await stage.close();
    await Promise.all(targets.map((target) => target.close()));
  }
}

export const cpu: Measurement = { rows: [CPU], measure };
