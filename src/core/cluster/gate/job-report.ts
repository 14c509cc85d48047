/** Reports about a job to the reporters of a gate. */

import type { LiveRun } from "../../load/results/live.ts";
import type { RunSummary } from "../../load/results/model.ts";

/** Run of a job, as named by its submitter. */
export interface ReportedRun {
  readonly name: string;
  readonly title?: string;
  readonly tags: Readonly<Record<string, string>>;
}

export type JobReport =
  /** `isTakenOver`: another gate has reported everything measured before this gate led the job. */
  | {
      readonly kind: "running";
      readonly job: string;
      readonly run: ReportedRun;
      readonly isTakenOver: boolean;
      readonly live: LiveRun;
    }
  /** `summary` is null if there is no result, or it cannot be found. */
  | {
      readonly kind: "ended";
      readonly job: string;
      readonly run: ReportedRun;
      readonly isTakenOver: boolean;
      readonly summary: RunSummary | null;
    }
  /** Another gate leads the job. */
  | { readonly kind: "left"; readonly job: string };
