/** Bounds of HTTP/2 connections. Those of header blocks are beside their decoder. */

/** Also where the server allows more: RFC 9113 §6.5.2 advises at least this many. */
export const STREAMS_PER_CONNECTION_MAX = 100;
/** Answers are read at once or thrown away, so a wide window costs no memory and saves updates. */
export const RECEIVE_WINDOW_BYTES = 1024 * 1024;
/** How often a call is sent again that the server refused unseen, because the connection was closing. */
export const UNSEEN_RETRIES_MAX = 4;
/** The longest frame that is taken, and sent; what HTTP/2 begins with, and we ask for no more. */
export const FRAME_BYTES_MAX = 16 * 1024;
/** Of one answer, over all its frames. */
export const HEADER_BLOCK_BYTES_MAX = 64 * 1024;
/** A header block may come in so many frames: empty ones cost no bytes, but time. */
export const HEADER_FRAMES_MAX = 64;
/** Frames without progress (settings, pings, empty data) since the last one that made some. */
export const IDLE_FRAMES_MAX = 1_000;
export const READ_BUFFER_BYTES = 64 * 1024;
