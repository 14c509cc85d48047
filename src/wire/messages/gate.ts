/** Messages between gates and managers, besides those of clients. */

import { COUNTER_MAX } from "../../core/base/ids.ts";
import {
  type GateAnswer,
  type GateRequest,
  type HeldFigures,
  LIVE_WANTED,
  type ManagerHealth,
  type ObservedClock,
  OVERDUE_CAUSES,
  type Overdue,
} from "../../core/cluster/gate-messages.ts";
import { JOB_STATUSES, REFUSAL_REASONS } from "../../core/cluster/messages.ts";
import { json } from "../json.ts";
import { ID_BYTES_MAX } from "../limits.ts";
import {
  bool,
  bytes,
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
import { LINES_MAX, RESULTS_BYTES_MAX, WORKFLOWS_MAX } from "./client.ts";
import { LINE_BYTES_MAX } from "./worker.ts";

const count = counter(COUNTER_MAX);
const line = text(LINE_BYTES_MAX);
const job = text(ID_BYTES_MAX, 1);

const heldFrame = struct<HeldFigures["frames"][number]>("HeldFrame", {
  workflow: required(1, line),
  frame: required(2, count),
});

const heldFigures = struct<HeldFigures>("HeldFigures", {
  view: required(1, count),
  frames: required(2, list(heldFrame, WORKFLOWS_MAX)),
});

const managerHealth = struct<ManagerHealth>("ManagerHealth", {
  hasQuorum: required(1, bool),
  accepting: required(2, bool),
  accepted: required(3, count),
  dispatched: required(4, count),
  dispatchable: required(5, count),
});

export const gateRequest = union<GateRequest>("GateRequest", {
  observe: {
    number: 1,
    fields: {
      job: required(1, job),
      line: required(2, count),
      live: required(3, oneOf(LIVE_WANTED)),
      held: optional(4, nullable(heldFigures), null),
    },
  },
  capacity: { number: 2, fields: {} },
});

const overdue = struct<Overdue>("Overdue", {
  cause: required(1, oneOf(OVERDUE_CAUSES)),
  reason: required(2, line),
});

const clock = struct<ObservedClock>("ObservedClock", {
  idleMs: required(1, count),
  extendedMs: required(2, float),
  extensionMsMax: required(3, float),
  extended: required(4, count),
  overdue: optional(5, nullable(overdue), null),
});

export const gateAnswer = union<GateAnswer>("GateAnswer", {
  observed: {
    number: 1,
    fields: {
      status: required(1, oneOf(JOB_STATUSES)),
      reason: optional(2, nullable(line), null),
      prepared: required(3, bool),
      factor: required(4, float),
      workers: required(5, count),
      cores: required(6, count),
      lines: required(7, list(line, LINES_MAX)),
      nextLine: required(8, count),
      live: optional(9, nullable(json(RESULTS_BYTES_MAX)), null),
      result: optional(10, nullable(blobHash), null),
      requests: optional(11, count, 0),
      failed: optional(12, count, 0),
      told: optional(13, nullable(bytes(RESULTS_BYTES_MAX)), null),
      view: optional(14, count, 0),
      level: optional(15, count, 0),
      clock: optional(16, nullable(clock), null),
    },
  },
  capacity: {
    number: 2,
    fields: {
      workers: required(1, count),
      cores: required(2, count),
      coresFree: required(3, count),
      jobsQueued: required(4, count),
      health: optional(5, nullable(managerHealth), null),
    },
  },
  refused: {
    number: 3,
    fields: {
      reason: required(1, oneOf(REFUSAL_REASONS)),
      message: required(2, line),
      address: optional(3, nullable(line), null),
      retryAfterMs: optional(4, nullable(counter(COUNTER_MAX)), null),
    },
  },
});
