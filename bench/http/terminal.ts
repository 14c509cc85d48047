/**
 * CPU of the live terminal: the same small load twice, with `--ui full` in a pseudo-terminal of 120 x 40 and with `--ui
 * none` in another; the difference in CPU time of the whole tree.
 */

import type { Figure } from "./figures.ts";
import { type Command, isOnPath, Measured, sleep } from "./processes.ts";
import { startTarget } from "./target.ts";
import { hyperscale } from "./tools.ts";

const START_MS = 3_000;
const MEASURE_MS = 12_000;
/** Arrivals per second: enough for every part of the screen to move, too few to hide its cost. */
const RATE = 200;

export async function measureTerminal(log: (line: string) => void): Promise<Figure> {
  const goals = { name: "terminal in full mode, % of one core", must: 1.5, aim: 1 };
  if (!isOnPath("script")) {
    return { ...goals, measured: null, text: "not measured: no `script` on the PATH" };
  }
  const target = await startTarget(undefined);
  try {
    const shares: number[] = [];
    for (const ui of ["none", "full"]) {
      log(`terminal: --ui ${ui}`);
      const share = await cpuShare(ui, target.url);
      if (typeof share === "string") {
        return { ...goals, measured: null, text: `not measured: ${share}` };
      }
      shares.push(share);
    }
    const [none = 0, full = 0] = shares;
    const percent = (full - none) * 100;
    const text = `${percent.toFixed(2)} (${(full * 100).toFixed(2)} - ${(none * 100).toFixed(2)})`;
    return { ...goals, measured: percent, text };
  } finally {
    await target.close();
  }
}

/** CPU of the tree as a share of one core, or why there is none. */
async function cpuShare(ui: string, url: string): Promise<number | string> {
  const command = hyperscale("prepared.mjs", url, {
    cores: 1,
    ui,
    args: ["--rate", String(RATE)],
  });
  if ("skip" in command) return command.skip;
  const run = new Measured(inTerminal(command));
  try {
    await sleep(START_MS);
    const before = run.cpuSeconds();
    const startedAt = performance.now();
    await sleep(MEASURE_MS);
    const seconds = (performance.now() - startedAt) / 1_000;
    if (run.ended !== null) return run.ended;
    return (run.cpuSeconds() - before) / seconds;
  } finally {
    await run.kill();
  }
}

function inTerminal({ file, args, environment }: Command): Command {
  const words = [file, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  // CI variables would turn the live terminal off.
  return {
    file: "script",
    args: [
      "-qfec",
      `stty rows 40 cols 120; exec env -u CI TERM=xterm-256color ${words}`,
      "/dev/null",
    ],
    ...(environment === undefined ? {} : { environment }),
  };
}
