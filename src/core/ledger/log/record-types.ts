/**
 * The registry of record types, one byte on disk. Numbers are never reused: a record of a number that
 * is not here was written by a later version, and skipping it would lose what it says.
 */

export const RECORD_TYPES = {
  JOB_CREATED: 1,
  JOB_ACCEPTED: 2,
  JOB_PROGRESS_REPORTED: 3,
  JOB_CANCELLATION_REQUESTED: 4,
  JOB_CANCELLATION_ACKED: 5,
  JOB_COMPLETED: 6,
  JOB_FAILED: 7,
  JOB_TIMED_OUT: 8,
  IDEMPOTENCY_RESERVED: 16,
  IDEMPOTENCY_COMMITTED: 17,
  IDEMPOTENCY_REJECTED: 18,
  WORKFLOW_0: 32,
  WORKFLOW_1: 33,
  WORKFLOW_2: 34,
  WORKFLOW_3: 35,
  WORKFLOW_4: 36,
  WORKFLOW_5: 37,
  WORKFLOW_6: 38,
  WORKFLOW_7: 39,
  VSR_ENTRY: 64,
  VSR_VIEW_PROMISE: 65,
  VSR_NEW_VIEW: 66,
  VSR_COMMIT_MARK: 67,
  VSR_RECONFIGURE: 68,
  /** Where a checkpoint was taken: it stands for all records before this one. */
  CHECKPOINT_MARK: 72,
  STATE_ADVANCE: 240,
  BATCH: 241,
} as const;

const NAMES = new Map<number, string>(
  Object.entries(RECORD_TYPES).map(([name, number]) => [number, name]),
);

const KNOWN = Uint8Array.from({ length: 256 }, (_, type) => (NAMES.has(type) ? 1 : 0));

export function isKnownType(type: number): boolean {
  return KNOWN[type] === 1;
}

export function recordTypeName(type: number): string {
  return NAMES.get(type) ?? `UNKNOWN_${type}`;
}

/** Written by the log about itself; never handed to its users. */
export function isControlType(type: number): boolean {
  return type === RECORD_TYPES.BATCH || type === RECORD_TYPES.STATE_ADVANCE;
}

/** Job, idempotency and workflow events go through the commit pipeline; VSR records do not. (WAL-16) */
export function isPipelineType(type: number): boolean {
  return type < RECORD_TYPES.VSR_ENTRY;
}
