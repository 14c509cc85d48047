/** Deadline extension requests of stalled workers, and the managers' answers. */

/** Reason for the request. (AD-26.11) */
export const EXTENSION_REASONS = ["long_workflow", "gc_pause", "resource_contention"] as const;
type ExtensionReason = (typeof EXTENSION_REASONS)[number];

/** Reason for a denial. Empty on the wire when the extension is granted. (AD-26.8) */
export const EXTENSION_DENIALS = [
  "",
  "max_extensions_exceeded",
  "no_progress",
  "suspect",
  "invalid",
] as const;
export type ExtensionDenial = (typeof EXTENSION_DENIALS)[number];

export interface ExtensionRequest {
  /** Increases within one incarnation of the worker. A repeated request keeps its number. */
  readonly number: number;
  readonly reason: ExtensionReason;
  /** Progress of the executions through their plans, 0 to 1, as last reported by their cores. (C10-32) */
  readonly progress: number;
  /** Estimated milliseconds until completion. */
  readonly estimatedMs: number;
  /** Executions in progress. */
  readonly running: number;
}

export interface ExtensionAnswer {
  readonly granted: boolean;
  readonly extensionMs: number;
  /** Milliseconds from now; 0 if the deadline has passed. */
  readonly deadlineMs: number;
  /** Grants left in this series. */
  readonly remaining: number;
  readonly denial: ExtensionDenial;
  /** Human-readable explanation. */
  readonly message: string;
  /** Few grants are left. Set once per series. */
  readonly isWarning: boolean;
  /** Milliseconds left to save state when no grant is left; 0 if grants are left or saving is not allowed. */
  readonly graceMs: number;
}

/**
 * Asks every manager to extend the deadline of a worker that is busy but not advancing. Answered by `Extended`.
 * (AD-26.1)
 */
export interface Extension extends ExtensionRequest {
  readonly kind: "extension";
  readonly worker: string;
  readonly incarnation: number;
}

export interface Extended extends ExtensionAnswer {
  readonly kind: "extended";
}
