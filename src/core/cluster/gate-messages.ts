/** What gates ask of managers besides what clients ask, and what they are answered. */

import type { LiveRun } from "../load/results/live.ts";
import type { BlobHash, JobStatus, Refusal } from "./messages.ts";
import type { OverloadState } from "./views.ts";

export type GateRequest =
  /** How a job does, asked again and again. */
  | {
      readonly kind: "observe";
      readonly job: string;
      /** Lines from this number on. */
      readonly line: number;
      readonly live: LiveWanted;
      /** The figures to be merged are wanted, beside these; null: they are not. */
      readonly held: HeldFigures | null;
    }
  | { readonly kind: "capacity" };

/** Which frames of a job's workflows a gate holds. */
export interface HeldFigures {
  /** Of the leader that told them; another one tells them anew. */
  readonly view: number;
  readonly frames: readonly { readonly workflow: string; readonly frame: number }[];
}

/** What somebody looks at while the job runs: nothing, the figures, or also latencies by window. */
export const LIVE_WANTED = ["none", "figures", "latencies"] as const;
export type LiveWanted = (typeof LIVE_WANTED)[number];

export type GateAnswer = Observed | Capacity | Refusal;

export interface Observed {
  readonly kind: "observed";
  readonly status: JobStatus;
  readonly reason: string | null;
  /** All its cores have loaded it, and it waits for its start. */
  readonly prepared: boolean;
  /** How many times the plan, as it was last told to. */
  readonly factor: number;
  readonly workers: number;
  readonly cores: number;
  readonly lines: readonly string[];
  readonly nextLine: number;
  readonly live: LiveRun | null;
  /** Of an ended job: the blob with its result. */
  readonly result: BlobHash | null;
  /** Calls so far. */
  readonly requests: number;
  readonly failed: number;
  /** A `ToldRun`, of a job that runs and whose figures are wanted. */
  readonly told: Uint8Array | null;
  /** Of the leader that tells it. */
  readonly view: number;
  /** How hard-pressed the manager is: gates ask less often. (AD-37.6) */
  readonly level?: number;
  /** Of a job that runs: how its time stands. */
  readonly clock?: ObservedClock | null;
}

/** Its limit, or no advance for long. */
export const OVERDUE_CAUSES = ["overall", "stuck"] as const;

/** A job has run out of time. */
export interface Overdue {
  readonly cause: (typeof OVERDUE_CAUSES)[number];
  /** For people. */
  readonly reason: string;
}

/** How the time of a job stands in its datacenter. (AD-34.31) */
export interface ObservedClock {
  /** Since it last advanced. */
  readonly idleMs: number;
  readonly extendedMs: number;
  readonly extensionMsMax: number;
  /** Workers that have been given more time and have not recovered. */
  readonly extended: number;
  /** It has taken too long or is stuck, and waits for the gate to say so. */
  readonly overdue: Overdue | null;
}

export interface Capacity {
  readonly kind: "capacity";
  readonly workers: number;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  /** Of the manager that answers; null of one that does not tell. */
  readonly health?: ManagerHealth | null;
}

/** What a manager says of itself, for gates to judge it by. (AD-19.14, AD-19.15) */
export interface ManagerHealth {
  /** It reaches a quorum of the managers of its datacenter. */
  readonly hasQuorum: boolean;
  /** It takes new jobs: it does not drain, and is not overloaded. */
  readonly accepting: boolean;
  /** Jobs that its datacenter has taken and begun, as far as this process has seen. */
  readonly accepted: number;
  readonly dispatched: number;
  /** Jobs that wait and could begin: there are cores for them. */
  readonly dispatchable: number;
}

/** What a gate says of itself, for the other gates to judge it by. (AD-19.20, AD-19.21) */
export interface GateHealth {
  /** A datacenter has answered it lately. */
  readonly hasDatacenter: boolean;
  /** Datacenters that it is connected to. */
  readonly datacenters: number;
  readonly pressure: OverloadState;
  /** Jobs that it has given to datacenters, as long as this process lives. */
  readonly forwarded: number;
  /** Jobs that it leads, that no datacenter has and that there is room for. */
  readonly forwardable: number;
}
