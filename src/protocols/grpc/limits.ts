/** Bounds of gRPC calls. */

/** Calls that one connection carries at once, also where the server allows more. */
export const CALLS_PER_CONNECTION_MAX = 100;
/** Bytes that wait in the socket before an upload pauses. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/** Files that a server describes itself by. */
export const DESCRIPTOR_FILES_MAX = 1_000;
/** Messages that one call sends. */
export const MESSAGES_MAX = 100_000;
