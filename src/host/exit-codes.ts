/** Exit codes of all commands; docs/guide/running.md has the table. */

export const EXIT_PASSED = 0;
export const EXIT_FAILURE = 1;
/** The workflow, the configuration or the arguments are wrong; nothing ran. */
export const EXIT_USAGE = 2;
/** `queue submit --wait` and `queue follow`: the task finished without success. */
export const EXIT_TASK_FAILED = 3;
/** A defect or a failed disk, as in sysexits: the supervisor restarts us, and the log says why. */
export const EXIT_DEFECT = 70;
/** The results are untrusted where `--require-trusted` demands trust, or inconclusive. */
export const EXIT_UNTRUSTED = 98;
/** A threshold or the gate of checks failed. */
export const EXIT_VERDICT_FAILED = 99;
/** Interrupted; results are written. A node stopped twice does not wait for its work. */
export const EXIT_INTERRUPTED = 130;
