/** Shrinks a failing run: leaves out faults, in halves, quarters and singly, as long as it still fails alike. */

import type { RunResult } from "../membership/run.ts";

/** Maximum attempts; each costs a run. */
const TRIES_MAX = 300;

interface ShrinkableOptions {
  /** Indices of the plan's faults to keep; null keeps all. */
  readonly faults: readonly number[] | null;
}

export function shrink<Options extends ShrinkableOptions>(
  run: (options: Options) => RunResult,
  options: Options,
  broken: RunResult,
  progress: (kept: number) => void,
): Options {
  const violationId = broken.violation?.id;
  let kept = options.faults ?? Array.from({ length: broken.faultCount }, (_, index) => index);
  let tries = 0;
  const fails = (faults: readonly number[]): boolean => {
    tries++;
    return run({ ...options, faults }).violation?.id === violationId;
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
