/** Limits of one Socket.IO connection. */

/** Binary attachments that one packet may announce. */
export const ATTACHMENTS_MAX = 1_024;
/** Nesting depth of lists and objects. */
export const DEPTH_MAX = 128;
/** Bytes buffered for sending before an emit fails with kind "resources". */
export const SEND_BUFFER_BYTES_MAX = 16 * 1024 * 1024;
