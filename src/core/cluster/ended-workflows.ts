/** The workflows of a job that has ended, as gates and managers show them: alike with its result. */

import type { WorkflowManifest } from "../load/job/manifest.ts";
import type { RunSummary, WorkflowStatus } from "../load/results/model.ts";
import { measuredOf } from "../load/results/workflow-aggregate.ts";
import type { WorkflowView } from "./views.ts";

/** What is said of a mix, by its flows: the worst of them. */
const WORST_FIRST: readonly WorkflowStatus[] = ["failed", "interrupted", "not run"];

/** `known`: as its log tells them; what its summary says of one stands. Null: it left none. */
export function endedWorkflows(
  manifests: readonly WorkflowManifest[],
  known: readonly WorkflowView[],
  summary: Pick<RunSummary, "workflows"> | null,
): readonly WorkflowView[] {
  return manifests.map((manifest) => {
    const { name } = manifest;
    const seen = known.find((one) => one.name === name) ?? { name, status: "", attempts: [] };
    const measured = measuredOf([manifest]).map((one) => one.name);
    const told = (summary?.workflows ?? []).flatMap((one) =>
      measured.includes(one.name) ? [one.status] : [],
    );
    const worst = WORST_FIRST.find((one) => told.includes(one)) ?? told[0];
    return { ...seen, status: worst ?? statusWithout(seen) };
  });
}

/** Nobody has put down how it ended: what was under way then was interrupted. */
function statusWithout({ attempts, status }: WorkflowView): string {
  if (status === "completed" || status === "failed") return status;
  return attempts.length > 0 ? "interrupted" : "not run";
}
