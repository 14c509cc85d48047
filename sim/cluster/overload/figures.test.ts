import { describe, expect, it } from "vitest";
import { detector } from "./detector.ts";
import type { Figure } from "./figure.ts";
import { frames } from "./frames.ts";
import { routing } from "./routing.ts";
import { timeouts } from "./timeouts.ts";
import { watchers } from "./watchers.ts";

/** Small versions: `npm run sim:pressure` has them at full size. */
const SMALL = 0.001;

describe("a cluster under overload", () => {
  it.each<[string, Figure]>([
    ["the detector reads noise and steps as C10-10 has it", detector],
    [
      "managers at five times the figures they can take say so and lose nothing (AD-23, AD-37, AD-37.3)",
      frames,
    ],
    ["programs that look at a job keep their cadence beside stalled ones (1 of 100)", watchers],
    ["gates send jobs near, and do not swing (AD-36)", routing],
    ["36 jobs over all ends leave no clock behind (AD-34)", timeouts],
  ])("%s", (_, figure) => {
    const missed = figure(SMALL).filter(({ holds }) => !holds);
    expect(missed).toEqual([]);
  });
});
