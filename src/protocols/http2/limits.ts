/** Bounds of HTTP/2 connections. node:http2 bounds the rest: header lists, settings, pings, memory. */

/** Also where the server allows more: RFC 9113 §6.5.2 advises at least this many. */
export const STREAMS_PER_CONNECTION_MAX = 100;
/** Answers are read at once or thrown away, so a wide window costs no memory and saves updates. */
export const RECEIVE_WINDOW_BYTES = 1024 * 1024;
/** How often a call is sent again that the server refused unseen, because the connection was closing. */
export const UNSEEN_RETRIES_MAX = 4;
