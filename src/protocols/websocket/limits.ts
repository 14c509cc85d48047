/** Bounds of one WebSocket connection. */

/** Messages that came unasked and wait for `receive`; beyond that the oldest are dropped and counted. */
export const QUEUE_MESSAGES_MAX = 1_024;
export const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
/** Calls of one virtual user that wait on one connection. */
export const WAITING_CALLS_MAX = 1_024;
/** Conversations on one connection, such as subscriptions of GraphQL. */
export const CHANNELS_MAX = 1_024;
/** What may wait to be sent before a send fails for want of resources. */
export const SEND_BUFFER_BYTES_MAX = 16 * 1024 * 1024;
/** After our close frame, how long to wait for the server's. */
export const CLOSE_TIMEOUT_MS = 5_000;
/** Connections of one virtual user; one that opens in every iteration must also close. */
export const SOCKETS_PER_USER_MAX = 256;
