/** The process's two clocks. */

import { performance } from "node:perf_hooks";
import { millis } from "../core/base/brand.ts";
import type { Clock } from "./ports/clock.ts";

export const nodeClock: Clock = {
  now: () => millis(performance.now()),
  wall: () => Date.now(),
};
