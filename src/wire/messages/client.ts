/** Messages between clients and managers. Results travel as the JSON that files contain. */

import { COUNTER_MAX, NODE_ID_BYTES_MAX } from "../../core/base/ids.ts";
import {
  ANYWHERE,
  type AttemptView,
  CIRCUIT_STATES,
  type ClientAnswer,
  type ClientRequest,
  type Control,
  type DatacenterView,
  EVENTS_PAGE_MAX,
  JOB_FILES_MAX,
  JOB_STATUSES,
  JOBS_PAGE_MAX,
  type JobDatacenterView,
  type JobEventView,
  type JobPlace,
  type JobView,
  type NodeView,
  PART_STATUSES,
  REFUSAL_REASONS,
  type Routing,
  type Submission,
  type WorkflowView,
} from "../../core/cluster/messages.ts";
import { CONDITIONS, HEALTH_LABELS, JOB_CODE_RIGHTS } from "../../core/cluster/views.ts";
import { json } from "../json.ts";
import { ERROR_BYTES_MAX, ID_BYTES_MAX } from "../limits.ts";
import {
  bool,
  counter,
  float,
  list,
  nullable,
  oneOf,
  optional,
  required,
  struct,
  text,
  union,
} from "../schema.ts";
import { blobHash } from "./artifacts.ts";
import { address, artifacts, CORES_MAX, LINE_BYTES_MAX, PATH_BYTES_MAX } from "./worker.ts";

const MANIFESTS_BYTES_MAX = 8 * 1_048_576;
export const RESULTS_BYTES_MAX = 32 * 1_048_576;
/** Size of the value that a set-up passes to other datacenters. */
const SET_UP_BYTES_MAX = 1_048_576;
const THRESHOLDS_MAX = 1_024;
export const LINES_MAX = 4_096;
/** Size of the thresholds of one job, and of its losses. */
const VERDICTS_BYTES_MAX = 1_048_576;
export const WORKFLOWS_MAX = 1_024;
const ATTEMPTS_MAX = 65_536;
const NODES_MAX = 20_000;
const DATACENTERS_MAX = 256;

const count = counter(COUNTER_MAX);
const name = text(LINE_BYTES_MAX);
const line = text(LINE_BYTES_MAX);
const job = text(ID_BYTES_MAX, 1);
const node = text(NODE_ID_BYTES_MAX);
const status = oneOf(JOB_STATUSES);

const submission = struct<Submission>("Submission", {
  name: required(1, line),
  title: optional(2, nullable(line), null),
  tags: required(3, json(LINE_BYTES_MAX)),
  manifests: required(4, json(MANIFESTS_BYTES_MAX)),
  entry: required(5, text(PATH_BYTES_MAX, 1)),
  files: required(6, artifacts),
  overrides: required(7, json(LINE_BYTES_MAX)),
  thresholds: required(9, list(line, THRESHOLDS_MAX)),
  abortAfterMs: optional(10, nullable(count), null),
  timeoutMs: optional(11, nullable(count), null),
  cores: optional(12, nullable(counter(CORES_MAX)), null),
  command: required(13, line),
  version: required(14, text(ID_BYTES_MAX)),
  held: optional(15, bool, false),
  tenant: optional(16, nullable(text(ID_BYTES_MAX)), null),
});

const datacenter = text(ID_BYTES_MAX, 1);
const routing = struct<Routing>("Routing", {
  datacenters: required(1, list(datacenter, DATACENTERS_MAX)),
  count: required(2, counter(DATACENTERS_MAX)),
  prefer: required(3, list(datacenter, DATACENTERS_MAX)),
  strict: required(4, bool),
  weights: required(
    5,
    list(
      struct<Routing["weights"][number]>("Weight", {
        datacenter: required(1, datacenter),
        weight: required(2, float),
      }),
      DATACENTERS_MAX,
    ),
  ),
  each: required(6, bool),
});

const control = union<Control>("Control", {
  cancel: { number: 1, fields: { reason: required(1, line) } },
  pause: { number: 2, fields: {} },
  resume: { number: 3, fields: {} },
  scale: { number: 4, fields: { factor: required(1, float) } },
  start: { number: 5, fields: { atMs: required(1, count) } },
  begin: {
    number: 6,
    fields: {
      workflow: required(1, name),
      atMs: required(2, count),
      value: optional(3, json(SET_UP_BYTES_MAX), undefined),
    },
  },
  over: {
    number: 7,
    fields: { workflow: required(1, name), error: optional(2, nullable(line), null) },
  },
  timeOut: {
    number: 8,
    fields: {
      reason: required(1, line),
      view: required(2, count),
      extendedMs: required(3, float),
    },
  },
});

const jobPlace = struct<JobPlace>("JobPlace", {
  createdAt: required(1, count),
  id: required(2, job),
});

export const clientRequest = union<ClientRequest>("ClientRequest", {
  submit: {
    number: 1,
    fields: {
      key: required(1, text(ID_BYTES_MAX, 1)),
      submission: required(2, submission),
      routing: optional(3, routing, ANYWHERE),
    },
  },
  status: { number: 2, fields: { job: required(1, job) } },
  watch: {
    number: 3,
    fields: {
      job: required(1, job),
      line: required(2, count),
      live: required(3, bool),
      latencies: optional(4, bool, false),
    },
  },
  control: {
    number: 4,
    fields: {
      ...{ job: required(1, job), by: required(2, line), control: required(3, control) },
      wish: optional(4, name, undefined),
    },
  },
  jobs: { number: 5, fields: { after: optional(1, nullable(jobPlace), null) } },
  nodes: { number: 6, fields: {} },
  datacenters: { number: 7, fields: {} },
  events: { number: 8, fields: { job: required(1, job), from: required(2, count) } },
  drain: { number: 9, fields: { node: required(1, node) } },
  removeNode: { number: 10, fields: { node: required(1, node) } },
});

const attempt = struct<AttemptView>("AttemptView", {
  worker: required(1, node),
  core: required(2, count),
  token: required(3, count),
  status: required(4, oneOf(["running", "finished", "lost"])),
  startedAt: optional(5, count, 0),
  endedAt: optional(6, nullable(count), null),
  reason: optional(7, nullable(line), null),
});

const workflow = struct<WorkflowView>("WorkflowView", {
  name: required(1, name),
  status: required(2, line),
  attempts: required(3, list(attempt, ATTEMPTS_MAX)),
});

const jobDatacenterView = struct<JobDatacenterView>("JobDatacenterView", {
  name: required(1, datacenter),
  status: required(2, oneOf(PART_STATUSES)),
  reason: optional(3, nullable(line), null),
  job: required(4, text(ID_BYTES_MAX)),
  workers: required(5, count),
  cores: required(6, count),
  requests: required(7, count),
  failed: required(8, count),
  ratePerSecond: required(9, float),
  asOfMs: optional(10, nullable(count), null),
  managers: optional(11, count, 0),
});

const jobView = struct<JobView>("JobView", {
  id: required(1, job),
  name: required(2, line),
  status: required(3, status),
  reason: optional(4, nullable(line), null),
  createdAt: required(5, count),
  leader: optional(6, nullable(node), null),
  fence: required(7, count),
  cores: required(8, count),
  workflows: required(9, list(workflow, WORKFLOWS_MAX)),
  datacenters: optional(10, list(jobDatacenterView, DATACENTERS_MAX), []),
  thresholds: optional(11, json(VERDICTS_BYTES_MAX), []),
  lost: optional(12, json(VERDICTS_BYTES_MAX), []),
});

const jobEventView = struct<JobEventView>("JobEventView", {
  at: required(1, count),
  kind: required(2, text(ID_BYTES_MAX, 1)),
  who: required(3, line),
  token: optional(4, nullable(count), null),
  datacenter: optional(5, text(ID_BYTES_MAX), ""),
  text: optional(6, line, ""),
});

const nodeView = struct<NodeView>("NodeView", {
  name: required(1, node),
  role: required(2, oneOf(["manager", "worker", "gate"])),
  incarnation: required(3, count),
  version: required(4, text(ID_BYTES_MAX)),
  status: required(5, oneOf(["alive", "draining", "lost"])),
  cores: required(6, count),
  coresUsed: required(7, count),
  datacenter: optional(8, text(ID_BYTES_MAX), ""),
  leads: optional(9, count, 0),
  health: optional(10, oneOf(["", ...HEALTH_LABELS] as const), ""),
  jobCodeRights: optional(11, oneOf(JOB_CODE_RIGHTS), ""),
  executorUser: optional(12, text(ID_BYTES_MAX), ""),
  diskProblem: optional(13, text(ERROR_BYTES_MAX), ""),
});

const datacenterView = struct<DatacenterView>("DatacenterView", {
  name: required(1, datacenter),
  // Values unknown to older clients are in `condition`.
  status: required(2, oneOf(["healthy", "unreachable", "busy", "degraded", "unhealthy"])),
  managers: required(3, count),
  workers: required(4, count),
  cores: required(5, count),
  coresFree: required(6, count),
  jobsQueued: required(7, count),
  circuit: optional(8, oneOf(CIRCUIT_STATES), "CLOSED"),
  operationsQueued: optional(9, count, 0),
  condition: optional(10, oneOf(["", ...CONDITIONS] as const), ""),
});

export const clientAnswer = union<ClientAnswer>("ClientAnswer", {
  accepted: { number: 1, fields: { job: required(1, job), duplicate: required(2, bool) } },
  missing: { number: 2, fields: { hashes: required(1, list(blobHash, JOB_FILES_MAX)) } },
  job: { number: 3, fields: { job: required(1, jobView) } },
  progress: {
    number: 4,
    fields: {
      status: required(1, status),
      reason: optional(2, nullable(line), null),
      live: optional(3, nullable(json(RESULTS_BYTES_MAX)), null),
      lines: required(4, list(line, LINES_MAX)),
      nextLine: required(5, count),
      summary: optional(6, nullable(json(RESULTS_BYTES_MAX)), null),
    },
  },
  controlled: { number: 5, fields: {} },
  jobs: {
    number: 6,
    fields: { jobs: required(1, list(jobView, JOBS_PAGE_MAX)), more: optional(2, bool, false) },
  },
  nodes: { number: 7, fields: { nodes: required(1, list(nodeView, NODES_MAX)) } },
  refused: {
    number: 8,
    fields: {
      reason: required(1, oneOf(REFUSAL_REASONS)),
      message: required(2, line),
      address: optional(3, nullable(address), null),
      retryAfterMs: optional(4, nullable(count), null),
    },
  },
  datacenters: {
    number: 9,
    fields: { datacenters: required(1, list(datacenterView, DATACENTERS_MAX)) },
  },
  events: {
    number: 10,
    fields: {
      events: required(1, list(jobEventView, EVENTS_PAGE_MAX)),
      more: required(2, bool),
    },
  },
});

/** First message on a client's link. */
export const clientOpening = struct<{ readonly client: string }>("ClientOpening", {
  client: required(1, text(NODE_ID_BYTES_MAX, 1)),
});
