/** Limits of HTTP/2 connections. Those of header blocks are beside their decoder. */

/** Applies even where the server allows more; RFC 9113 §6.5.2 recommends at least this many. */
export const STREAMS_PER_CONNECTION_MAX = 100;
/** Responses are read at once or discarded, so a wide window costs no memory and saves updates. */
export const RECEIVE_WINDOW_BYTES = 1024 * 1024;
/** Retries of a call that the server refused unprocessed, because the connection was closing. */
export const UNSEEN_RETRIES_MAX = 4;
/** Longest frame to accept and send: the initial value of HTTP/2, which is never raised. */
export const FRAME_BYTES_MAX = 16 * 1024;
/** Header block of one response, over all its frames. */
export const HEADER_BLOCK_BYTES_MAX = 64 * 1024;
/** Frames of one header block; empty ones cost no bytes, but time. */
export const HEADER_FRAMES_MAX = 64;
/** Frames without progress (settings, pings, empty data) since the last one with progress. */
export const IDLE_FRAMES_MAX = 1_000;
export const READ_BUFFER_BYTES = 64 * 1024;
