/**
 * Outcome of an iteration: completed; ended by a failed call or its author; failed in its own code; or interrupted by
 * the end of the plan. Exactly one of these.
 */
export type Outcome = "completed" | "ended" | "failed" | "interrupted";

/** State of an iteration when it was cut off: awaiting an answer, in code of its author, or in a declared pause. */
export type CutOff = "call" | "code" | "pause";
