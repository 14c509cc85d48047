/** The ways in which one seed is tried. */

import { differences } from "./compare.ts";
import { DIMENSIONS, dimensionsOf, dimensionsOfEdge, dimensionsOfJourney } from "./dimensions.ts";
import { edgeDifferences } from "./edge-compare.ts";
import { edge } from "./edge-grammar.ts";
import { runEdge } from "./edge-run.ts";
import { combination } from "./grammar.ts";
import { journeyDifferences } from "./journey-compare.ts";
import { journey } from "./journey-grammar.ts";
import { runJourney } from "./journey-run.ts";
import { FORMS, runCombination } from "./run.ts";

export const CASES = [...FORMS, "journey", "edge"] as const;
export type Case = (typeof CASES)[number];

/** Describes the case, and every metric that differs from the model. */
export async function differencesOf(
  one: Case,
  seed: string,
): Promise<{ readonly chosen: object; readonly found: readonly string[] }> {
  if (one === "journey") {
    const chosen = journey(seed);
    return { chosen, found: journeyDifferences(await runJourney(chosen)) };
  }
  if (one === "edge") {
    const chosen = edge(seed);
    return { chosen, found: edgeDifferences(await runEdge(chosen)) };
  }
  const chosen = combination(seed);
  return { chosen, found: differences(await runCombination(chosen, one)) };
}

/** In how many of the first draws of a seed each dimension occurs; nothing is run. */
export function countDimensions(seed: string, count: number): (readonly [string, number])[] {
  const draws = Array.from({ length: count }, (_, at) => `${seed}/${at}`).map(
    (one) =>
      new Set([
        ...dimensionsOf(combination(one)),
        ...dimensionsOfJourney(journey(one)),
        ...dimensionsOfEdge(edge(one)),
      ]),
  );
  return DIMENSIONS.map((name) => [name, draws.filter((draw) => draw.has(name)).length]);
}
