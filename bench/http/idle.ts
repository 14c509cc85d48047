/**
 * Memory of an idle virtual user: the same flow with few and with 50,000 users, all of them waiting for their next
 * iteration; the difference in memory, divided by the difference in users.
 */

import type { Figure } from "./figures.ts";
import { Measured, sleep } from "./processes.ts";
import { startTarget } from "./target.ts";
import { hyperscale } from "./tools.ts";

const FEW = 10;
const MANY = 50_000;
const STEADY_SAMPLES = 4;
const SAMPLE_MS = 1_000;
const WAIT_MS_MAX = 60_000;
/** Memory that changes by less between samples counts as settled. */
const STEADY_SHARE = 0.01;

const FLOWS = [
  { what: "prepared step", file: "idle.mjs", must: 3, aim: 2 },
  { what: "flow", file: "idle-flow.mjs", must: 4, aim: 3 },
];

export async function measureIdle(log: (line: string) => void): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const flow of FLOWS) figures.push(await measureFlow(flow, log));
  return figures;
}

async function measureFlow(
  { aim, file, must, what }: (typeof FLOWS)[number],
  log: (line: string) => void,
): Promise<Figure> {
  const goals = { name: `memory per idle user, ${what}, KiB (${MANY} users)`, must, aim };
  const target = await startTarget(undefined);
  try {
    const few = await settledBytes(file, FEW, target.url, log);
    const many = await settledBytes(file, MANY, target.url, log);
    if (typeof few === "string") return { ...goals, measured: null, text: `not measured: ${few}` };
    if (typeof many === "string")
      return { ...goals, measured: null, text: `not measured: ${many}` };
    const kibibytes = (many - few) / (MANY - FEW) / 1_024;
    return { ...goals, measured: kibibytes, text: kibibytes.toFixed(2) };
  } finally {
    await target.close();
  }
}

/** Bytes of the whole tree once they are stable, or why there are none. */
async function settledBytes(
  file: string,
  vus: number,
  url: string,
  log: (line: string) => void,
): Promise<number | string> {
  const command = hyperscale(file, url, { cores: 1, args: ["--vus", String(vus)] });
  if ("skip" in command) return command.skip;
  const run = new Measured(command);
  try {
    let steady = 0;
    let last = 0;
    for (let waited = 0; waited < WAIT_MS_MAX && steady < STEADY_SAMPLES; waited += SAMPLE_MS) {
      await sleep(SAMPLE_MS);
      if (run.ended !== null) return run.ended;
      const bytes = run.residentBytes();
      steady = Math.abs(bytes - last) < bytes * STEADY_SHARE ? steady + 1 : 0;
      last = bytes;
      log(`${vus} idle users: ${(bytes / 1_048_576).toFixed(0)} MiB`);
    }
    return last;
  } finally {
    await run.kill();
  }
}
