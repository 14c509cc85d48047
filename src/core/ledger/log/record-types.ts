/**
 * The registry of record types, one byte on disk. A record with an unknown number was written by another version, and
 * skipping it would lose data.
 *
 * Numbers are never reused. 1, 2, 4 to 8, 16 to 18, 32 to 39 and 240 were given to records of earlier builds and stay
 * taken.
 */

export const RECORD_TYPES = {
  /** Kept by the node that received the report; not replicated. (EVT-3) */
  JOB_PROGRESS_REPORTED: 3,
  VSR_ENTRY: 64,
  VSR_VIEW_PROMISE: 65,
  VSR_NEW_VIEW: 66,
  VSR_COMMIT_MARK: 67,
  VSR_RECONFIGURE: 68,
  /** A group with two committed histories is stopped for good. */
  VSR_BROKEN: 69,
  /** Data directory behind a peer's name. */
  PEER_IDENTITY: 70,
  /** Where a checkpoint was taken: it covers all records before this one. */
  CHECKPOINT_MARK: 72,
  /** Audit trail of requests; only in separate audit logs. (SWIM-12) */
  AUDIT_ENTRY: 80,
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
  return type === RECORD_TYPES.BATCH;
}
