/** Requests from gates to managers beyond the client protocol, and their answers. */

import type { LiveRun } from "../load/results/live.ts";
import type { BlobHash, JobStatus, Refusal } from "./messages.ts";
import type { OverloadState } from "./views.ts";

export type GateRequest =
  /** Polls the state of a job. */
  | {
      readonly kind: "observe";
      readonly job: string;
      /** Number of the first log line to return. */
      readonly line: number;
      readonly live: LiveWanted;
      /** Requests metrics to merge, newer than these frames; null to omit them. */
      readonly held: HeldFigures | null;
    }
  | { readonly kind: "capacity" };

/** Last frames of a job's workflows that a gate has received. */
export interface HeldFigures {
  /** View of the leader that sent the frames. A new leader sends them all again. */
  readonly view: number;
  readonly frames: readonly { readonly workflow: string; readonly frame: number }[];
}

/** Live data requested while the job runs: none, metrics, or metrics with latencies by window. */
export const LIVE_WANTED = ["none", "figures", "latencies"] as const;
export type LiveWanted = (typeof LIVE_WANTED)[number];

export type GateAnswer = Observed | Capacity | Refusal;

export interface Observed {
  readonly kind: "observed";
  readonly status: JobStatus;
  readonly reason: string | null;
  /** All cores have loaded the job and it is waiting for its start. */
  readonly prepared: boolean;
  /** Current scale factor of the plan. */
  readonly factor: number;
  readonly workers: number;
  readonly cores: number;
  readonly lines: readonly string[];
  readonly nextLine: number;
  readonly live: LiveRun | null;
  /** Blob with the result of a finished job. */
  readonly result: BlobHash | null;
  /** Calls so far. */
  readonly requests: number;
  readonly failed: number;
  /** Encoded `ToldRun`: metrics of a running job, if requested. */
  readonly told: Uint8Array | null;
  /** View of the leader that sent the metrics. */
  readonly view: number;
  /** Overload level of the manager. Gates poll an overloaded manager less often. (AD-37.6) */
  readonly level?: number;
  /** Time budget of a running job. */
  readonly clock?: ObservedClock | null;
}

/** Exceeded its time limit, or made no progress for too long. */
export const OVERDUE_CAUSES = ["overall", "stuck"] as const;

/** A job that ran out of time. */
export interface Overdue {
  readonly cause: (typeof OVERDUE_CAUSES)[number];
  /** Human-readable explanation. */
  readonly reason: string;
}

/** Time budget of a job in its datacenter. (AD-34.31) */
export interface ObservedClock {
  /** Milliseconds since the job last advanced. */
  readonly idleMs: number;
  readonly extendedMs: number;
  readonly extensionMsMax: number;
  /** Workers with an extended deadline that have not recovered. */
  readonly extended: number;
  /** Set when the job is over its time limit or stuck; the gate decides whether to time it out. */
  readonly overdue: Overdue | null;
}

export interface Capacity {
  readonly kind: "capacity";
  readonly workers: number;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  /** Health of the answering manager; null if it does not report it. */
  readonly health?: ManagerHealth | null;
}

/** Self-reported health of a manager, evaluated by gates. (AD-19.14, AD-19.15) */
export interface ManagerHealth {
  /** The manager reaches a quorum of its datacenter. */
  readonly hasQuorum: boolean;
  /** Accepts new jobs: neither draining nor overloaded. */
  readonly accepting: boolean;
  /** Jobs accepted and started in the datacenter, as seen by this process. */
  readonly accepted: number;
  readonly dispatched: number;
  /** Queued jobs that could start because cores are free. */
  readonly dispatchable: number;
}

/** Self-reported health of a gate, evaluated by other gates. (AD-19.20, AD-19.21) */
export interface GateHealth {
  /** A datacenter has answered recently. */
  readonly hasDatacenter: boolean;
  /** Connected datacenters. */
  readonly datacenters: number;
  readonly pressure: OverloadState;
  /** Jobs forwarded to datacenters since this process started. */
  readonly forwarded: number;
  /** Jobs led by this gate that no datacenter has yet and that there is capacity for. */
  readonly forwardable: number;
}
