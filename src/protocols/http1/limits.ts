/** Limits on the cost of one response. A server that exceeds them loses its connection. */

/** Status line and headers together; nginx and Node allow servers 8 to 16 KiB by default. */
export const HEAD_BYTES_MAX = 64 * 1024;
/** Interim (1xx) responses before the final one. */
export const INTERIM_ANSWERS_MAX = 16;
/** Digits of a chunk size: 13 hex digits stay inside exact integers. */
export const CHUNK_SIZE_DIGITS_MAX = 13;
/** Extensions of all chunks of one body, and its trailers: skipped, and limited like a head. */
export const CHUNK_EXTENSION_BYTES_MAX = 16 * 1024;
export const TRAILER_BYTES_MAX = 64 * 1024;
/** One read buffer per thread; every read callback is done with it before the next. */
export const READ_BUFFER_BYTES = 64 * 1024;
