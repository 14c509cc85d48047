/** What a worker that stands still asks of its managers, and what it is answered. */

/** Why a worker asks. (AD-26.11) */
export const EXTENSION_REASONS = ["long_workflow", "gc_pause", "resource_contention"] as const;
type ExtensionReason = (typeof EXTENSION_REASONS)[number];

/** Why it gets nothing; an empty text on the wire: it was granted. (AD-26.8) */
export const EXTENSION_DENIALS = [
  "",
  "max_extensions_exceeded",
  "no_progress",
  "suspect",
  "invalid",
] as const;
export type ExtensionDenial = (typeof EXTENSION_DENIALS)[number];

export interface ExtensionRequest {
  /** Of this life of the worker, rising; the same when it is asked again. */
  readonly number: number;
  readonly reason: ExtensionReason;
  /** How far its executions are in their plans as their cores last told, from 0 to 1. (C10-32) */
  readonly progress: number;
  /** Milliseconds until it expects to be through. */
  readonly estimatedMs: number;
  /** Executions under way. */
  readonly running: number;
}

export interface ExtensionAnswer {
  readonly granted: boolean;
  readonly extensionMs: number;
  /** From now on; 0: it has passed. */
  readonly deadlineMs: number;
  /** Grants that are left in this series. */
  readonly remaining: number;
  readonly denial: ExtensionDenial;
  /** For people. */
  readonly message: string;
  /** Few are left: said once in a series. */
  readonly isWarning: boolean;
  /** None is left: so long from now it may still save what it has; 0: it may not, or some are left. */
  readonly graceMs: number;
}

/**
 * To every manager, from a worker that is at work and does not advance: it asks to be waited for. The answer is
 * `Extended`. (AD-26.1)
 */
export interface Extension extends ExtensionRequest {
  readonly kind: "extension";
  readonly worker: string;
  readonly incarnation: number;
}

export interface Extended extends ExtensionAnswer {
  readonly kind: "extended";
}
