/** How distance and load of a peer stretch the time it is given. (AD-35) */

import type { Role } from "../../base/ids.ts";

const LATENCY_REFERENCE_MS = 10;
const LATENCY_MULTIPLIER_MAX = 10;

/** Cap of the load multiplier by the peer's role. (AD-35.21) */
export const LOAD_MULTIPLIER_MAX: Readonly<Record<Role, number>> = {
  gate: 3,
  manager: 5,
  worker: 10,
};

export function latencyMultiplier(rttMs: number): number {
  return clamp(rttMs / LATENCY_REFERENCE_MS, 1, LATENCY_MULTIPLIER_MAX);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
