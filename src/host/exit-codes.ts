/** What a process of ours says to whoever started it: one table for all commands, docs/guide/running.md. */

export const EXIT_PASSED = 0;
export const EXIT_FAILURE = 1;
/** The workflow, the configuration or the arguments are wrong; nothing ran. */
export const EXIT_USAGE = 2;
/** `queue submit --wait` and `queue follow`: the task ended, but not well. */
export const EXIT_TASK_FAILED = 3;
/** A defect or a failed disk, as in sysexits: the supervisor starts us again, and the log says why. */
export const EXIT_DEFECT = 70;
/** The results cannot be trusted where `--require-trusted` asks for it, or show nothing either way. */
export const EXIT_UNTRUSTED = 98;
/** A threshold or the gate of checks failed. */
export const EXIT_VERDICT_FAILED = 99;
/** Interrupted; results are written. A node that was told to end twice does not wait for its work. */
export const EXIT_INTERRUPTED = 130;
