/** Why a job on a cluster was cancelled whose submitter was interrupted: by it the next one knows it again. */
export const INTERRUPTED_REASON = "interrupted by its submitter";
