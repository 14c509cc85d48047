/**
 * The question that tells an honest load generator from others: a server that stalls once under a
 * constant rate. Requests go on arriving during the stall, and each of them waits until its end, so
 * their response times are spread evenly over 0 … stall. With R requests in all and S·rate of them
 * in the stall of S seconds, a share q of all is slower than  S · (1 − q · R / (S · rate)).
 */

import { startDemoTarget } from "../../src/demo/server.ts";
import type { RunSummary } from "../../src/results/model.ts";
import { Scratch, until } from "./cli.ts";

export interface StallPlan {
  readonly rate: number;
  readonly seconds: number;
  readonly stallMs: number;
}

export function analytical({ rate, seconds, stallMs }: StallPlan, percentile: number): number {
  const stalled = (rate * stallMs) / 1_000;
  const slower = (1 - percentile / 100) * rate * seconds;
  return stallMs * (1 - slower / stalled);
}

/** Runs against a target of its own that stalls once, a third into the run. */
export async function runThroughStall(
  plan: StallPlan,
  load: readonly string[],
): Promise<RunSummary> {
  const demo = await startDemoTarget({ port: 0 });
  const here = new Scratch();
  try {
    const flags = [
      "--duration",
      `${plan.seconds}s`,
      "--ui",
      "none",
      "--out",
      "out",
      "--cores",
      "1",
    ];
    const run = here.start(["run", demo.url, ...load, ...flags]);
    const third = (plan.rate * plan.seconds) / 3;
    await until(() => demo.stats().requests >= third);
    demo.stallOnce(plan.stallMs);
    await run.done;
    return here.summary();
  } finally {
    here.remove();
    await demo.close();
  }
}
