/** Cores of workers that no job holds, and how a job gets some of them. */

import type { ManagerContext } from "./context.ts";
import type { DatacenterState, Grant } from "./datacenter-state.ts";

interface FreeCores {
  readonly worker: string;
  readonly incarnation: number;
  /** All that the worker has. */
  readonly capacity: number;
  readonly free: number;
  /** It advances less than it used to, or has nearly as much to do as it may have: the others come first. */
  readonly isSlow: boolean;
}

/** Of the workers that may be given more. */
export function freeCores(context: ManagerContext, state: DatacenterState): readonly FreeCores[] {
  return context.workers.available().map(({ cores: capacity, incarnation, isSlow, worker }) => {
    const free = Math.max(0, capacity - state.usedCores(worker, incarnation));
    return { worker, incarnation, capacity, free, isSlow };
  });
}

/** So many of them, as far as there are: from whoever has most left, so that load is spread. */
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
