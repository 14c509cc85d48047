/** What a gate says of a job to its reporters. */

import type { LiveRun } from "../../load/results/live.ts";
import type { RunSummary } from "../../load/results/model.ts";

/** The run of a job, as its submitter calls it. */
export interface ReportedRun {
  readonly name: string;
  readonly title?: string;
  readonly tags: Readonly<Record<string, string>>;
}

export type JobReport =
  /** `isTakenOver`: another gate has told what was measured before this gate led it. */
  | {
      readonly kind: "running";
      readonly job: string;
      readonly run: ReportedRun;
      readonly isTakenOver: boolean;
      readonly live: LiveRun;
    }
  /** Null: it has left no result, or none that can be found. */
  | {
      readonly kind: "ended";
      readonly job: string;
      readonly run: ReportedRun;
      readonly isTakenOver: boolean;
      readonly summary: RunSummary | null;
    }
  /** Another gate leads it. */
  | { readonly kind: "left"; readonly job: string };
