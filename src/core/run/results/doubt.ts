/** Why a verdict may be wrong, whatever it is: for the line that tells it. */

import type { RunSummary } from "./model.ts";

/** "the load generator was the limit, not the target"; null when nothing speaks against the figures. */
export function doubtOf({
  generator,
  lost,
}: Pick<RunSummary, "generator" | "lost">): string | null {
  const reasons = [
    ...(generator.limited ? ["the load generator was the limit, not the target"] : []),
    ...(lost.length > 0 ? ["parts of the run were lost"] : []),
  ];
  return reasons.length === 0 ? null : reasons.join(", and ");
}
