/** Calls of one virtual user at once. */
export const CALLS_MAX = 1_024;

/** Queues that one virtual user consumes. */
export const CONSUMERS_MAX = 256;

/** Messages of one consumer that wait to be received; as many as the inbox keeps. */
export const PREFETCH_MAX = 1_000;

/** Of a message that the server sends: more is refused by the driver before it is kept. */
export const FRAME_BYTES = 131_072;
