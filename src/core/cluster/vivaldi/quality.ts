/**
 * How far a coordinate may be trusted, and what follows for routing and timeouts. Missing or poor
 * coordinates never exclude a peer: the defaults are conservative. (AD-35)
 */

import type { Role } from "../../base/ids.ts";
import type { Coordinate } from "./coordinate.ts";
import { distanceMs, SIGMA_DEFAULT_MS } from "./estimator.ts";

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

/** 0 (unusable) to 1. */
export function coordinateQuality(sampleCount: number, errorMs: number, staleMs: number): number {
  const samples = Math.min(1, sampleCount / SAMPLES_FOR_ROUTING_MIN);
  const error = Math.min(1, ERROR_GOOD_MS / Math.max(errorMs, 1));
  const fresh = staleMs <= COORDINATE_TTL_MS ? 1 : COORDINATE_TTL_MS / staleMs;
  return clamp(samples * error * fresh, 0, 1);
}

/** Upper confidence bound of the round trip between two coordinates, or of an unknown one. */
export function rttUpperBoundMs(local: Coordinate | null, remote: Coordinate | null): number {
  if (local === null || remote === null) return upperBoundMs(RTT_DEFAULT_MS, SIGMA_DEFAULT_MS);
  return upperBoundMs(distanceMs(local, remote), local.errorMs + remote.errorMs);
}

export function upperBoundMs(distance: number, sigma: number): number {
  const bounded = clamp(sigma, SIGMA_MIN_MS, SIGMA_MAX_MS);
  return clamp(distance + K_SIGMA * bounded, RTT_MIN_MS, RTT_MAX_MS);
}

/** Cap of the load multiplier by the peer's role. (AD-35.21) */
export const LOAD_MULTIPLIER_MAX: Readonly<Record<Role, number>> = {
  gate: 3,
  manager: 5,
  worker: 10,
};

export interface AdaptiveTimeout {
  readonly baseMs: number;
  readonly rttMs: number;
  readonly load: number;
  /** Unitless error of the coordinate the round trip came from; 0 when it was measured. */
  readonly error: number;
  readonly role: Role;
}

/** base x latency x load x confidence, capped; a worker's latency is not considered. (AD-35.40-43) */
export function adaptiveTimeoutMs(input: AdaptiveTimeout): number {
  const load = clamp(input.load, 1, LOAD_MULTIPLIER_MAX[input.role]);
  if (input.role === "worker") return Math.min(ADAPTIVE_TIMEOUT_MAX_MS, input.baseMs * load);
  const latency = latencyMultiplier(input.rttMs);
  const confidence = 1 + input.error / 10;
  return Math.min(ADAPTIVE_TIMEOUT_MAX_MS, input.baseMs * latency * load * confidence);
}

export function latencyMultiplier(rttMs: number): number {
  return clamp(rttMs / LATENCY_REFERENCE_MS, 1, LATENCY_MULTIPLIER_MAX);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
