/**
 * How far a coordinate may be trusted, and what follows for routing and timeouts. Missing or poor
 * coordinates never exclude a peer: the defaults are conservative. (AD-35)
 */

import type { Role } from "../../base/ids.ts";

export const K_SIGMA = 2;
export const RTT_DEFAULT_MS = 100;
export const SIGMA_MIN_MS = 1;
export const SIGMA_MAX_MS = 500;
export const RTT_MIN_MS = 1;
export const RTT_MAX_MS = 10_000;
export const SAMPLES_FOR_ROUTING_MIN = 10;
export const ERROR_GOOD_MS = 20;
export const COORDINATE_TTL_MS = 300_000;
export const LATENCY_REFERENCE_MS = 10;
export const LATENCY_MULTIPLIER_MAX = 10;
export const ADAPTIVE_TIMEOUT_MAX_MS = 120_000;

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
