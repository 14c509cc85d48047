/** A browser that the preparation started and no user came for ends by itself. */
export const UNUSED_MS_MAX = 30_000;

/** So long a browser waits for another user after the last one has gone: starting one takes a second. */
export const IDLE_MS_MAX = 1_000;

/** Until a page has painted what it loaded, and its figures are read; hidden pages never paint. */
export const PAINT_MS_MAX = 250;

/** Of a selector, a text to type or an address. */
export const TEXT_CHARACTERS_MAX = 1_000_000;
