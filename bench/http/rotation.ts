/**
 * The rotation: all tools are started and warmed, then stopped; in shuffled order exactly one runs at a time, for a
 * slice, repeatedly. Any other activity of the machine affects all alike, and CPU per request is robust where requests
 * per second is not.
 *
 * A tool that does not start, exits, or sends nothing is left out by name with its reason.
 */

import type { Random } from "../../src/core/base/random.ts";
import { type Command, Measured, sleep } from "./processes.ts";
import type { Slice } from "./statistics.ts";
import type { Target } from "./target.ts";

export interface Tool {
  readonly name: string;
  /** The command, or why it cannot be started. */
  readonly start: Command | { readonly skip: string };
}

interface RotationOptions {
  readonly rotations: number;
  readonly sliceMs: number;
  readonly warmUpMs: number;
}

export interface ToolResult {
  readonly name: string;
  readonly slices: readonly Slice[];
  readonly sliceSeconds: number;
  readonly skipped: string | null;
}

interface Runner {
  readonly name: string;
  readonly process: Measured;
  readonly slices: Slice[];
  seconds: number;
  failed: string | null;
}

/** A stopped process has surely left the CPU after this. */
const SETTLE_MS = 5;
/** Longest wait for a tool's first request; a build or a slow start may come before it. */
const FIRST_REQUEST_MS_MAX = 30_000;
/** Requests after which a tool counts as warm, and how long they may take. */
const WARM_REQUESTS = 20_000;
const WARM_UP_MS_MAX = 5_000;

export async function rotate(
  tools: readonly Tool[],
  target: Target,
  options: RotationOptions & { readonly random: Random; readonly log: (line: string) => void },
): Promise<readonly ToolResult[]> {
  const skipped: ToolResult[] = [];
  const runners: Runner[] = [];
  const skip = (name: string, reason: string): void => {
    skipped.push({ name, slices: [], sliceSeconds: 0, skipped: reason });
    options.log(`skipped ${name}: ${reason}`);
  };
  try {
    for (const { name, start } of tools) {
      if ("skip" in start) {
        skip(name, start.skip);
        continue;
      }
      const process = new Measured(start);
      const problem = await warmUp(process, target, options.warmUpMs);
      if (problem === null) {
        options.log(`warmed ${name}`);
        runners.push({ name, process, slices: [], seconds: 0, failed: null });
        continue;
      }
      await process.kill();
      skip(name, problem);
    }
    for (let rotation = 0; rotation < options.rotations; rotation++) {
      for (const runner of options.random.shuffle([...runners])) {
        if (runner.failed === null) await runSlice(runner, target, options.sliceMs);
      }
      options.log(`rotation ${rotation + 1} of ${options.rotations}`);
    }
  } finally {
    await Promise.all(runners.map(({ process }) => process.kill()));
  }
  return [
    ...runners.map(({ name, slices, seconds, failed }) => ({
      name,
      slices,
      sliceSeconds: seconds,
      skipped: failed,
    })),
    ...skipped,
  ];
}

/** Runs a tool until its first requests and then for the warm-up; returns why it failed, or null. */
async function warmUp(process: Measured, target: Target, warmUpMs: number): Promise<string | null> {
  const before = await target.count();
  const deadline = performance.now() + FIRST_REQUEST_MS_MAX;
  while ((await target.count()) === before) {
    if (process.ended !== null) return process.ended;
    if (performance.now() > deadline)
      return `sent nothing within ${FIRST_REQUEST_MS_MAX / 1_000} s`;
    await sleep(50);
  }
  // A slow tool gets longer, or its compiler's first work would count against it.
  const warmUntil = performance.now() + WARM_UP_MS_MAX;
  await sleep(warmUpMs);
  while (performance.now() < warmUntil && (await target.count()) - before < WARM_REQUESTS) {
    await sleep(50);
  }
  process.signal("SIGSTOP");
  await sleep(SETTLE_MS);
  return process.ended;
}

async function runSlice(runner: Runner, target: Target, sliceMs: number): Promise<void> {
  const { process } = runner;
  const cpuBefore = process.cpuSeconds();
  const countBefore = await target.count();
  const startedAt = performance.now();
  process.signal("SIGCONT");
  await sleep(sliceMs);
  process.signal("SIGSTOP");
  runner.seconds += (performance.now() - startedAt) / 1_000;
  await sleep(SETTLE_MS);
  const requests = (await target.count()) - countBefore;
  const cpuSeconds = process.cpuSeconds() - cpuBefore;
  if (process.ended !== null) runner.failed = process.ended;
  else if (requests === 0) runner.failed = "sent nothing in a slice";
  else runner.slices.push({ cpuSeconds, requests });
}
