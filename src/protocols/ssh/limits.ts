/** Of what a program says, its errors included; more fails the call. */
export const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** Of a file that is fetched: it is held in memory. */
export const FILE_BYTES_MAX = 256 * 1024 * 1024;
