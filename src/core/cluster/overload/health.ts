/**
 * Decides whether a node gets work, by three independent signals: it answers, it accepts work, and its work advances.
 * (AD-19)
 *
 *     live  ready  progress            decision
 *     no    any    any                 evict
 *     yes   any    stuck               drain; evict when its time is up too
 *     yes   no     any other           drain
 *     yes   yes    slow, degraded      investigate
 *     yes   yes    idle, normal        route
 */

import type { HealthLabel } from "../views.ts";

/** Work done in an interval compared with the usual rate. (AD-19.3) */
export const PROGRESS_BANDS = ["idle", "normal", "slow", "degraded", "stuck"] as const;
export type ProgressBand = (typeof PROGRESS_BANDS)[number];

/** `drain`: no new work, running work continues; `investigate`: new work only when no other node has capacity. */
export type HealthDecision = "route" | "investigate" | "drain" | "evict";

export interface HealthSignals {
  readonly live: boolean;
  readonly ready: boolean;
  readonly progress: ProgressBand;
  /** The node was stuck beyond its deadline. (AD-19.7) */
  readonly isOverdue: boolean;
}

const NORMAL_FROM = 0.8;
const SLOW_FROM = 0.3;
/** A node counts as dead after this long without an answer, or this many unanswered requests. (AD-19.1) */
export const LIVE_MS = 30_000;
const MISSES_MAX = 3;
/** Below this number, failures count as independent. (AD-19.32) */
const SYSTEMIC_MIN = 3;

export function isLive(silentMs: number, misses: number): boolean {
  return silentMs < LIVE_MS && misses < MISSES_MAX;
}

/** `expected`: 0 until it is known, which makes everything normal. */
export function progressOf(hasWork: boolean, actual: number, expected: number): ProgressBand {
  if (!hasWork) return "idle";
  if (expected <= 0) return "normal";
  const ratio = actual / expected;
  if (ratio >= NORMAL_FROM) return "normal";
  if (ratio >= SLOW_FROM) return "slow";
  return ratio > 0 ? "degraded" : "stuck";
}

export function decisionOf({ isOverdue, live, progress, ready }: HealthSignals): HealthDecision {
  if (!live) return "evict";
  if (progress === "stuck") return isOverdue ? "evict" : "drain";
  if (!ready) return "drain";
  return progress === "slow" || progress === "degraded" ? "investigate" : "route";
}

export function labelOf({ live, progress, ready }: HealthSignals): HealthLabel {
  if (!live) return "suspect";
  if (progress === "stuck") return "stuck";
  if (progress === "slow" || progress === "degraded") return ready ? "slow" : "degraded";
  return ready ? "healthy" : "busy";
}

/**
 * True when more than half fail at once: the observer itself is then more likely to be cut off, and gives up none of
 * them. (AD-19.31, AD-19.32)
 */
export function isSystemic(failing: number, tracked: number): boolean {
  return tracked >= SYSTEMIC_MIN && failing > tracked / 2;
}
