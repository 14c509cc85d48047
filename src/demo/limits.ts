/** Bounds of the demo target: it is exposed to arbitrary load, so no query can make it allocate much. */

/** Longest wait, stall or drip that a query may ask for. */
export const WAIT_MS_MAX = 60_000;

/** Largest body of /bytes, /chunked and /drip. */
export const MADE_BYTES_MAX = 64 * 1024 * 1024;

/** Largest body that /login, /echo and /graphql read; beyond it they answer 413. */
export const READ_BYTES_MAX = 1024 * 1024;

/** Longest chain of /redirect. */
export const REDIRECTS_MAX = 100;

/** Answers delayed by a stall; beyond it the target answers 503 at once. */
export const HELD_ANSWERS_MAX = 200_000;

/** Largest WebSocket message that /ws sends back. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;

/** Cookies that one /cookies/set answer sets. */
export const COOKIES_SET_MAX = 50;

/** Idle time after which a kept-alive connection is closed: above any think time of an example. */
export const KEEP_ALIVE_MS = 120_000;
