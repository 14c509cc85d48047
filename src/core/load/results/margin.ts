/** Margin of a threshold: distance of the value from its limit. */

import { formatCompactNumber, formatCompactPercent } from "./format.ts";
import type { ThresholdOutcome } from "./model.ts";

const UNIT_SCALE: Readonly<Record<string, number>> = { k: 1e3, M: 1e6 };

/** From this share on the margin is shown as a factor; only values above their limit get there. */
const TIMES_FROM = 2;

/** The distance as a share of the limit; null when the two cannot be compared. */
export function marginShare({ actual, expression }: ThresholdOutcome): number | null {
  if (actual === null || !Number.isFinite(actual)) return null;
  const match = /(<=|>=|==|!=|<|>)\s*(-?\d+(?:\.\d+)?)(k|M|%)?/.exec(expression);
  if (match === null || match[1] === "==" || match[1] === "!=") return null;
  const limit = Number(match[2]) * (UNIT_SCALE[match[3] ?? ""] ?? 1);
  return limit === 0 ? null : Math.abs(actual - limit) / Math.abs(limit);
}

/** "24 % inside the limit", "56 % beyond the limit". Empty when not comparable. */
export function marginText(outcome: ThresholdOutcome): string {
  const { actual, actualText, expression, passed } = outcome;
  // A value that is not a number may be shown as text instead: "as planned (2 times)".
  if (actual === null)
    return !passed && /^no(thing)?\b/.test(actualText) ? "nothing was measured" : "";
  // A share cannot exceed all of them.
  if (passed && />=\s*100%$/.test(expression)) return "";
  const share = marginShare(outcome);
  if (share === null) return "";
  if (share === 0) return "exactly at the limit";
  // Above twice over, a factor reads better than a percentage: "15 times the limit".
  if (share >= TIMES_FROM) return `${formatCompactNumber(share + 1)} times the limit`;
  return `${formatCompactPercent(share)} ${passed ? "inside" : "beyond"} the limit`;
}
