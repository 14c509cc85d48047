/**
 * Messages between workers and managers. Values of user code and descriptions of workflows travel as JSON; everything
 * else has a schema. Field numbers never change. (CODEC-1)
 */

import { ADDRESS_BYTES_MAX, COUNTER_MAX, NODE_ID_BYTES_MAX } from "../../core/base/ids.ts";
import {
  EXTENSION_DENIALS,
  EXTENSION_REASONS,
  type Extended,
  type Extension,
} from "../../core/cluster/extension-messages.ts";
import {
  type Announce,
  type Announced,
  type Artifact,
  type Drain,
  type Events,
  type HeldFigures,
  JOB_FILES_MAX,
  type Order,
  type Orders,
  REFUSAL_REASONS,
  type Refusal,
  type RelayedCommand,
  type RelayedEvent,
  type RunningCore,
  type Taken,
  type WorkerEvent,
  type WorkerHeartbeat,
} from "../../core/cluster/messages.ts";
import { JOB_CODE_RIGHTS } from "../../core/cluster/views.ts";
import type {
  CoreFigures,
  CoreVitals,
  PartFault,
  Problem,
} from "../../core/load/job/core-messages.ts";
import { COUNTED_TOPICS, type CountedNote } from "../../core/load/job/counted-notes.ts";
import type { SharedAnswer, SharedRequest } from "../../core/load/job/shared-values.ts";
import type { Share } from "../../core/load/plan/load.ts";
import { json } from "../json.ts";
import { ERROR_BYTES_MAX, ID_BYTES_MAX } from "../limits.ts";
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
import { blobBytes, blobHash } from "./artifacts.ts";

/** Cores of one worker or one job. */
export const CORES_MAX = 65_536;
/** Entries in one message; the sender starts another when it has more. */
export const ROW_ENTRIES_MAX = 1_024;
/** Size of user-written text: lines, names, problems. Senders clip it. */
export const LINE_BYTES_MAX = 16_384;
/** A value that user code hands on; the contexts of a job together. */
const VALUE_BYTES_MAX = 8 * 1_048_576;
const MANIFESTS_BYTES_MAX = 8 * 1_048_576;
const FRAME_BYTES_MAX = 8 * 1_048_576;
const NOTES_MAX = 4_096;
const USERS_MAX = 65_536;
export const PATH_BYTES_MAX = 1_024;
/** Managers of one datacenter. */
const MANAGERS_MAX = 16;

const count = counter(COUNTER_MAX);
const core = counter(CORES_MAX);
const name = text(LINE_BYTES_MAX);
const line = text(LINE_BYTES_MAX);
const job = text(ID_BYTES_MAX, 1);
const worker = text(NODE_ID_BYTES_MAX, 1);
const execution = required(1, count);
/** Host and port. */
export const address = text(ADDRESS_BYTES_MAX);

export const artifact = struct<Artifact>("Artifact", {
  path: required(1, text(PATH_BYTES_MAX, 1)),
  hash: required(2, blobHash),
  bytes: required(3, blobBytes),
});
export const artifacts = list(artifact, JOB_FILES_MAX);

const share = struct<Share>("Share", {
  index: required(1, core),
  count: required(2, core),
  users: required(3, list(count, USERS_MAX)),
  part: optional(4, json(VALUE_BYTES_MAX), undefined),
});

const sharedAnswer = union<SharedAnswer>("SharedAnswer", {
  numbers: { number: 1, fields: { from: required(1, count), to: required(2, count) } },
  pushed: { number: 2, fields: { ok: required(1, bool) } },
  taken: {
    number: 3,
    fields: { empty: required(1, bool), value: optional(2, json(VALUE_BYTES_MAX), undefined) },
  },
});

const sharedRequest = union<SharedRequest>("SharedRequest", {
  numbers: { number: 1, fields: { name: required(1, name), count: required(2, count) } },
  push: {
    number: 2,
    fields: { name: required(1, name), value: required(2, json(VALUE_BYTES_MAX)) },
  },
  take: { number: 3, fields: { name: required(1, name) } },
});

const setup = optional(2, json(VALUE_BYTES_MAX), undefined);
const command = union<RelayedCommand>("CoreCommand", {
  prepare: {
    number: 1,
    fields: {
      execution,
      workflow: required(2, name),
      share: required(3, share),
      context: required(4, json(VALUE_BYTES_MAX)),
    },
  },
  setup: { number: 2, fields: { execution } },
  start: { number: 3, fields: { execution, setup, planMs: optional(3, float, 0) } },
  acknowledge: {
    number: 4,
    fields: { execution, part: optional(2, nullable(name), null), frame: required(3, count) },
  },
  pause: { number: 5, fields: { execution } },
  resume: { number: 6, fields: { execution } },
  scale: { number: 7, fields: { execution, factor: required(2, float) } },
  level: { number: 8, fields: { execution, load: required(2, float) } },
  stop: { number: 9, fields: { execution } },
  lease: {
    number: 10,
    fields: {
      execution,
      name: required(2, name),
      from: required(3, count),
      to: required(4, count),
      last: required(5, bool),
      request: required(6, count),
    },
  },
  shared: { number: 11, fields: { id: required(1, count), answer: required(2, sharedAnswer) } },
  teardown: { number: 12, fields: { execution, setup } },
  askAgain: { number: 13, fields: { execution } },
});

const problem = struct<Problem>("Problem", {
  message: required(1, line),
  location: optional(2, nullable(line), null),
  mistake: required(3, bool),
});

const vitals = struct<CoreVitals>("CoreVitals", {
  cpu: required(1, float),
  residentBytes: required(2, count),
  activeUsers: required(3, count),
});

const counted = struct<CountedNote>("CountedNote", {
  workflow: required(1, name),
  topic: required(2, oneOf(COUNTED_TOPICS)),
  name: required(3, name),
  count: required(4, count),
});

const fault = struct<PartFault>("Fault", {
  gate: required(1, line),
  text: required(2, line),
  count: required(3, count),
  part: optional(4, nullable(name), null),
});

export const event = union<RelayedEvent>("CoreEvent", {
  loaded: { number: 1, fields: { manifests: required(1, json(MANIFESTS_BYTES_MAX)) } },
  loadFailed: { number: 2, fields: { problem: required(1, problem) } },
  prepared: { number: 3, fields: { execution } },
  setupDone: {
    number: 4,
    fields: { execution, value: optional(2, json(VALUE_BYTES_MAX), undefined) },
  },
  abort: { number: 5, fields: { execution, reason: required(2, line) } },
  failed: { number: 6, fields: { execution, problem: required(2, problem) } },
  frame: {
    number: 7,
    fields: {
      execution,
      part: optional(2, nullable(name), null),
      bytes: required(3, bytes(FRAME_BYTES_MAX)),
      health: required(4, vitals),
    },
  },
  lease: {
    number: 8,
    fields: {
      execution,
      name: required(2, name),
      size: required(3, count),
      request: required(4, count),
    },
  },
  shared: { number: 9, fields: { id: required(1, count), request: required(2, sharedRequest) } },
  log: {
    number: 10,
    fields: { line: required(1, line), isComplaint: optional(2, bool, false) },
  },
  unhandled: { number: 11, fields: { line: required(1, line) } },
  finished: {
    number: 12,
    fields: {
      execution,
      provided: required(2, json(VALUE_BYTES_MAX)),
      notes: optional(3, list(line, NOTES_MAX), []),
      counts: optional(4, list(counted, NOTES_MAX), []),
      faults: optional(5, list(fault, NOTES_MAX), []),
    },
  },
  tornDown: {
    number: 13,
    fields: { execution, faults: optional(2, list(fault, NOTES_MAX), []) },
  },
});

export const heartbeat = struct<Omit<WorkerHeartbeat, "kind">>("WorkerHeartbeat", {
  worker: required(1, worker),
  incarnation: required(2, count),
  cores: required(3, core),
  version: required(4, text(ID_BYTES_MAX)),
  draining: optional(5, bool, false),
  boot: optional(6, text(ID_BYTES_MAX), ""),
  running: optional(7, core, 0),
  advance: optional(8, count, 0),
  queued: optional(9, count, 0),
  accepting: optional(10, bool, true),
  jobCodeRights: optional(11, oneOf(JOB_CODE_RIGHTS), ""),
  executorUser: optional(12, text(ID_BYTES_MAX), ""),
  diskProblem: optional(13, text(ERROR_BYTES_MAX), ""),
});

export const extension = struct<Omit<Extension, "kind">>("Extension", {
  worker: required(1, worker),
  incarnation: required(2, count),
  number: required(3, count),
  reason: required(4, oneOf(EXTENSION_REASONS)),
  progress: required(5, float),
  estimatedMs: required(6, float),
  running: required(7, core),
});

export const extended = struct<Omit<Extended, "kind">>("Extended", {
  granted: required(1, bool),
  extensionMs: required(2, float),
  deadlineMs: required(3, float),
  remaining: required(4, count),
  denial: required(5, oneOf(EXTENSION_DENIALS)),
  message: optional(6, text(ERROR_BYTES_MAX), ""),
  isWarning: optional(7, bool, false),
  graceMs: optional(8, float, 0),
});

/** The answer to the opening of a worker's or a client's link. */
export const opened = struct<{
  readonly manager: string;
  readonly addresses: readonly string[];
}>("ManagerOpened", {
  manager: required(1, worker),
  /** Where all managers of the datacenter are found, this one included. */
  addresses: optional(2, list(address, MANAGERS_MAX), []),
});

export const announce = struct<Omit<Announce, "kind">>("Announce", {
  job: required(1, job),
  view: required(2, count),
});

export const drain = struct<Omit<Drain, "kind">>("Drain", {});

const runningCore = struct<RunningCore>("RunningCore", {
  core: required(1, core),
  token: optional(2, nullable(count), null),
});

export const announced = struct<Omit<Announced, "kind">>("Announced", {
  cores: required(1, list(runningCore, CORES_MAX)),
  events: optional(2, count, 0),
});

const order = union<Order>("Order", {
  open: {
    number: 1,
    fields: {
      cores: required(1, list(core, CORES_MAX)),
      entry: required(2, text(PATH_BYTES_MAX, 1)),
      files: required(3, artifacts),
      overrides: required(4, json(LINE_BYTES_MAX)),
    },
  },
  command: {
    number: 2,
    fields: {
      core: required(1, core),
      token: optional(2, nullable(count), null),
      command: required(3, command),
    },
  },
  release: { number: 3, fields: { cores: required(1, list(core, CORES_MAX)) } },
  kill: { number: 4, fields: { core: required(1, core) } },
});

export const orders = struct<Omit<Orders, "kind">>("Orders", {
  job: required(1, job),
  view: required(2, count),
  incarnation: required(3, count),
  first: required(4, count),
  orders: required(5, list(order, ROW_ENTRIES_MAX)),
});

const coreFigures = struct<CoreFigures>("CoreFigures", {
  core: required(1, core),
  requests: required(2, count),
  health: required(3, vitals),
  own: required(4, bytes(FRAME_BYTES_MAX)),
  heard: required(5, bool),
});

const workerEvent = union<WorkerEvent>("WorkerEvent", {
  core: { number: 1, fields: { core: required(1, core), event: required(2, event) } },
  coreLost: {
    number: 2,
    fields: {
      core: required(1, core),
      what: required(2, line),
      complete: optional(3, bool, false),
    },
  },
  figures: {
    number: 3,
    fields: {
      execution,
      part: optional(2, nullable(name), null),
      bytes: required(3, bytes(FRAME_BYTES_MAX)),
      cores: required(4, list(coreFigures, CORES_MAX)),
    },
  },
});

export const events = struct<Omit<Events, "kind">>("Events", {
  worker: required(1, worker),
  incarnation: required(2, count),
  job: required(3, job),
  view: required(4, count),
  first: required(5, count),
  events: required(6, list(workerEvent, ROW_ENTRIES_MAX)),
  wantsHeld: optional(7, bool, false),
});

const heldFigures = struct<HeldFigures>("HeldFigures", {
  execution,
  part: optional(2, nullable(name), null),
  frame: required(3, count),
});

export const taken = struct<Omit<Taken, "kind">>("Taken", {
  next: required(1, count),
  level: optional(2, count, 0),
  held: optional(3, list(heldFigures, ROW_ENTRIES_MAX), []),
});

/** Not the refusal of a connection: the requester learns the reason and continues. */
export const denial = struct<Omit<Refusal, "kind">>("Denial", {
  reason: required(1, oneOf(REFUSAL_REASONS)),
  message: required(2, text(ERROR_BYTES_MAX * 8)),
  address: optional(3, nullable(address), null),
  retryAfterMs: optional(4, nullable(counter(COUNTER_MAX)), null),
});
