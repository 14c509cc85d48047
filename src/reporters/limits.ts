/** Bounds of everything that waits on its way to a back-end, with the reasons. */

/** A back-end that is gone for an hour at a frame every five seconds leaves some 700 payloads… */
export const QUEUE_ENTRIES_MAX = 1_000;
/** …and large frames reach this first: what a coordinator can spare beside its histograms. */
export const QUEUE_BYTES_MAX = 16 * 1_024 * 1_024;
/** Joined payloads of one request; common limits of servers are 1 to 32 MiB. */
export const BATCH_BYTES_MAX = 1_024 * 1_024;
/** Smaller bodies are not worth compressing. */
export const GZIP_BYTES_MIN = 1_024;
/** Of one request, from the first byte out to the last byte in. */
export const REQUEST_MS_MAX = 10_000;
/** Of all that is left when a run is over. */
export const CLOSE_MS_MAX = 10_000;
/** Of what is left when somebody will not wait: enough for a file or a server nearby. */
export const HURRY_MS_MAX = 500;
/** The first pause after a failure; it doubles. */
export const RETRY_MS_MIN = 500;
export const RETRY_MS_MAX = 30_000;
/** Longer wishes of a server are cut to this: a run is over by then, or goes on for long. */
export const RETRY_AFTER_MS_MAX = 60_000;
/** Once the run is over nobody waits longer between tries. */
export const CLOSING_RETRY_MS_MAX = 1_000;
/** Of the answer to a refused request. */
export const ANSWER_CHARACTERS_MAX = 300;
export const INTERVAL_MS_DEFAULT = 5_000;
export const INTERVAL_MS_MIN = 1_000;
export const INTERVAL_MS_MAX = 60_000;
/** How long a reporter may take to begin. */
export const START_MS_MAX = 10_000;
/** A file that a setting names holds a token or an address, not data. */
export const SECRET_BYTES_MAX = 64 * 1_024;
