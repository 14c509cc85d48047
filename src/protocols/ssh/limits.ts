/** Output of a program, including its errors; a longer one fails the call. */
export const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** Largest file to fetch; it is kept in memory. */
export const FILE_BYTES_MAX = 256 * 1024 * 1024;
