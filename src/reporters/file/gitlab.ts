/** GitLab's metrics report, which it compares with that of the target branch by name and labels. */

import type { RunSummary } from "../../core/load/results/model.ts";
import { prometheusText } from "../encoders/prometheus-text.ts";
import { summaryFrame } from "../frame.ts";

/** Leaves out labels that differ in every run: its id, and tags such as the branch. */
export function gitlabMetrics(summary: RunSummary): string {
  const { labels, ...frame } = summaryFrame(summary);
  return prometheusText([{ ...frame, labels: { run: labels["run"] ?? summary.name } }]);
}
