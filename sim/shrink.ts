/** Makes a failing run small: leaves out faults, in halves, quarters and singly, as long as it still fails alike. */

import { Random } from "../src/core/base/random.ts";
import type { RunOptions } from "./run.ts";
import { runSeed } from "./run.ts";
import { drawPlan } from "./swarm.ts";

/** Runs to try at most; each costs a run. */
const TRIES_MAX = 300;

export function shrink(
  options: RunOptions,
  violationId: string,
  progress: (kept: number) => void,
): RunOptions {
  const plan = drawPlan(new Random(`swarm/${options.seed}`), options.minutes, options.size);
  let kept = options.faults ?? plan.faults.map((_, index) => index);
  let tries = 0;
  const fails = (faults: readonly number[]): boolean => {
    tries++;
    return runSeed({ ...options, faults }).violation?.id === violationId;
  };
  for (let parts = 2; parts <= 2 * kept.length && tries < TRIES_MAX; ) {
    const size = Math.max(1, Math.ceil(kept.length / parts));
    let smaller: number[] | null = null;
    for (let from = 0; from < kept.length && tries < TRIES_MAX; from += size) {
      const without = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (!fails(without)) continue;
      smaller = without;
      break;
    }
    if (smaller === null) {
      if (size === 1) break;
      parts *= 2;
      continue;
    }
    kept = smaller;
    parts = Math.max(2, parts - 1);
    progress(kept.length);
  }
  return { ...options, faults: kept };
}
