/**
 * Learns our own coordinate from measured round trips, like serf's coordinate client: Vivaldi's spring, a height for
 * the access link, a smoothed adjustment for what the plane cannot express, a median filter against stray samples, and
 * a weak pull to the origin against drift.
 *
 * Only our own coordinate moves. An invalid sample (not a number, not above zero, above ten seconds, wrong dimensions)
 * changes nothing at all. (AD-35.11, B-52g)
 */

import { assert } from "../../base/assert.ts";
import type { Random } from "../../base/random.ts";
import type { Coordinate } from "./coordinate.ts";
import { VIVALDI_DIMENSIONS } from "./coordinate.ts";

export interface VivaldiConfig {
  readonly dimensions: number;
  readonly errorMax: number;
  /** How fast the error and the position follow a sample. */
  readonly errorGain: number;
  readonly positionGain: number;
  readonly adjustmentWindow: number;
  readonly heightMinMs: number;
  /** Median of this many samples per peer. */
  readonly latencyFilterSize: number;
  readonly gravityRhoMs: number;
  readonly rttMaxMs: number;
}

export const VIVALDI_DEFAULTS: VivaldiConfig = {
  dimensions: VIVALDI_DIMENSIONS,
  errorMax: 1.5,
  errorGain: 0.25,
  positionGain: 0.25,
  adjustmentWindow: 20,
  heightMinMs: 0.01,
  latencyFilterSize: 3,
  gravityRhoMs: 150_000,
  rttMaxMs: 10_000,
};

/** Below this many milliseconds two points count as one. */
const ZERO_MS = 0.001;
/** Initial smoothed residual: we know nothing yet. */
const SIGMA_DEFAULT_MS = 50;
const RESIDUAL_GAIN = 0.25;

export class CoordinateEstimator {
  readonly #config: VivaldiConfig;
  readonly #random: Random;
  readonly #adjustments: number[] = [];
  #adjustmentAt = 0;
  #coordinate: Coordinate;

  constructor(config: VivaldiConfig, random: Random, start = originCoordinate(config)) {
    this.#config = config;
    this.#random = random;
    this.#coordinate = start;
  }

  get coordinate(): Coordinate {
    return this.#coordinate;
  }

  /** True when the sample was used. `rttMs` is already filtered by the caller's `LatencyFilter`. */
  update(peer: Coordinate, rttMs: number): boolean {
    if (!this.accepts(peer, rttMs)) return false;
    this.#followSpring(peer, Math.max(rttMs, ZERO_MS));
    this.#adjust(peer, rttMs);
    this.#pullToOrigin();
    if (!isPlausibleCoordinate(this.#coordinate)) this.#coordinate = originCoordinate(this.#config);
    return true;
  }

  accepts(peer: Coordinate, rttMs: number): boolean {
    if (!Number.isFinite(rttMs) || rttMs <= 0 || rttMs > this.#config.rttMaxMs) return false;
    return peer.position.length === this.#config.dimensions && isPlausibleCoordinate(peer);
  }

  estimateRttMs(peer: Coordinate): number | null {
    if (peer.position.length !== this.#config.dimensions || !isPlausibleCoordinate(peer))
      return null;
    return distanceMs(this.#coordinate, peer);
  }

  #followSpring(peer: Coordinate, rttMs: number): void {
    const own = this.#coordinate;
    const { errorGain, positionGain, errorMax } = this.#config;
    const predicted = distanceMs(own, peer);
    const wrongness = Math.abs(predicted - rttMs) / rttMs;
    const weight = own.error / Math.max(own.error + peer.error, 1e-6);
    const error = errorGain * weight * wrongness + own.error * (1 - errorGain * weight);
    const residual = Math.abs(rttMs - predicted);
    this.#coordinate = {
      ...this.#pushed(peer, positionGain * weight * (rttMs - predicted)),
      error: Math.min(errorMax, error),
      errorMs: own.errorMs + RESIDUAL_GAIN * (residual - own.errorMs),
      sampleCount: own.sampleCount + 1,
    };
  }

  #adjust(peer: Coordinate, rttMs: number): void {
    const window = this.#config.adjustmentWindow;
    if (window === 0) return;
    this.#adjustments[this.#adjustmentAt] = rttMs - rawDistanceMs(this.#coordinate, peer);
    this.#adjustmentAt = (this.#adjustmentAt + 1) % window;
    let sum = 0;
    for (const sample of this.#adjustments) sum += sample;
    this.#coordinate = { ...this.#coordinate, adjustment: sum / (2 * window) };
  }

  #pullToOrigin(): void {
    const origin = originCoordinate(this.#config);
    const away = distanceMs(origin, this.#coordinate) / this.#config.gravityRhoMs;
    // Rho is a time; the pull is quadratic in seconds, as published.
    this.#coordinate = this.#pushed(origin, -1_000 * away * away);
  }

  /** Our coordinate moved by `forceMs` away from `peer`. */
  #pushed(peer: Coordinate, forceMs: number): Coordinate {
    const own = this.#coordinate;
    assert(own.position.length === peer.position.length, "coordinates have equal dimensions");
    const { unit, magnitude } = this.#unitFrom(peer.position, own.position);
    const position = own.position.map((axis, index) => axis + (unit[index] ?? 0) * forceMs);
    let height = own.height;
    if (magnitude > ZERO_MS) {
      height += ((own.height + peer.height) * forceMs) / magnitude;
      height = Math.max(height, this.#config.heightMinMs);
    }
    return { ...own, position, height };
  }

  /** Direction from one point to another; a random one when they coincide. */
  #unitFrom(from: readonly number[], to: readonly number[]): Direction {
    const apart = to.map((axis, index) => axis - (from[index] ?? 0));
    const magnitude = magnitudeOf(apart);
    if (magnitude > ZERO_MS) return { unit: apart.map((axis) => axis / magnitude), magnitude };
    const drawn = to.map(() => this.#random.float() - 0.5);
    const length = magnitudeOf(drawn);
    if (length > 1e-9) return { unit: drawn.map((axis) => axis / length), magnitude: 0 };
    return { unit: to.map((_, index) => (index === 0 ? 1 : 0)), magnitude: 0 };
  }
}

interface Direction {
  readonly unit: readonly number[];
  readonly magnitude: number;
}

export function originCoordinate(config: VivaldiConfig): Coordinate {
  return {
    position: new Array<number>(config.dimensions).fill(0),
    height: config.heightMinMs,
    error: config.errorMax,
    errorMs: SIGMA_DEFAULT_MS,
    adjustment: 0,
    sampleCount: 0,
  };
}

/** Estimated round trip in milliseconds. */
export function distanceMs(a: Coordinate, b: Coordinate): number {
  const raw = rawDistanceMs(a, b);
  const adjusted = raw + a.adjustment + b.adjustment;
  return adjusted > 0 ? adjusted : raw;
}

function rawDistanceMs(a: Coordinate, b: Coordinate): number {
  let sum = 0;
  for (let i = 0; i < a.position.length; i++) {
    const apart = (a.position[i] ?? 0) - (b.position[i] ?? 0);
    sum += apart * apart;
  }
  return Math.sqrt(sum) + a.height + b.height;
}

function magnitudeOf(vector: readonly number[]): number {
  let sum = 0;
  for (const axis of vector) sum += axis * axis;
  return Math.sqrt(sum);
}

/** No location on earth is this far off; a coordinate beyond it would drag others along. */
const PLACE_MS_MAX = 1_000_000;

function isPlausibleCoordinate(coordinate: Coordinate): boolean {
  const { position, height, error, errorMs, adjustment } = coordinate;
  return [...position, height, error, errorMs, adjustment].every(
    (value) => Math.abs(value) <= PLACE_MS_MAX,
  );
}

/** Median of the last few samples of one peer; mutates and returns the list it is given. */
export function filterLatency(samples: number[], rttMs: number, size: number): number {
  samples.push(rttMs);
  if (samples.length > size) samples.shift();
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? rttMs;
}
