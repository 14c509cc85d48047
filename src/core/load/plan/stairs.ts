/**
 * Stages that go up (or down) in steps: a jump to each level, then a hold.
 *
 *      to │          ┌──        stairs.rate({ from: 100, to: 300, steps: 3, hold: "1m" })
 *         │     ┌────┘          stands at 100, 200 and 300 for a minute each
 *    from │─────┘
 */

import type { Duration } from "../../base/duration.ts";

interface Stairs {
  readonly from: number;
  readonly to: number;
  /** Number of levels, including the first and the last. */
  readonly steps: number;
  /** Duration of each level. */
  readonly hold: Duration;
}

const STEPS_MAX = 10_000;

function levels({ from, steps, to }: Stairs): number[] {
  if (!Number.isInteger(steps) || steps < 2 || steps > STEPS_MAX)
    throw new RangeError(`stairs: steps is ${steps}; it must be a whole number of at least 2`);
  return Array.from({ length: steps }, (_, at) => from + ((to - from) * at) / (steps - 1));
}

export const stairs = {
  /** For `stages`: virtual users. */
  vus: (given: Stairs): readonly { readonly duration: Duration; readonly vus: number }[] =>
    levels(given).flatMap((level) => {
      const vus = Math.round(level);
      return [
        { duration: 0, vus },
        { duration: given.hold, vus },
      ];
    }),

  /** For `rateStages`: iterations started per second. */
  rate: (given: Stairs): readonly { readonly duration: Duration; readonly rate: number }[] =>
    levels(given).flatMap((rate) => [
      { duration: 0, rate },
      { duration: given.hold, rate },
    ]),
};
