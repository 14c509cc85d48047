/**
 * When many fall at once, the fault is probably near the observer. Two guards share the idea: the
 * correlation level over datacenters (C40-3) and the hold on mass eviction of nodes (AD-19.31).
 */

export type CorrelationLevel = "NONE" | "LOW" | "MEDIUM" | "HIGH";

export const CORRELATION_WINDOW_MS = 30_000;

/** `turnedBadAt`: when each datacenter that is bad now turned so. */
export function correlationLevel(
  datacenterCount: number,
  turnedBadAt: readonly number[],
  now: number,
): CorrelationLevel {
  const recent = turnedBadAt.filter((at) => now - at <= CORRELATION_WINDOW_MS).length;
  if (recent < 2) return "NONE";
  const share = recent / Math.max(1, datacenterCount);
  if (share > 1 / 2) return "HIGH";
  return share >= 1 / 3 ? "MEDIUM" : "LOW";
}

export function holdsEviction(level: CorrelationLevel): boolean {
  return level === "MEDIUM" || level === "HIGH";
}

/** Fewer tracked nodes than this never hold: one of one is no pattern. (AD-19.32) */
export const HOLD_NODES_MIN = 3;

export interface EvictionVerdict {
  readonly evict: boolean;
  readonly reason: "criteria met" | "systemic failure, held";
}

/** More than half of the tracked nodes failing together are not evicted. */
export function evictionVerdict(trackedCount: number, failingCount: number): EvictionVerdict {
  const systemic = trackedCount >= HOLD_NODES_MIN && failingCount / trackedCount > 1 / 2;
  if (systemic) return { evict: false, reason: "systemic failure, held" };
  return { evict: true, reason: "criteria met" };
}
