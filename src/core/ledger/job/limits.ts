/**
 * What a job and its events may weigh. A larger one is refused where it enters, before anything is
 * logged: every replica stores every byte of it.
 */

import { NODE_ID_BYTES_MAX } from "../../base/ids.ts";

/** Text sizes are UTF-8 bytes. */
export const EVENT_ID_BYTES_MAX = 64;
export const JOB_ID_BYTES_MAX = 96;
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

/** An event with everything at its limit, and room for its numbers. */
export const EVENT_BYTES_MAX =
  JOB_SPEC_BYTES_MAX + JOB_DCS_MAX * (DC_ID_BYTES_MAX + 2) + NODE_ID_BYTES_MAX + 4_096;

/** Events of one job that its state remembers, to know duplicates and to show what happened. */
export const TRAIL_EVENTS_MAX = 1_024;
/**
 * Events before those, known by a fingerprint of 8 bytes. A job that has had so many takes nothing more
 * but its end: what a run reports every second does not belong here. (EVT-3)
 */
export const FORGOTTEN_EVENTS_MAX = 65_536;
/** A snapshot of one job: its description, its datacenters (assigned, accepted, acked), its events. */
export const JOB_STATE_BYTES_MAX =
  2 * EVENT_BYTES_MAX + TRAIL_EVENTS_MAX * 256 + FORGOTTEN_EVENTS_MAX * 8;
