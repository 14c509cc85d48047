/**
 * The few classical tests `compare` needs. All return two-sided p-values: the probability of a
 * difference at least this large if nothing had changed.
 */

import { assert } from "../../core/base/assert.ts";

/** Student's t with `degrees` of freedom; large degrees are the normal distribution. */
export function studentP(t: number, degrees: number): number {
  assert(degrees > 0, "a t test has degrees of freedom");
  if (!Number.isFinite(t)) return 0;
  return incompleteBeta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

/** The t that is exceeded in size with probability `p`: 1.96 for 5 % and many degrees. */
export function studentQuantile(p: number, degrees: number): number {
  let low = 0;
  let high = 1_000;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (studentP(middle, degrees) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/**
 * Fisher's exact test for two shares: all tables with the same margins that are no more probable than the one seen.
 * Made for few failures; the work grows with their total number.
 */
export function fisherP(failedA: number, totalA: number, failedB: number, totalB: number): number {
  const failed = failedA + failedB;
  const low = Math.max(0, failed - totalB);
  const high = Math.min(failed, totalA);
  const base = logChoose(totalA + totalB, failed);
  const log = (k: number) => logChoose(totalA, k) + logChoose(totalB, failed - k) - base;
  const seen = log(failedA);
  let sum = 0;
  for (let k = low; k <= high; k++) {
    const probability = log(k);
    if (probability <= seen + 1e-7) sum += Math.exp(probability);
  }
  return Math.min(1, sum);
}

/**
 * Holm's correction: with many rows some differ by chance, so the smallest p-value counts times the
 * number of rows, the next times one less, and so on. Keeps the chance of any false alarm in a whole
 * comparison at the level of one test.
 */
export function holm(pValues: readonly number[]): number[] {
  const order = pValues.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  const adjusted = new Array<number>(pValues.length).fill(1);
  let largest = 0;
  order.forEach(({ p, index }, rank) => {
    largest = Math.max(largest, Math.min(1, p * (pValues.length - rank)));
    adjusted[index] = largest;
  });
  return adjusted;
}

function logChoose(n: number, k: number): number {
  return logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1);
}

/** Lanczos' approximation, fourteen digits. */
function logGamma(x: number): number {
  const coefficients = [
    ...[676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059],
    ...[12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7],
  ];
  const z = x - 1;
  const t = z + 7.5;
  const series = coefficients.reduce((sum, c, i) => sum + c / (z + i + 1), 0.99999999999980993);
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(series);
}

/** Regularised incomplete beta function by its continued fraction (Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // The fraction converges quickly on one side only; the other follows by symmetry.
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const logFront =
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x);
  return (Math.exp(logFront) * betaFraction(x, a, b)) / a;
}

function betaFraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const nonZero = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m <= 300; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonZero(1 + even * d);
    c = nonZero(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonZero(1 + odd * d);
    c = nonZero(1 + odd / c);
    const factor = d * c;
    result *= factor;
    if (Math.abs(factor - 1) < 1e-13) break;
  }
  return result;
}
