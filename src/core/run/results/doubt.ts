/** Why a verdict may be wrong, whatever it is: for the line that tells it. */

import type { RunSummary } from "./model.ts";
import { partialOf } from "./partial.ts";

/** "the load generator was the limit, not the target"; null when nothing speaks against the figures. */
export function doubtOf(
  summary: Pick<RunSummary, "generator" | "lost" | "cluster">,
): string | null {
  const { generator, lost } = summary;
  const partial = partialOf(summary);
  const reasons = [
    ...(partial === null ? [] : [`the result is partial: ${partial}`]),
    ...(generator.limited ? ["the load generator was the limit, not the target"] : []),
    ...(lost.length > 0 ? ["parts of the run were lost"] : []),
  ];
  return reasons.length === 0 ? null : reasons.join(", and ");
}
