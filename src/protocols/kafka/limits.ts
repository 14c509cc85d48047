/** Messages of one call. */
export const MESSAGES_MAX = 10_000;

/** Subscriptions of one virtual user: each has connections and a group of its own. */
export const SUBSCRIPTIONS_MAX = 16;

/** Calls of one virtual user at once. */
export const CALLS_MAX = 1_024;

/** How long a broker may hold back an empty answer to a consumer: what it has comes at once. */
export const FETCH_WAIT_MS_MAX = 500;
