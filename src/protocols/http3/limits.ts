/** Requests of one user that share its connection at once. */
export const STREAMS_PER_CONNECTION_MAX = 100;

/** A connection on which nothing happens for so long ends: longer than calls usually take. */
export const IDLE_MS_MAX = 120_000;
