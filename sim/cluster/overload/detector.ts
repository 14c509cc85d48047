/** How the overload detector rates steady noise, and steps over its own past. (C10-10) */

import type { Millis } from "../../../src/core/base/brand.ts";
import { Random } from "../../../src/core/base/random.ts";
import {
  OVERLOAD_DEFAULTS,
  OverloadDetector,
} from "../../../src/core/cluster/overload/overload.ts";
import { OVERLOAD_STATES, type OverloadState } from "../../../src/core/cluster/views.ts";
import { atLeast, type Figure } from "./figure.ts";

const STEPS: readonly (readonly [number, OverloadState])[] = [
  [1.3, "busy"],
  [1.5, "busy"],
  [2, "stressed"],
  [2.2, "overloaded"],
  [3, "overloaded"],
  [5, "overloaded"],
];
const SAMPLE_EVERY_MS = 10;
const NOISE_SAMPLES = 1_000;
/** Disables the fixed bounds, so that only the detector's past counts. */
const UNBOUNDED = { ...OVERLOAD_DEFAULTS, latencyMs: [1e9, 1e9, 1e9] } as const;

function levels(detector: OverloadDetector, from: number, samples: readonly number[]): number[] {
  return samples.map((ms, at) => {
    const now = ((from + at) * SAMPLE_EVERY_MS) as Millis;
    detector.record(ms, now);
    return OVERLOAD_STATES.indexOf(detector.state(now));
  });
}

/** 200 samples of 45 to 55 ms, then 100 of a multiple of it: the highest state after the step. */
function highestAfter(step: number, random: Random): OverloadState {
  const sample = (): number => 45 + random.float() * 10;
  const detector = new OverloadDetector(UNBOUNDED);
  levels(detector, 0, Array.from({ length: 200 }, sample));
  const after = Array.from({ length: 100 }, () => sample() * step);
  return OVERLOAD_STATES[Math.max(...levels(detector, 200, after))] ?? "overloaded";
}

/** 5 ms and an exponential part of 20 ms on average. */
function healthyShare(random: Random): number {
  const noise = Array.from({ length: NOISE_SAMPLES }, () => 5 - 20 * Math.log(1 - random.float()));
  const seen = levels(new OverloadDetector(), 0, noise);
  return seen.filter((level) => level === 0).length / seen.length;
}

export const detector: Figure = (scale) => {
  const runs = Math.max(20, Math.round(500 * scale));
  const random = new Random("detector");
  const shares = Array.from({ length: runs }, () => healthyShare(random));
  const healthy = shares.reduce((sum, one) => sum + one, 0) / runs;
  return [
    atLeast("steady noise read as healthy", healthy, 0.98, 4),
    ...STEPS.map(([step, expected]) => {
      const seen = Array.from({ length: runs }, () => highestAfter(step, random));
      const share = seen.filter((state) => state === expected).length / runs;
      // A step of 2 lies on a threshold: a few runs fall on its other side.
      return atLeast(`a step of ${step} x read as ${expected}`, share, 0.9);
    }),
  ];
};
