/** Views of a cluster for clients: jobs, their events, and nodes. */

import type { Loss, ThresholdOutcome } from "../load/results/model.ts";

export const JOB_STATUSES = [
  "QUEUED",
  "STARTING",
  "RUNNING",
  "PAUSED",
  "CANCELLING",
  /** Finished. Threshold outcomes are in the summary. */
  "COMPLETED",
  "PARTIAL",
  "FAILED",
  "CANCELLED",
  /** Exceeded its time limit or made no progress; `reason` says which. */
  "TIMED_OUT",
] as const;

export type JobStatus = (typeof JOB_STATUSES)[number];

export const ENDED_STATUSES: readonly JobStatus[] = [
  ...(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED", "TIMED_OUT"] as const),
];

/** Statuses of a job in one datacenter, which may also be lost. */
export const PART_STATUSES = [...JOB_STATUSES, "LOST"] as const;

type PartStatus = (typeof PART_STATUSES)[number];

export interface JobView {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  readonly reason: string | null;
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  /** Manager that leads the job, as far as the answering node knows. */
  readonly leader: string | null;
  /** View of the leader. */
  readonly fence: number;
  readonly cores: number;
  readonly workflows: readonly WorkflowView[];
  /** Datacenters the job was assigned to, as far as the answering node knows. */
  readonly datacenters: readonly JobDatacenterView[];
  /** Thresholds evaluated on the metrics so far, or at the end; empty in a list of jobs. */
  readonly thresholds: readonly ThresholdOutcome[];
  /** Losses with workers and cores; empty in a list of jobs. */
  readonly lost: readonly Loss[];
}

/** State of a job in one datacenter, as last reported to its gate. */
export interface JobDatacenterView {
  readonly name: string;
  /** Status from the result once the job has finished. */
  readonly status: PartStatus;
  readonly reason: string | null;
  /** Id of the job in this datacenter; empty until known. */
  readonly job: string;
  /** Reachable managers. */
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly requests: number;
  readonly failed: number;
  readonly ratePerSecond: number;
  /** Age of this report; null if there is none. */
  readonly asOfMs: number | null;
}

export interface WorkflowView {
  readonly name: string;
  readonly status: string;
  readonly attempts: readonly AttemptView[];
}

export interface AttemptView {
  readonly worker: string;
  readonly core: number;
  readonly token: number;
  readonly status: "running" | "finished" | "lost";
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  /** Null while it runs. */
  readonly endedAt: number | null;
  /** Reason why the attempt was lost. */
  readonly reason: string | null;
}

/** One event in the log of a job. */
export interface JobEventView {
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly kind: string;
  /** Node that decided it, or person who requested it. */
  readonly who: string;
  /** Fencing token: the leader's view or the token of an attempt; null for none. */
  readonly token: number | null;
  /** Empty for decisions of the gates. */
  readonly datacenter: string;
  /** Human-readable details. */
  readonly text: string;
}

/**
 * Condition of a datacenter. Busy: no free core. Degraded: half of its managers unreachable or unhealthy. Unhealthy: no
 * worker.
 */
export const CONDITIONS = ["healthy", "busy", "degraded", "unhealthy"] as const;

export interface DatacenterView {
  readonly name: string;
  /** Reachability, or the condition if the datacenter is reachable. */
  readonly status: "unreachable" | (typeof CONDITIONS)[number];
  /** Empty if the gate does not report it. */
  readonly condition?: "" | (typeof CONDITIONS)[number];
  /** Managers connected to the answering gate. */
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  /** State of the answering gate's circuit breaker for this datacenter. (CB-1) */
  readonly circuit: CircuitState;
  /** Operations waiting for the circuit to close. */
  readonly operationsQueued: number;
}

/** Health in one label: whether a node responds, accepts work and advances. (AD-19) */
export const HEALTH_LABELS = ["healthy", "busy", "slow", "degraded", "stuck", "suspect"] as const;
export type HealthLabel = (typeof HEALTH_LABELS)[number];

/** Overload state of a node. (AD-18) */
export const OVERLOAD_STATES = ["healthy", "busy", "stressed", "overloaded"] as const;
export type OverloadState = (typeof OVERLOAD_STATES)[number];

export const CIRCUIT_STATES = ["CLOSED", "OPEN", "HALF_OPEN"] as const;
export type CircuitState = (typeof CIRCUIT_STATES)[number];

export const JOB_CODE_RIGHTS = ["", "worker", "executorUser"] as const;
export type JobCodeRights = (typeof JOB_CODE_RIGHTS)[number];

export interface NodeView {
  readonly name: string;
  readonly role: "gate" | "manager" | "worker";
  readonly datacenter: string;
  readonly incarnation: number;
  readonly version: string;
  readonly status: "alive" | "draining" | "lost";
  readonly cores: number;
  readonly coresUsed: number;
  /** Health of a worker, or of a gate as seen by the answering gate; omitted for others. */
  readonly health?: HealthLabel | "";
  /** Jobs that a gate or manager leads, as far as the answering node knows. */
  readonly leads: number;
  /** User whose permissions job code has on a worker: the worker's own, or `executorUser`; empty if unknown. */
  readonly jobCodeRights?: JobCodeRights;
  readonly executorUser?: string;
  /** Reason why the disk of a manager or worker recently failed to store a file; empty if it works or is unknown. */
  readonly diskProblem?: string;
}

/** Reason of a queued job that is next and has its cores. Not worth a message. */
export const STARTING_SOON = "starting soon";
