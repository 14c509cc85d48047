/** Cores of workers that no job holds, and how a job gets some of them. */

import type { ManagerContext } from "./context.ts";
import type { DatacenterState, Grant } from "./datacenter-state.ts";

interface FreeCores {
  readonly worker: string;
  readonly incarnation: number;
  /** All that the worker has. */
  readonly capacity: number;
  readonly free: number;
}

/** Of the workers that may be given more. */
export function freeCores(context: ManagerContext, state: DatacenterState): readonly FreeCores[] {
  return context.workers.available().map(({ cores: capacity, incarnation, worker }) => {
    const free = Math.max(0, capacity - state.usedCores(worker, incarnation));
    return { worker, incarnation, capacity, free };
  });
}

/** So many of them, as far as there are: from whoever has most left, so that load is spread. */
export function spread(workers: readonly FreeCores[], wanted: number): readonly Grant[] {
  const given = workers.map(({ free, ...worker }) => ({ ...worker, left: free, cores: 0 }));
  for (let count = 0; count < wanted; count++) {
    const [most] = [...given].sort((one, other) => other.left - one.left);
    if (most === undefined || most.left === 0) break;
    most.left--;
    most.cores++;
  }
  return given.filter(({ cores }) => cores > 0).map(({ left: _, ...grant }) => grant);
}
