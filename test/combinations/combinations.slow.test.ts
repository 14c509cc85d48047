/** A sample of `npm run combinations`, always the same. */

import { expect, it } from "vitest";
import { CASES, countDimensions, differencesOf } from "./cases.ts";

const SAMPLE = 5;

/** Cases that differed once although the metrics were right: the model was corrected. */
const LEARNT = [
  // Random arrivals begin after their plan.
  ["honest-a/44", "journey"],
  // Responses at the very end may be received after it.
  ["honest-b/136", "layers"],
  ["honest-c/212", "layers"],
  // Requests sent at the end of the graceful stop may wait in the sockets of a busy server.
  ["e2/123", "edge"],
  // A limit of names per core says nothing of cores that came to fewer names each.
  ["e2/22", "edge"],
] as const;

const sample = Array.from({ length: SAMPLE }, (_, at) =>
  CASES.map((one) => [`sample/${at}`, one] as const),
).flat();

it.each([...sample, ...LEARNT])("%s as %s", async (seed, one) => {
  const { chosen, found } = await differencesOf(one, seed);
  expect(found, JSON.stringify(chosen)).toEqual([]);
});

it("draws every dimension, each at least once in a hundred", () => {
  const rare = countDimensions("dimensions", 1_000).filter(([, count]) => count < 10);
  expect(rare).toEqual([]);
});
