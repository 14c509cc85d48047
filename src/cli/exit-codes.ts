/** What the process says to whoever called it. Documented in docs/guide/running.md. */

export const EXIT_PASSED = 0;
export const EXIT_FAILURE = 1;
/** The workflow or the arguments are wrong; nothing ran. */
export const EXIT_USAGE = 2;
/** A threshold or the gate of checks failed. */
export const EXIT_FAILED = 99;
/** Interrupted; results are written. */
export const EXIT_INTERRUPTED = 130;
