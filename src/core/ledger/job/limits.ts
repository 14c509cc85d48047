/**
 * Size limits of jobs and their events. Larger ones are rejected on entry, before anything is logged, because every
 * replica stores every byte.
 */

import { NODE_ID_BYTES_MAX } from "../../base/ids.ts";

/** Text sizes are UTF-8 bytes. */
export const JOB_ID_BYTES_MAX = 96;
/** The creation of a job is named after it: `create/` and its id. */
export const EVENT_ID_BYTES_MAX = 7 + JOB_ID_BYTES_MAX;
export const DC_ID_BYTES_MAX = 64;
export const REASON_BYTES_MAX = 1_024;
export const REQUESTOR_BYTES_MAX = 256;
export const ERROR_BYTES_MAX = 4_096;
export const FINAL_STATUS_BYTES_MAX = 64;
export const TIMEOUT_TYPE_BYTES_MAX = 64;

/** The opaque description of the work. A quarter of a job's replication window (VSR-33: 4 MB). */
export const JOB_SPEC_BYTES_MAX = 1_048_576;
export const AGGREGATE_METRICS_BYTES_MAX = 65_536;
/** Datacenters of one job, assigned and joined. */
export const JOB_DCS_MAX = 256;

/** Limit of the value a set-up returns to all cores of its workflow. */
export const SET_UP_VALUE_BYTES_MAX = 65_536;
/** Limit of all set-up values of one job together. */
export const SET_UP_BYTES_MAX = 262_144;
export const SET_UPS_MAX = 64;
export const WORKFLOW_NAME_BYTES_MAX = 128;
/** SHA-256, of what is kept elsewhere. */
export const DIGEST_BYTES = 32;
/** A run scaled to a hundred times its plan. */
export const PERMILLE_MAX = 100_000;

/** An event with every field at its limit, plus space for its numbers. */
export const EVENT_BYTES_MAX =
  JOB_SPEC_BYTES_MAX + JOB_DCS_MAX * (DC_ID_BYTES_MAX + 2) + NODE_ID_BYTES_MAX + 4_096;

/** Events of one job that its state remembers, to know duplicates and to show what happened. */
export const TRAIL_EVENTS_MAX = 1_024;
/**
 * Earlier events, known by a fingerprint of 8 bytes. A job with this many accepts only its end: per-second reports of a
 * run do not belong here. (EVT-3)
 */
export const FORGOTTEN_EVENTS_MAX = 65_536;
/** How one datacenter was dispatched to, what it started with, what it gave. */
const RUN_BYTES_MAX = SET_UP_BYTES_MAX + SET_UPS_MAX * 256 + JOB_DCS_MAX * 768;
/** A snapshot of one job: its description, its datacenters (assigned, accepted, acked), its run and events. */
export const JOB_STATE_BYTES_MAX =
  2 * EVENT_BYTES_MAX + RUN_BYTES_MAX + TRAIL_EVENTS_MAX * 256 + FORGOTTEN_EVENTS_MAX * 8;
