/** Of one answer of the server, all of its lines. */
export const ANSWER_BYTES_MAX = 64 * 1024;

/** Of the recipients of one mail. */
export const RECIPIENTS_MAX = 1_000;
