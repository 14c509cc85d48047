/** Messages per call. */
export const MESSAGES_MAX = 10_000;

/** Subscriptions of one virtual user; each has its own connections and group. */
export const SUBSCRIPTIONS_MAX = 16;

/** Concurrent calls of one virtual user. */
export const CALLS_MAX = 1_024;

/** How long a broker may delay an empty response to a consumer; available messages are sent at once. */
export const FETCH_WAIT_MS_MAX = 500;
