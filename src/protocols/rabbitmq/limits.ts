/** Concurrent calls of one virtual user. */
export const CALLS_MAX = 1_024;

/** Queues that one virtual user consumes. */
export const CONSUMERS_MAX = 256;

/** Unread messages of one consumer; as many as the inbox keeps. */
export const PREFETCH_MAX = 1_000;

/** Largest frame from the server; the driver rejects larger ones before buffering them. */
export const FRAME_BYTES = 131_072;
