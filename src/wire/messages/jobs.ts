/**
 * The bytes of job-level messages: what gates, managers, workers and clients will say to each other
 * about work. Here is only their form; the protocols that use them stand on it. (spec 20, section 16)
 *
 * Field numbers are for ever. `version`, `fenceToken`, `code` and the counts that later sections of the
 * spec add are there from the start (C20-18, C20-19, C20-23, C20-24).
 */

import { ERROR_BYTES_MAX, ID_BYTES_MAX, INFLATED_BYTES_MAX } from "../limits.ts";
import {
  bool,
  bytes,
  dictionary,
  float,
  list,
  nullable,
  oneOf,
  optional,
  required,
  struct,
  text,
  uint,
} from "../schema.ts";

export const JOB_STATUSES = [
  "SUBMITTED",
  "QUEUED",
  "DISPATCHING",
  "RUNNING",
  "COMPLETING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "TIMEOUT",
  "CANCELLING",
] as const;
export const WORKFLOW_STATUSES = [
  "PENDING",
  "ASSIGNED",
  "RUNNING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
] as const;
export const WORKER_STATES = ["HEALTHY", "DEGRADED", "DRAINING", "OFFLINE"] as const;
export const TIER_STATES = ["SYNCING", "ACTIVE", "DRAINING"] as const;
export const NODE_ROLES = ["gate", "manager", "worker"] as const;
export const ACK_CODES = ["ACCEPTED", "BUSY", "NOT_LEADER", "REJECTED", "DUPLICATE"] as const;

const DATACENTERS_MAX = 256;
const WORKFLOWS_MAX = 10_000;
const STEPS_MAX = 4_096;
const CORES_MAX = 4_096;
const WORKERS_MAX = 65_536;

const id = text(ID_BYTES_MAX, 1);
const name = text(ID_BYTES_MAX);
const error = optional(15, nullable(text(ERROR_BYTES_MAX)), null);
const payload = bytes(INFLATED_BYTES_MAX);
const endpoint = struct("endpoint", { host: required(1, name), port: required(2, uint) });

export const jobSubmission = struct("JobSubmission", {
  jobId: required(1, id),
  workflows: required(2, payload),
  vus: required(3, uint),
  timeoutSeconds: required(4, float),
  datacenterCount: optional(5, uint, 1),
  datacenters: optional(6, list(name, DATACENTERS_MAX), []),
  callbackAddr: optional(7, nullable(endpoint), null),
  fenceToken: optional(8, uint, 0),
  leaseTtlMs: optional(9, uint, 0),
  idempotencyKey: optional(10, nullable(id), null),
});

export const jobAck = struct("JobAck", {
  jobId: required(1, id),
  accepted: required(2, bool),
  queuedPosition: optional(3, uint, 0),
  code: optional(4, oneOf(ACK_CODES), "ACCEPTED"),
  workflowsDispatched: optional(5, uint, 0),
  datacentersDispatched: optional(6, uint, 0),
  leaderAddr: optional(7, nullable(endpoint), null),
  error,
});

export const jobCancelRequest = struct("JobCancelRequest", {
  jobId: required(1, id),
  requesterId: required(2, id),
  timestamp: required(3, float),
  fenceToken: optional(4, uint, 0),
  reason: optional(5, text(ERROR_BYTES_MAX), ""),
});

export const jobCancelResponse = struct("JobCancelResponse", {
  jobId: required(1, id),
  success: required(2, bool),
  cancelledWorkflowCount: optional(3, uint, 0),
  error,
});

export const workflowDispatch = struct("WorkflowDispatch", {
  jobId: required(1, id),
  workflowId: required(2, id),
  workflow: required(3, payload),
  context: required(4, payload),
  vus: required(5, uint),
  timeoutSeconds: required(6, float),
  fenceToken: required(7, uint),
  cores: optional(8, uint, 1),
  contextVersion: optional(9, uint, 0),
});

export const workflowDispatchAck = struct("WorkflowDispatchAck", {
  workflowId: required(1, id),
  accepted: required(2, bool),
  coresAssigned: optional(3, uint, 0),
  error,
});

const stepStats = struct("StepStats", {
  stepName: required(1, name),
  completedCount: optional(2, uint, 0),
  failedCount: optional(3, uint, 0),
  totalCount: optional(4, uint, 0),
});

export const workflowProgress = struct("WorkflowProgress", {
  jobId: required(1, id),
  workflowId: required(2, id),
  workflowName: required(3, name),
  status: required(4, oneOf(WORKFLOW_STATUSES)),
  completedCount: required(5, uint),
  failedCount: required(6, uint),
  ratePerSecond: required(7, float),
  elapsedSeconds: required(8, float),
  stepStats: optional(9, list(stepStats, STEPS_MAX), []),
  timestamp: optional(10, float, 0),
  assignedCores: optional(11, list(uint, CORES_MAX), []),
  coresCompleted: optional(12, uint, 0),
  version: optional(13, uint, 0),
  fenceToken: optional(14, uint, 0),
});

export const jobProgress = struct("JobProgress", {
  jobId: required(1, id),
  datacenter: required(2, name),
  status: required(3, oneOf(JOB_STATUSES)),
  workflows: optional(4, list(workflowProgress, WORKFLOWS_MAX), []),
  totalCompleted: optional(5, uint, 0),
  totalFailed: optional(6, uint, 0),
  overallRate: optional(7, float, 0),
  elapsedSeconds: optional(8, float, 0),
  timestamp: optional(9, float, 0),
});

export const globalJobStatus = struct("GlobalJobStatus", {
  jobId: required(1, id),
  status: required(2, oneOf(JOB_STATUSES)),
  datacenters: optional(3, list(jobProgress, DATACENTERS_MAX), []),
  totalCompleted: optional(4, uint, 0),
  totalFailed: optional(5, uint, 0),
  overallRate: optional(6, float, 0),
  elapsedSeconds: optional(7, float, 0),
  completedDatacenters: optional(8, uint, 0),
  failedDatacenters: optional(9, uint, 0),
});

export const provisionRequest = struct("ProvisionRequest", {
  jobId: required(1, id),
  workflowId: required(2, id),
  targetWorker: required(3, id),
  coresRequired: required(4, uint),
  fenceToken: required(5, uint),
  version: required(6, uint),
});

export const provisionConfirm = struct("ProvisionConfirm", {
  jobId: required(1, id),
  workflowId: required(2, id),
  confirmingNode: required(3, id),
  confirmed: required(4, bool),
  version: required(5, uint),
  error,
});

export const provisionCommit = struct("ProvisionCommit", {
  jobId: required(1, id),
  workflowId: required(2, id),
  targetWorker: required(3, id),
  coresAssigned: required(4, uint),
  fenceToken: required(5, uint),
  committedVersion: required(6, uint),
});

export const provisionAbort = struct("ProvisionAbort", {
  jobId: required(1, id),
  workflowId: required(2, id),
  fenceToken: required(3, uint),
  reason: optional(4, text(ERROR_BYTES_MAX), ""),
});

const workerStateSnapshot = struct("WorkerStateSnapshot", {
  nodeId: required(1, id),
  state: required(2, oneOf(WORKER_STATES)),
  totalCores: required(3, uint),
  availableCores: required(4, uint),
  version: required(5, uint),
  activeWorkflows: optional(6, dictionary(workflowProgress, WORKFLOWS_MAX), new Map()),
});

const managerStateSnapshot = struct("ManagerStateSnapshot", {
  nodeId: required(1, id),
  datacenter: required(2, name),
  isLeader: required(3, bool),
  term: required(4, uint),
  version: required(5, uint),
  workers: optional(6, list(workerStateSnapshot, WORKERS_MAX), []),
  jobs: optional(7, dictionary(jobProgress, WORKFLOWS_MAX), new Map()),
});

export const stateSyncRequest = struct("StateSyncRequest", {
  requesterId: required(1, id),
  requesterRole: required(2, oneOf(NODE_ROLES)),
  sinceVersion: optional(3, uint, 0),
});

export const stateSyncResponse = struct("StateSyncResponse", {
  responderId: required(1, id),
  currentVersion: required(2, uint),
  workerState: optional(3, nullable(workerStateSnapshot), null),
  managerState: optional(4, nullable(managerStateSnapshot), null),
});

export const datacenterLease = struct("DatacenterLease", {
  jobId: required(1, id),
  datacenter: required(2, name),
  leaseHolder: required(3, id),
  fenceToken: required(4, uint),
  /** Remaining, not an instant: clocks of machines do not agree. (C20-22) */
  ttlMs: required(5, uint),
  version: required(6, uint),
});

export const leaseTransfer = struct("LeaseTransfer", {
  jobId: required(1, id),
  datacenter: required(2, name),
  fromGate: required(3, id),
  toGate: required(4, id),
  newFenceToken: required(5, uint),
  version: required(6, uint),
});

export const leaseTransferAck = struct("LeaseTransferAck", {
  jobId: required(1, id),
  datacenter: required(2, name),
  accepted: required(3, bool),
  fenceToken: required(4, uint),
});

export const jobStatusPush = struct("JobStatusPush", {
  jobId: required(1, id),
  status: required(2, oneOf(JOB_STATUSES)),
  message: required(3, text(ERROR_BYTES_MAX)),
  totalCompleted: required(4, uint),
  totalFailed: required(5, uint),
  overallRate: required(6, float),
  elapsedSeconds: required(7, float),
  isFinal: required(8, bool),
});

export const jobBatchPush = struct("JobBatchPush", {
  jobId: required(1, id),
  status: required(2, oneOf(JOB_STATUSES)),
  stepStats: optional(3, list(stepStats, STEPS_MAX), []),
  totalCompleted: required(4, uint),
  totalFailed: required(5, uint),
  overallRate: required(6, float),
  elapsedSeconds: required(7, float),
});
