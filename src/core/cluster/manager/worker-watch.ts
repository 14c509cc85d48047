/**
 * Reacts to the health of workers: logs changes, grants more time on request, and gives up workers that stand still for
 * too long. (AD-19, AD-26)
 *
 * Every manager receives each request and decides for itself. A grant moves the timeouts of the jobs that it leads
 * there; other managers do the same for theirs, so no notification is needed. (AD-34.40)
 */

import type { Extended, Extension } from "../extension-messages.ts";
import type { WorkerHeartbeat } from "../messages.ts";
import { HealthCounters } from "../overload/health-counters.ts";
import type { ManagerContext } from "./context.ts";
import type { RunLeader } from "./run-leader.ts";

export class WorkerWatch {
  readonly counts = new HealthCounters();
  readonly #context: ManagerContext;
  /** The jobs that this manager leads. */
  readonly #runs: () => Iterable<RunLeader>;

  constructor(context: ManagerContext, runs: () => Iterable<RunLeader>) {
    this.#context = context;
    this.#runs = runs;
  }

  onHeartbeat(heartbeat: WorkerHeartbeat): void {
    const { now, workers } = this.#context;
    const { incarnation, worker } = heartbeat;
    const progress = workers.progressOf(worker, incarnation);
    const before = progress?.band ?? "idle";
    if (progress === null || !workers.onWork(heartbeat, now)) return;
    const to = progress.band;
    const level = to === "stuck" || to === "degraded" ? "warn" : "info";
    const decision = workers.decisionOf(worker) ?? "";
    this.#context.log(level, "worker.progress", { worker, from: before, to, decision });
  }

  onExtension(extension: Extension): Extended {
    const { incarnation, progress, reason, worker } = extension;
    const { now, workers } = this.#context;
    const extensions = workers.progressOf(worker, incarnation)?.extensions;
    const isSuspect = !workers.isAlive(worker, incarnation) || workers.isHeld(worker);
    const known = extensions?.count ?? 0;
    const answer = extensions?.request(extension, now, isSuspect) ?? UNKNOWN;
    const { denial, extensionMs, granted, message, remaining } = answer;
    const fields = { worker, reason, progress, remaining };
    if (!granted) {
      this.counts.onDenied(denial);
      this.#context.log("warn", "worker.extensionDenied", { ...fields, denial, message });
    } else if ((extensions?.count ?? 0) > known) {
      this.counts.onGranted(extensionMs);
      this.#context.log("warn", "worker.extended", { ...fields, extensionMs });
      for (const run of this.#runs()) run.timeouts.onExtended({ worker, incarnation }, extensionMs);
    }
    return { kind: "extended", ...answer };
  }

  /** True when some are lost. */
  onTick(): boolean {
    const { now, workers } = this.#context;
    const { held, lost } = workers.takeFailed(now);
    for (const { cause, worker } of held) {
      this.counts.onFailed("held", cause);
      const why = "more than half of the workers fail at once";
      this.#context.log("warn", "worker.held", { worker, cause, why });
    }
    for (const { cause, incarnation, worker } of lost) {
      this.counts.onFailed("evicted", cause);
      const event = cause === "silent" ? "worker.lost" : "worker.evicted";
      this.#context.log("warn", event, { worker, incarnation });
      // Leaders of jobs there find standing workers at their next check, which is now.
      if (cause === "silent") for (const run of this.#runs()) run.onWorkerLost(worker);
    }
    return lost.length > 0;
  }
}

/** Answer to an incarnation of a worker unknown to this manager. */
const UNKNOWN: Omit<Extended, "kind"> = {
  ...{ granted: false, extensionMs: 0, deadlineMs: 0, remaining: 0, graceMs: 0, isWarning: false },
  ...{ denial: "suspect", message: "this manager does not hear it" },
};
