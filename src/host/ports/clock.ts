/** Two clocks that must not be mixed: one for deadlines, one for people. */

import type { Millis } from "../../core/base/brand.ts";

export interface Clock {
  /** Monotonic; the only one that decides anything. */
  now(): Millis;
  /** Wall-clock milliseconds since 1970, for logs and for `boot`. */
  wall(): number;
}
