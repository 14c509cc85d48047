/** Limits of gRPC calls. */

/** Concurrent calls on one connection, even where the server allows more. */
export const CALLS_PER_CONNECTION_MAX = 100;
/** Bytes buffered in the socket before an upload pauses. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/** Descriptor files that a server may return by reflection. */
export const DESCRIPTOR_FILES_MAX = 1_000;
/** Messages that one call sends. */
export const MESSAGES_MAX = 100_000;
