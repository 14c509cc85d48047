/** Bounds of everything queued for a back-end, with the reasons. */

/** An hour's outage of a back-end at a frame every five seconds leaves some 700 payloads… */
export const QUEUE_ENTRIES_MAX = 1_000;
/** …and large frames reach this first: memory a coordinator can spare beside its histograms. */
export const QUEUE_BYTES_MAX = 16 * 1_024 * 1_024;
/** Joined payloads per request; common limits of servers are 1 to 32 MiB. */
export const BATCH_BYTES_MAX = 1_024 * 1_024;
/** Smaller bodies are not worth compressing. */
export const GZIP_BYTES_MIN = 1_024;
/** Time for one request, from the first byte out to the last byte in. */
export const REQUEST_MS_MAX = 10_000;
/** Time for everything left when a run has finished. */
export const CLOSE_MS_MAX = 10_000;
/** Time for what is left when the user interrupts the wait: enough for a file or a server nearby. */
export const HURRY_MS_MAX = 500;
/** First pause after a failure; it doubles. */
export const RETRY_MS_MIN = 500;
export const RETRY_MS_MAX = 30_000;
/** Caps the server's `Retry-After`: a run has finished by then, or goes on for long. */
export const RETRY_AFTER_MS_MAX = 60_000;
/** Longest pause between retries once the run has finished. */
export const CLOSING_RETRY_MS_MAX = 1_000;
/** Characters quoted from the answer to a rejected request. */
export const ANSWER_CHARACTERS_MAX = 300;
export const INTERVAL_MS_DEFAULT = 5_000;
export const INTERVAL_MS_MIN = 1_000;
export const INTERVAL_MS_MAX = 60_000;
/** Time for a reporter to start. */
export const START_MS_MAX = 10_000;
/** A file that a setting names holds a token or an address, not data. */
export const SECRET_BYTES_MAX = 64 * 1_024;
