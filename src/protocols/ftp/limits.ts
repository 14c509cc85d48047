/** Largest file to download; it is kept in memory. */
export const DOWNLOAD_BYTES_MAX = 256 * 1024 * 1024;

/** Longest path, as on most servers. */
export const PATH_BYTES_MAX = 4_096;
