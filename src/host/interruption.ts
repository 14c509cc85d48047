/** Reason of a cancel whose submitter was interrupted: the next attempt recognises it. */
export const INTERRUPTED_REASON = "interrupted by its submitter";
