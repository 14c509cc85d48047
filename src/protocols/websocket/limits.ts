/** Limits of one WebSocket connection. */

/** Unsolicited messages that wait for `receive`; beyond that the oldest are dropped and counted. */
export const QUEUE_MESSAGES_MAX = 1_024;
export const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
/** Calls of one virtual user that wait on one connection. */
export const WAITING_CALLS_MAX = 1_024;
/** Conversations on one connection, such as subscriptions of GraphQL. */
export const CHANNELS_MAX = 1_024;
/** Bytes buffered for sending before a send fails with kind "resources". */
export const SEND_BUFFER_BYTES_MAX = 16 * 1024 * 1024;
/** How long to wait for the server's close frame after our own. */
export const CLOSE_TIMEOUT_MS = 5_000;
/** Connections of one virtual user; a function that opens one in every iteration must also close it. */
export const SOCKETS_PER_USER_MAX = 256;
