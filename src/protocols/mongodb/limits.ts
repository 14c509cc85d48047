/** Documents inserted by one call; the server accepts 100,000. */
export const DOCUMENTS_MAX = 10_000;

/** Head of a message: its length, two numbers and its opcode. */
export const HEAD_BYTES = 16;

/** Largest message that the server accepts. */
export const MESSAGE_BYTES_MAX = 48_000_000;

/** Round trips of a login; the longest supported one has three. */
export const LOGIN_ROUNDS_MAX = 4;
