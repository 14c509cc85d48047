/** Requests of gates beyond those of clients: the state of a job in this datacenter, and its capacity. */

import { assertNever } from "../../base/assert.ts";
import type {
  GateAnswer,
  GateRequest,
  HeldFigures,
  ManagerHealth,
  Observed,
} from "../gate-messages.ts";
import { ENDED_STATUSES, refusal } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { DatacenterJob, DatacenterState } from "./datacenter-state.ts";
import type { Decision } from "./run-entries.ts";
import type { RunLeader } from "./run-leader.ts";
import { encodeTold } from "./run-result.ts";

type Observe = Extract<GateRequest, { kind: "observe" }>;

/** Knowledge of the manager as a whole. */
interface GateRequestsHost {
  leaderOf(job: string): RunLeader | null;
  /** Reason why a job waits. */
  reasonOf(job: string): string | null;
  /** Whether the manager accepts new jobs. */
  readonly nodes: { readonly isDraining: boolean };
}

export class GateRequests {
  readonly #context: ManagerContext;
  readonly #host: GateRequestsHost;

  constructor(context: ManagerContext, host: GateRequestsHost) {
    this.#context = context;
    this.#host = host;
  }

  answer(request: GateRequest): GateAnswer {
    switch (request.kind) {
      case "observe":
        return this.#observe(request);
      case "capacity":
        return this.#capacity();
      default:
        return assertNever(request);
    }
  }

  #observe(request: Observe): GateAnswer {
    const { job: name } = request;
    const job = this.#context.datacenter()?.jobs.get(name);
    if (job === undefined) return this.#context.noJob(name);
    const leader = this.#host.leaderOf(name);
    if (leader !== null) return this.#led(job, leader, request);
    if (job.phase !== "admitted") return this.#folded(job);
    const primary = this.#context.runOf(name)?.primary ?? null;
    if (primary === null || primary === this.#context.options.self)
      return refusal("retry", "nobody leads the job at the moment");
    return refusal("notLeader", primary);
  }

  #led(job: DatacenterJob, leader: RunLeader, { held, line, live }: Observe): Observed {
    leader.held.onPolled(this.#context.now);
    const isOver = job.phase === "ended";
    const { machine, status, view } = leader;
    const told = held === null || isOver ? null : this.#encodedMetrics(leader, held);
    return {
      ...this.#folded(job),
      // Reports the end only once the datacenter has recorded it.
      status: isOver ? job.status : ENDED_STATUSES.includes(status) ? "RUNNING" : status,
      prepared: leader.held.isWaiting,
      factor: factorOf(this.#context.runOf(job.job)?.state.history ?? []),
      lines: leader.lines.from(line),
      nextLine: leader.lines.next,
      live: live !== "none" && !isOver ? leader.live(live) : null,
      ...(machine?.counts ?? {}),
      ...{ view, told, clock: leader.timeouts.view() },
    };
  }

  /** A new leader knows nothing of its predecessor's frames. */
  #encodedMetrics({ machine, view }: RunLeader, held: HeldFigures): Uint8Array | null {
    const { now, wall } = this.#context;
    const frames = held.view === view ? held.frames : [];
    return machine === null ? null : encodeTold(machine.tell(frames, now, wall));
  }

  /** Observation of a job that waits or has finished. */
  #folded({ calls, grants, job, reason, status, summary }: DatacenterJob): Observed {
    return {
      ...{ kind: "observed", status, prepared: false, factor: 1, live: null, result: summary },
      ...{ requests: 0, failed: 0, ...calls, told: null, view: 0 },
      reason: reason ?? this.#host.reasonOf(job),
      workers: new Set(grants.map(({ worker }) => worker)).size,
      cores: grants.reduce((sum, { cores }) => sum + cores, 0),
      lines: [],
      nextLine: 0,
    };
  }

  #capacity(): GateAnswer {
    const state = this.#context.datacenter();
    const workers = this.#context.workers.available();
    const cores = workers.reduce((sum, one) => sum + one.cores, 0);
    const used = workers.reduce(
      (sum, { incarnation, worker }) => sum + (state?.usedCores(worker, incarnation) ?? 0),
      0,
    );
    const queued = [...(state?.open.values() ?? [])].filter(({ phase }) => phase === "queued");
    const coresFree = Math.max(0, cores - used);
    const fit = queued.filter(({ needs }) => (needs.cores ?? 1) <= coresFree);
    return {
      ...{ kind: "capacity", workers: workers.length, cores, coresFree },
      jobsQueued: queued.length,
      health: this.#health(state, Math.min(fit.length, coresFree)),
    };
  }

  /** Health without overload, which the driver adds. */
  #health(state: DatacenterState | null, dispatchable: number): ManagerHealth {
    const { options, peers } = this.#context;
    return {
      hasQuorum: peers.size + 1 > options.managers.length / 2,
      accepting: !this.#host.nodes.isDraining,
      ...{ accepted: state?.accepted ?? 0, dispatched: state?.dispatched ?? 0, dispatchable },
    };
  }
}

/** Scale factor of the plan: the one requested last. */
function factorOf(history: readonly Decision[]): number {
  const scales = history.flatMap((one) =>
    one.kind === "control" && one.control.kind === "scale" ? [one.control.factor] : [],
  );
  return scales.at(-1) ?? 1;
}
