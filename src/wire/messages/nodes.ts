/**
 * The bytes of node-level messages: registrations, cancellations, health extensions, job leadership,
 * and the heartbeats that ride on membership packets. (spec 20, sections 16.2 and 16.3)
 */

import { CAPABILITIES_MAX, ERROR_BYTES_MAX, ID_BYTES_MAX } from "../limits.ts";
import {
  bool,
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
import { TIER_STATES, WORKER_STATES, WORKFLOW_STATUSES } from "./jobs.ts";

const MANAGERS_MAX = 1_024;
const WORKFLOWS_MAX = 10_000;

const id = text(ID_BYTES_MAX, 1);
const name = text(ID_BYTES_MAX);
const error = optional(15, nullable(text(ERROR_BYTES_MAX)), null);
const reason = text(ERROR_BYTES_MAX);

const nodeInfo = struct("NodeInfo", {
  nodeId: required(1, id),
  host: required(2, name),
  tcpPort: required(3, uint),
  udpPort: required(4, uint),
});

/** Cluster and environment first: they are checked before any other field is used. (AD-28.5) */
const registration = {
  clusterId: required(1, id),
  environmentId: required(2, id),
  node: required(3, nodeInfo),
  datacenter: required(4, name),
  incarnation: required(5, uint),
  protocolVersionMajor: required(6, uint),
  protocolVersionMinor: required(7, uint),
  capabilities: optional(8, list(name, CAPABILITIES_MAX), []),
};

export const workerRegistration = struct("WorkerRegistration", {
  ...registration,
  totalCores: required(9, uint),
  availableCores: required(10, uint),
});

export const managerRegistration = struct("ManagerRegistration", {
  ...registration,
  isLeader: required(9, bool),
  term: required(10, uint),
});

export const registrationAck = struct("RegistrationAck", {
  accepted: required(1, bool),
  nodeId: required(2, id),
  known: optional(3, list(nodeInfo, MANAGERS_MAX), []),
  capabilities: optional(4, list(name, CAPABILITIES_MAX), []),
  error,
});

export const workflowCancelRequest = struct("WorkflowCancelRequest", {
  jobId: required(1, id),
  workflowIds: required(2, list(id, WORKFLOWS_MAX)),
  fenceToken: required(3, uint),
  reason: optional(4, reason, ""),
});

export const workflowCancelResponse = struct("WorkflowCancelResponse", {
  success: required(1, bool),
  cancelledCount: optional(2, uint, 0),
  error,
});

export const workflowCancellationQuery = struct("WorkflowCancellationQuery", {
  jobId: required(1, id),
  workflowId: required(2, id),
});

export const workflowCancellationAnswer = struct("WorkflowCancellationAnswer", {
  workflowId: required(1, id),
  isCancelled: required(2, bool),
});

export const healthcheckExtensionRequest = struct("HealthcheckExtensionRequest", {
  workerId: required(1, id),
  reason: required(2, reason),
  currentProgress: required(3, float),
  estimatedCompletionSeconds: required(4, float),
  activeWorkflowCount: required(5, uint),
});

export const healthcheckExtensionResponse = struct("HealthcheckExtensionResponse", {
  granted: required(1, bool),
  extensionSeconds: optional(2, float, 0),
  newDeadlineSeconds: optional(3, float, 0),
  remainingExtensions: optional(4, uint, 0),
  denialReason: optional(5, nullable(reason), null),
});

export const jobLeadership = struct("JobLeadership", {
  jobId: required(1, id),
  leaderId: required(2, id),
  leaderAddr: required(3, name),
  datacenter: optional(4, nullable(name), null),
  term: required(5, uint),
  fenceToken: required(6, uint),
});

export const drainComplete = struct("DrainComplete", {
  nodeId: required(1, id),
  version: required(2, uint),
});

export const jobStatusRequest = struct("JobStatusRequest", { jobId: required(1, id) });

export const refusal = struct("Refusal", {
  code: required(1, id),
  text: required(2, text(ERROR_BYTES_MAX)),
  /** For overload: when to come again. (BEX-5) */
  retryAfterMs: optional(3, nullable(uint), null),
});

export const workerHeartbeat = struct("WorkerHeartbeat", {
  nodeId: required(1, id),
  state: required(2, oneOf(WORKER_STATES)),
  availableCores: required(3, uint),
  queueDepth: required(4, uint),
  cpuPercent: required(5, float),
  memoryPercent: required(6, float),
  version: required(7, uint),
  activeWorkflows: optional(8, dictionary(oneOf(WORKFLOW_STATUSES), WORKFLOWS_MAX), new Map()),
});

export const managerHeartbeat = struct("ManagerHeartbeat", {
  nodeId: required(1, id),
  datacenter: required(2, name),
  isLeader: required(3, bool),
  term: required(4, uint),
  version: required(5, uint),
  activeJobs: required(6, uint),
  activeWorkflows: required(7, uint),
  workerCount: required(8, uint),
  availableCores: required(9, uint),
  state: optional(10, oneOf(TIER_STATES), "ACTIVE"),
  healthyWorkerCount: optional(11, uint, 0),
  totalCores: optional(12, uint, 0),
});

export const gateHeartbeat = struct("GateHeartbeat", {
  nodeId: required(1, id),
  state: required(2, oneOf(TIER_STATES)),
  isLeader: required(3, bool),
  term: required(4, uint),
  version: required(5, uint),
  activeJobs: required(6, uint),
});
