/** Unassigned cores of workers, and how a job gets some of them. */

import type { ManagerContext } from "./context.ts";
import type { DatacenterState, Grant } from "./datacenter-state.ts";

interface FreeCores {
  readonly worker: string;
  readonly incarnation: number;
  /** All cores of the worker. */
  readonly capacity: number;
  readonly free: number;
  /** The worker advances more slowly than before or is near its queue limit: others are preferred. */
  readonly isSlow: boolean;
}

/** Free cores of the workers that accept work. */
export function freeCores(context: ManagerContext, state: DatacenterState): readonly FreeCores[] {
  return context.workers.available().map(({ cores: capacity, incarnation, isSlow, worker }) => {
    const free = Math.max(0, capacity - state.usedCores(worker, incarnation));
    return { worker, incarnation, capacity, free, isSlow };
  });
}

/** Selects up to `wanted` cores, always from the worker with most left, so that load is spread. */
export function spread(workers: readonly FreeCores[], wanted: number): readonly Grant[] {
  const given = workers.map(({ free, ...worker }) => ({ ...worker, left: free, cores: 0 }));
  for (let count = 0; count < wanted; count++) {
    const open = given.filter(({ left }) => left > 0);
    const [most] = open.sort(
      (one, other) => Number(one.isSlow) - Number(other.isSlow) || other.left - one.left,
    );
    if (most === undefined) break;
    most.left--;
    most.cores++;
  }
  return given
    .filter(({ cores }) => cores > 0)
    .map(({ isSlow: _slow, left: _left, ...grant }) => grant);
}
