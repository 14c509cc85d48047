/** Concurrent requests of one user on its connection. */
export const STREAMS_PER_CONNECTION_MAX = 100;

/** Idle time after which a connection closes; longer than calls usually take. */
export const IDLE_MS_MAX = 120_000;
