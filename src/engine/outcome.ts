/**
 * How an iteration ended: all of it was done; a failed call or its author's wish ended it; its own
 * code threw; or the end of the plan cut it off. Exactly one of these.
 */
export type Outcome = "completed" | "ended" | "failed" | "interrupted";
