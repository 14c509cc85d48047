/** What a report page holds: a run, and one it is laid over. */

import type { Comparison } from "../compare/compare.ts";
import type { PackedSummary } from "./packed.ts";

export interface PageBaseline {
  readonly run: PackedSummary;
  /** Where it came from, as the user named it. */
  readonly file: string;
  readonly startedAt: string;
  readonly comparison: Comparison;
}

export interface PageData {
  readonly run: PackedSummary;
  readonly baseline: PageBaseline | null;
}
