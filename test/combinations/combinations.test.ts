/** A sample of `npm run combinations`, always the same. */

import { expect, it } from "vitest";
import { differences } from "./compare.ts";
import { combination } from "./grammar.ts";
import { FORMS, runCombination } from "./run.ts";

const SAMPLE = 12;

const cases = Array.from({ length: SAMPLE }, (_, at) =>
  FORMS.map((form) => [`sample/${at}`, form] as const),
).flat();

it.each(cases)("%s as %s", async (seed, form) => {
  const chosen = combination(seed);
  expect(differences(await runCombination(chosen, form)), JSON.stringify(chosen)).toEqual([]);
});
