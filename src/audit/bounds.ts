/** Retention of an audit log. Separate, so that reading a command line does not load the log. */

export interface AuditBounds {
  /** All files together; at least `AUDIT_BYTES_MIN`. */
  readonly bytesMax: number;
  /** Segments whose newest entry is older are removed. */
  readonly ageMsMax: number;
}

export const AUDIT_SEGMENT_BYTES = 1_048_576;
/** The active one, the one prepared behind it, and one to read. */
export const AUDIT_SEGMENTS_MIN = 3;
export const AUDIT_BYTES_MIN = AUDIT_SEGMENTS_MIN * AUDIT_SEGMENT_BYTES;

export const AUDIT_DEFAULTS: AuditBounds = {
  /** More than 100,000 changes of members. */
  bytesMax: 33_554_432,
  ageMsMax: 90 * 86_400_000,
};
