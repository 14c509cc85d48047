/** Workflow views of a finished job, consistent with its result. Shared by gates and managers. */

import type { WorkflowManifest } from "../load/job/manifest.ts";
import type { RunSummary, WorkflowStatus } from "../load/results/model.ts";
import { measuredOf } from "../load/results/workflow-aggregate.ts";
import type { WorkflowView } from "./views.ts";

/** Statuses by severity. A mix shows the worst status of its flows. */
const WORST_FIRST: readonly WorkflowStatus[] = ["failed", "interrupted", "not run"];

/**
 * Views of all workflows. The status in `summary` overrides the one `known` from the log. `summary` is null if the job
 * left no result.
 */
export function endedWorkflows(
  manifests: readonly WorkflowManifest[],
  known: readonly WorkflowView[],
  summary: Pick<RunSummary, "workflows"> | null,
): readonly WorkflowView[] {
  return manifests.map((manifest) => {
    const { name } = manifest;
    const seen = known.find((one) => one.name === name) ?? { name, status: "", attempts: [] };
    const measured = measuredOf([manifest]).map((one) => one.name);
    const reported = (summary?.workflows ?? []).flatMap((one) =>
      measured.includes(one.name) ? [one.status] : [],
    );
    const worst = WORST_FIRST.find((one) => reported.includes(one)) ?? reported[0];
    return { ...seen, status: worst ?? statusWithout(seen) };
  });
}

/** Status without a summary: workflows that were running count as interrupted. */
function statusWithout({ attempts, status }: WorkflowView): string {
  if (status === "completed" || status === "failed") return status;
  return attempts.length > 0 ? "interrupted" : "not run";
}
