/** A sample of `npm run combinations`, always the same. */

import { expect, it } from "vitest";
import { differences } from "./compare.ts";
import { combination } from "./grammar.ts";
import { runCombination } from "./run.ts";

const SAMPLE = 12;

it.each(Array.from({ length: SAMPLE }, (_, at) => `sample/${at}`))("%s", async (seed) => {
  const chosen = combination(seed);
  expect(differences(await runCombination(chosen)), JSON.stringify(chosen)).toEqual([]);
});
