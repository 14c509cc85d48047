/** Bounds of one Socket.IO connection. */

/** Pieces of bytes that one packet may announce. */
export const ATTACHMENTS_MAX = 1_024;
/** Lists and objects inside each other. */
export const DEPTH_MAX = 128;
/** What may wait to be sent before an emit fails for want of resources. */
export const SEND_BUFFER_BYTES_MAX = 16 * 1024 * 1024;
