/**
 * Whether a node gets work, by three signals that never stand for one another: it answers, it takes work, and its
 * work advances. (AD-19)
 *
 *     live  ready  progress            decision
 *     no    any    any                 evict
 *     yes   any    stuck               drain; evict when its time is up too
 *     yes   no     any other           drain
 *     yes   yes    slow, degraded      investigate
 *     yes   yes    idle, normal        route
 */

import type { HealthLabel } from "../views.ts";

/** Of what a node did in an interval against what it does usually. (AD-19.3) */
export const PROGRESS_BANDS = ["idle", "normal", "slow", "degraded", "stuck"] as const;
export type ProgressBand = (typeof PROGRESS_BANDS)[number];

/** `drain`: nothing new, what it has goes on; `investigate`: new work only where nobody else has room. */
export type HealthDecision = "route" | "investigate" | "drain" | "evict";

export interface HealthSignals {
  readonly live: boolean;
  readonly ready: boolean;
  readonly progress: ProgressBand;
  /** It was stuck for longer than it is waited for. (AD-19.7) */
  readonly isOverdue: boolean;
}

const NORMAL_FROM = 0.8;
const SLOW_FROM = 0.3;
/** Nobody is taken for live after so long without an answer, or so many questions without one. (AD-19.1) */
export const LIVE_MS = 30_000;
const MISSES_MAX = 3;
/** Fewer than these fail each for itself. (AD-19.32) */
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
 * More than half fail at once: whoever sees that is more likely to be cut off itself than they are to be broken, and
 * gives up none of them. (AD-19.31, AD-19.32)
 */
export function isSystemic(failing: number, tracked: number): boolean {
  return tracked >= SYSTEMIC_MIN && failing > tracked / 2;
}
