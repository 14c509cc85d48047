/**
 * Overload state of this node: the worst of three measures. (AD-18)
 *
 *     latency against its own past              ┐
 *     latency against fixed bounds              ├─▶ healthy < busy < stressed < overloaded
 *     CPU, memory, queues, log against capacity ┘
 *
 * The baseline lags: a sample enters it only when it leaves the window, so that a step is detected before the baseline
 * follows it. A rise must last for more than a window, a fall counts at once. The literal rule, in which each sample
 * enters the baseline at once, is kept for comparison. (C10-10, C10-11)
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { OVERLOAD_STATES, type OverloadState } from "../views.ts";

/** Thresholds of busy, stressed and overloaded; a state applies above its threshold, not on it. */
type Thresholds = readonly [busy: number, stressed: number, overloaded: number];

export interface OverloadConfig {
  readonly baseline: "lagged" | "literal";
  /** Minimum weight of a new sample in the baseline. */
  readonly alpha: number;
  /** Samples that make up the present. */
  readonly windowSamples: number;
  /** Relative rises used for the trend. */
  readonly trendSamples: number;
  /** Samples in the baseline before a rise over it is meaningful. */
  readonly baselineSamplesMin: number;
  /** Older samples say nothing about the present. */
  readonly sampleMsMax: number;
  /** Lower bound of the baseline: a rise from 0.01 to 0.1 ms is no overload. */
  readonly baselineMsMin: number;
  /** Relative rise over the baseline. */
  readonly rises: Thresholds;
  /** Relative rise per sample that counts as overload by itself. */
  readonly trend: number;
  readonly latencyMs: Thresholds;
  readonly cpu: Thresholds;
  readonly memory: Thresholds;
  readonly queue: Thresholds;
  /** From writing a record to the log until it is durable. */
  readonly logMs: Thresholds;
}

const ROOM: Thresholds = [0.7, 0.85, 0.95];

export const OVERLOAD_DEFAULTS: OverloadConfig = {
  baseline: "lagged",
  alpha: 0.02,
  windowSamples: 10,
  trendSamples: 20,
  baselineSamplesMin: 10,
  sampleMsMax: 60_000,
  baselineMsMin: 1,
  rises: [0.2, 0.5, 1],
  trend: 0.1,
  latencyMs: [200, 500, 2_000],
  cpu: ROOM,
  memory: ROOM,
  queue: ROOM,
  logMs: [200, 500, 2_000],
};

/** The rule as originally specified; C10-10 explains what it misses. */
export const LITERAL_OVERLOAD: OverloadConfig = {
  ...OVERLOAD_DEFAULTS,
  baseline: "literal",
  alpha: 0.1,
  baselineSamplesMin: 0,
};

/** Shares of capacity, 0 to 1, except the log. */
interface Resources {
  readonly cpu: number;
  readonly memory: number;
  /** Fill of the fullest queue. */
  readonly queue: number;
  /** Latency of the log; 0 for nodes without one. (G-20) */
  readonly logMs?: number;
}

const IDLE: Required<Resources> = { cpu: 0, memory: 0, queue: 0, logMs: 0 };
const LITERAL_SAMPLES_MIN = 3;

interface Sample {
  readonly ms: number;
  readonly at: number;
}

export class OverloadDetector {
  readonly #config: OverloadConfig;
  #window: Sample[] = [];
  #baseline: number | null = null;
  #baselineSamples = 0;
  #rises: number[] = [];
  #resources = IDLE;
  /** State by latency, after the hold. */
  #latencyState = 0;
  /** Evaluations in a row above `#latencyState`. */
  #rising = 0;

  constructor(config: OverloadConfig = OVERLOAD_DEFAULTS) {
    assert(config.windowSamples >= 1 && config.trendSamples >= 2, "windows hold samples");
    this.#config = config;
  }

  /** Records the latency of a request, or of a late timer. Drops invalid durations. (AD-18.10) */
  record(ms: number, now: Millis): void {
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) return;
    this.#expire(now);
    if (this.#config.baseline === "literal") this.#learn(ms);
    this.#window.push({ ms, at: now });
    if (this.#window.length > this.#config.windowSamples) {
      const left = this.#window.shift();
      if (left !== undefined && this.#config.baseline === "lagged") this.#learn(left.ms);
    }
    const rise = this.#rise();
    if (rise !== null) this.#rises.push(rise);
    if (this.#rises.length > this.#config.trendSamples) this.#rises.shift();
    this.#evaluate();
  }

  /** Anything that is not a share counts as full. */
  use({ cpu, logMs = 0, memory, queue }: Resources): void {
    this.#resources = { cpu: share(cpu), memory: share(memory), queue: share(queue), logMs };
  }

  state(now: Millis): OverloadState {
    this.#expire(now);
    const { cpu, logMs, memory, queue } = this.#config;
    const worst = Math.max(
      this.#latencyState,
      this.#absolute(),
      above(this.#resources.cpu, cpu),
      above(this.#resources.memory, memory),
      above(this.#resources.queue, queue),
      above(this.#resources.logMs, logMs),
    );
    return OVERLOAD_STATES[worst] ?? "overloaded";
  }

  view(): {
    readonly baselineMs: number | null;
    readonly windowMs: number;
    readonly trend: number;
  } {
    return { baselineMs: this.#baseline, windowMs: this.#average(), trend: this.#trend() };
  }

  #learn(ms: number): void {
    const weight = this.#weight(++this.#baselineSamples);
    this.#baseline = this.#baseline === null ? ms : weight * ms + (1 - weight) * this.#baseline;
  }

  #weight(sample: number): number {
    const { alpha, baseline } = this.#config;
    return baseline === "lagged" ? Math.max(alpha, 1 / sample) : alpha;
  }

  /** An idle node has no present latency. */
  #expire(now: Millis): void {
    const oldest = now - this.#config.sampleMsMax;
    const [first] = this.#window;
    if (first === undefined || first.at >= oldest) return;
    this.#window = this.#window.filter(({ at }) => at >= oldest);
    if (this.#window.length > 0) return;
    this.#rises = [];
    this.#latencyState = 0;
    this.#rising = 0;
  }

  #average(): number {
    const { length } = this.#window;
    return length === 0 ? 0 : this.#window.reduce((sum, { ms }) => sum + ms, 0) / length;
  }

  /** Rise relative to the baseline; null while there are too few samples. */
  #rise(): number | null {
    const { baseline, baselineSamplesMin } = this.#config;
    if (this.#baseline === null || this.#baselineSamples < baselineSamplesMin) return null;
    if (baseline === "literal" && this.#window.length < LITERAL_SAMPLES_MIN) return null;
    const past = Math.max(this.#baseline, this.#config.baselineMsMin);
    return (this.#average() - past) / past;
  }

  #evaluate(): void {
    const seen = this.#relative();
    if (seen <= this.#latencyState || this.#config.baseline === "literal") {
      this.#latencyState = seen;
      this.#rising = 0;
      return;
    }
    // One more than the window: with as many, steady noise is healthy for 97.8 % of the time only.
    if (++this.#rising <= this.#config.windowSamples) return;
    this.#latencyState = seen;
    this.#rising = 0;
  }

  #relative(): number {
    const rise = this.#rise();
    if (rise === null) return 0;
    const { baseline, rises, trend } = this.#config;
    const isSteep = this.#trend() > trend && (baseline === "literal" || rise > rises[0]);
    return isSteep ? rises.length : above(rise, rises);
  }

  #absolute(): number {
    return above(this.#average(), this.#config.latencyMs);
  }

  /** Least-squares slope of the rises, per sample. (AD-18.4) */
  #trend(): number {
    const { length } = this.#rises;
    const least = this.#config.baseline === "literal" ? 2 : this.#config.windowSamples;
    if (length < least) return 0;
    const middle = (length - 1) / 2;
    const mean = this.#rises.reduce((sum, rise) => sum + rise, 0) / length;
    let [both, square] = [0, 0];
    for (const [at, rise] of this.#rises.entries()) {
      both += (at - middle) * (rise - mean);
      square += (at - middle) ** 2;
    }
    return both / square;
  }
}

/** Number of thresholds exceeded. */
function above(value: number, thresholds: Thresholds): number {
  return thresholds.filter((threshold) => value > threshold).length;
}

function share(value: number): number {
  return value >= 0 && value <= 1 ? value : 1;
}
