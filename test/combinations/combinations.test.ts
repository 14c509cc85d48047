/** A sample of `npm run combinations`, always the same. */

import { expect, it } from "vitest";
import { CASES, differencesOf } from "./cases.ts";

const SAMPLE = 6;

const cases = Array.from({ length: SAMPLE }, (_, at) =>
  CASES.map((one) => [`sample/${at}`, one] as const),
).flat();

it.each(cases)("%s as %s", async (seed, one) => {
  const { chosen, found } = await differencesOf(one, seed);
  expect(found, JSON.stringify(chosen)).toEqual([]);
});
