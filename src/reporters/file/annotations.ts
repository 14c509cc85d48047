/**
 * Failures as annotations that GitHub Actions shows beside a job: commands on its output.
 * (docs.github.com: workflow commands for GitHub Actions)
 */

import type { RunSummary } from "../../core/load/results/model.ts";

/** GitHub shows at most this many errors of one step. */
const ANNOTATIONS_MAX = 10;

export function annotations({ name, reasons, thresholds, title, verdict }: RunSummary): string[] {
  const failed = thresholds.filter(({ passed }) => !passed);
  const missed = failed.map(({ actualText, expression, workflow }) =>
    [workflow, `${expression}, but it was ${actualText}`]
      .filter((part) => part !== null)
      .join(": "),
  );
  const why = missed.length === 0 && verdict !== "passed" ? reasons : missed;
  const level = verdict === "interrupted" ? "warning" : "error";
  const head = `::${level} title=${property(`${title ?? name} ${verdict}`)}::`;
  return why.slice(0, ANNOTATIONS_MAX).map((text) => head + data(text));
}

/** A line end would begin another command. */
function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
