/** Longest reply of the server, over all its lines. */
export const ANSWER_BYTES_MAX = 64 * 1024;

/** Recipients of one mail. */
export const RECIPIENTS_MAX = 1_000;
