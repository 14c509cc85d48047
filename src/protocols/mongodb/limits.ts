/** Documents that one call inserts; the server takes 100,000. */
export const DOCUMENTS_MAX = 10_000;

/** Of the head of a message: its length, two numbers and what it is. */
export const HEAD_BYTES = 16;

/** The server takes no longer message. */
export const MESSAGE_BYTES_MAX = 48_000_000;

/** Rounds of a login: the longest that is spoken here has three. */
export const LOGIN_ROUNDS_MAX = 4;
