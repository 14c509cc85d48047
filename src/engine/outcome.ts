/**
 * How an iteration ended: all of it was done; a failed call or its author's wish ended it; its own
 * code threw; or the end of the plan cut it off. Exactly one of these.
 */
export type Outcome = "completed" | "ended" | "failed" | "interrupted";

/** What an iteration waited for when it was cut off: an answer, code of its author, or a declared pause. */
export type CutOff = "call" | "code" | "pause";
