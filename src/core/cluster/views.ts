/** What clients are shown of a cluster: its jobs, what happened to them, and its nodes. */

import type { Loss, ThresholdOutcome } from "../load/results/model.ts";

export const JOB_STATUSES = [
  "QUEUED",
  "STARTING",
  "RUNNING",
  "PAUSED",
  "CANCELLING",
  /** Ended: what came of it stands in its summary, whether thresholds held or not. */
  "COMPLETED",
  "PARTIAL",
  "FAILED",
  "CANCELLED",
  /** It took longer than it may, or did not advance: its reason says which. */
  "TIMED_OUT",
] as const;

export type JobStatus = (typeof JOB_STATUSES)[number];

export const ENDED_STATUSES: readonly JobStatus[] = [
  ...(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED", "TIMED_OUT"] as const),
];

/** Of a job in one datacenter: that may be given up. */
export const PART_STATUSES = [...JOB_STATUSES, "LOST"] as const;

type PartStatus = (typeof PART_STATUSES)[number];

export interface JobView {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  readonly reason: string | null;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  /** The manager that leads it, as far as this one knows. */
  readonly leader: string | null;
  /** The leader's view. */
  readonly fence: number;
  readonly cores: number;
  readonly workflows: readonly WorkflowView[];
  /** Those that it was given to, as far as whoever was asked knows. */
  readonly datacenters: readonly JobDatacenterView[];
  /** Of its figures so far, or in the end; empty in a list of jobs. */
  readonly thresholds: readonly ThresholdOutcome[];
  /** What it has lost with workers and cores; empty in a list of jobs. */
  readonly lost: readonly Loss[];
}

/** What a job does in one datacenter, as its gate has last heard. */
export interface JobDatacenterView {
  readonly name: string;
  /** Once the job has ended: as its result says. */
  readonly status: PartStatus;
  readonly reason: string | null;
  /** The job's id there; empty until it is known. */
  readonly job: string;
  /** That can be reached. */
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly requests: number;
  readonly failed: number;
  readonly ratePerSecond: number;
  /** How long ago that was heard; null: never. */
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
  /** Milliseconds of the wall clock. */
  readonly startedAt: number;
  /** Null while it runs. */
  readonly endedAt: number | null;
  /** Why it was lost. */
  readonly reason: string | null;
}

/** One thing that happened to a job, as its log has it. */
export interface JobEventView {
  /** Milliseconds of the wall clock. */
  readonly at: number;
  readonly kind: string;
  /** The node that decided it, or the person who asked for it. */
  readonly who: string;
  /** What it was fenced with: the view of its leader, or the token of an attempt; null: nothing. */
  readonly token: number | null;
  /** Empty for what the gates decided. */
  readonly datacenter: string;
  /** The rest, for people. */
  readonly text: string;
}

/** How a datacenter does: all cores taken, half of its managers away or unwell, no worker. */
export const CONDITIONS = ["healthy", "busy", "degraded", "unhealthy"] as const;

export interface DatacenterView {
  readonly name: string;
  /** Clients are shown the condition of one that is reached. */
  readonly status: "unreachable" | (typeof CONDITIONS)[number];
  /** Empty of a gate that does not tell. */
  readonly condition?: "" | (typeof CONDITIONS)[number];
  /** Connected to the gate that was asked. */
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  /** Of the gate that was asked, toward this datacenter. (CB-1) */
  readonly circuit: CircuitState;
  /** What waits there for the circuit to close. */
  readonly operationsQueued: number;
}

/** Whether it answers, takes work and advances, in one word. (AD-19) */
export const HEALTH_LABELS = ["healthy", "busy", "slow", "degraded", "stuck", "suspect"] as const;
export type HealthLabel = (typeof HEALTH_LABELS)[number];

/** How hard-pressed a node is. (AD-18) */
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
  /** Of a worker, or of a gate as the gate that was asked sees it; left out for others. */
  readonly health?: HealthLabel | "";
  /** Jobs that a gate or manager leads, as far as whoever was asked knows. */
  readonly leads: number;
  /** Of a worker: whose rights job code has, its own or those of `executorUser`; empty: not known. */
  readonly jobCodeRights?: JobCodeRights;
  readonly executorUser?: string;
  /** Of a manager or worker: why its disk stored no file of late; empty: it does, as far as is known. */
  readonly diskProblem?: string;
}

/** Why a job that is next and has its cores is still queued; not worth a message. */
export const STARTING_SOON = "starting soon";
