/** Of a file that is downloaded: it is held in memory. */
export const DOWNLOAD_BYTES_MAX = 256 * 1024 * 1024;

/** Of a path, as most servers have it. */
export const PATH_BYTES_MAX = 4_096;
