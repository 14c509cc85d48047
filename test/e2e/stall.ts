/**
 * The test that distinguishes an honest load generator from others: a server that stalls once under a constant rate.
 * Requests keep arriving during the stall, and each of them waits until its end, so their response times are spread
 * evenly over 0 … stall. With R requests in all and S·rate of them in the stall of S seconds, a share q of all is
 * slower than  S · (1 − q · R / (S · rate)).
 */

import type { RunSummary } from "../../src/core/load/results/model.ts";
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

/** Runs against its own target, a separate process, that stalls once, a third into the run. */
export async function runThroughStall(
  plan: StallPlan,
  load: readonly string[],
): Promise<RunSummary> {
  const here = new Scratch();
  const target = here.start(["demo-target", "--port", "0"]);
  try {
    await until(() => /http:\/\/[\d.:]+/.test(target.text()));
    const [url = ""] = /http:\/\/[\d.:]+/.exec(target.text()) ?? [];
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
    const run = here.start(["run", url, ...load, ...flags]);
    while ((await requestsAt(url)) < (plan.rate * plan.seconds) / 3)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await fetch(`${url}/stall?ms=${plan.stallMs}`);
    await run.done;
    return here.summary();
  } finally {
    target.child.kill();
    await target.done;
    here.remove();
  }
}

async function requestsAt(url: string): Promise<number> {
  const stats = (await (await fetch(`${url}/stats`)).json()) as { paths: Record<string, number> };
  return stats.paths["/"] ?? 0;
}
