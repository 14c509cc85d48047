/** Idle time after which a browser started by the preparation, but used by no one, exits. */
export const UNUSED_MS_MAX = 30_000;

/** How long a browser waits for another user after the last one has left; starting one takes a second. */
export const IDLE_MS_MAX = 1_000;

/** How long to wait for a page to paint before its metrics are read; hidden pages never paint. */
export const PAINT_MS_MAX = 250;

/** Longest selector, text to type or address. */
export const TEXT_CHARACTERS_MAX = 1_000_000;
