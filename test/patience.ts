/**
 * How long a test waits for what real processes do before it calls it a failure. Far above what any of
 * it takes, also on two cores with a load of 20; below the ceiling of vitest.config.ts, so that the
 * failure names what did not happen.
 */
export const PATIENCE_MS = 240_000;
