/** Initial state of a job in its datacenter: its cores, and the machine that drives them. */

import { isoText } from "../../base/civil.ts";
import { RunMachine } from "../../load/execution/run-machine.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import { slotsOf } from "../../load/job/slots.ts";
import { RunAggregate } from "../../load/results/run-aggregate.ts";
import type { Submission } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { Grant } from "./datacenter-state.ts";
import type { RunCore } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";
import type { RunWorkers } from "./run-workers.ts";
import type { ManagerOptions } from "./types.ts";

/** Cores of the granted workers that are still alive; none when all are lost. */
export function coresToOpen(
  { grants, submission }: Pick<RunState, "grants" | "submission">,
  { options }: Pick<ManagerContext, "options">,
  workers: Pick<RunWorkers, "isAtWork">,
): readonly RunCore[] {
  const alive = grants.filter((grant) => workers.isAtWork(grant));
  if (submission === null || alive.length === 0) return [];
  return coresOf(alive, submission.manifests, options.config.processesPerCoreMax);
}

/** Spreads as many processes as the workflows can use in parallel over the granted cores. */
function coresOf(
  grants: readonly Grant[],
  manifests: readonly WorkflowManifest[],
  processesPerCoreMax: number,
): readonly RunCore[] {
  const turns = grants.flatMap(({ cores, incarnation, worker }) =>
    Array.from({ length: cores }, () => ({ worker, incarnation })),
  );
  const slots = Math.min(slotsOf(manifests, turns.length), turns.length * processesPerCoreMax);
  return Array.from({ length: slots }).flatMap((_, core) => {
    const turn = turns[core % turns.length];
    return turn === undefined ? [] : [{ core, ...turn }];
  });
}

interface RunFacts {
  readonly job: string;
  readonly cores: readonly RunCore[];
  readonly grants: readonly Grant[];
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  /** When the job was accepted, on the clock of this process. */
  readonly acceptedAt: number;
  readonly isAwaited: (core: number) => boolean;
}

export function newRunMachine(
  submission: Submission,
  { errorKinds, machine, version }: ManagerOptions,
  { acceptedAt, cores, createdAt, grants, isAwaited, job }: RunFacts,
): RunMachine {
  const { abortAfterMs, command, manifests, name, tags, thresholds, title } = submission;
  const slots = cores.map(({ core }) => core);
  const pool = grants.reduce((sum, one) => sum + one.cores, 0);
  const cpus = grants.reduce((sum, { capacity }) => sum + capacity, 0);
  const aggregate = new RunAggregate({
    runId: job,
    ...{ name, tags, manifests, thresholds, abortAfterMs, errorKinds },
    title: title ?? undefined,
    startedAt: isoText(createdAt),
    environment: { ...machine, hyperscale: version, cpus, cores: slots.length, command },
  });
  return new RunMachine({
    ...{ manifests, aggregate, agreement: null, limited: true },
    cores: { slots, pool: Math.min(pool, slots.length) },
    // The leader tracks the timeout, since workers may be granted more time. (AD-34.42)
    timeoutMs: null,
    ...{ beganAt: acceptedAt, isAwaited },
  });
}
